"""What many would write first: a small HTTP service around CTranslate2 that translates each request by itself.

One synchronous route, which FastAPI runs in its thread pool, one ``translate_batch`` call per request: CTranslate2 then
has as many sentences in work as it has workers, and never puts those of two requests into one batch. The model is the
random one that `tandem bench decode` measures as well, so lengths are given with every request; texts are tokenised
and detokenised with the vocabularies of the bundle that it stands beside.

    python -m tandem.extras.laboratory.service.naive --model FOLDER --bundle bundles/de-fr-en --port 8001
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from tandem.models.bundle import Bundle
from tandem.models.vocabulary import Vocabulary
from tandem.service.telemetry.cgroups import usable_cores


class Translator(Protocol):
    """The part of ``ctranslate2.Translator`` that is used."""

    def translate_batch(self, source: list[list[str]], **options: Any) -> list[Any]: ...


class NaiveRequest(BaseModel):
    """A text, and exactly how many tokens its translation is to have."""

    q: str
    length: int
    beam_size: int


class NaiveReply(BaseModel):
    """The translation, and its tokens as a count."""

    translatedText: str
    tokens: int


def create_app(translator: Translator, source: Vocabulary, target: Vocabulary, words: list[str]) -> FastAPI:
    """The service.

    Args:
        translator: a loaded CTranslate2 model.
        source: tokenises the texts.
        target: detokenises the translations.
        words: of the model by id; those of an id of ours are its own where it has as many types, else round and round.
    """
    app = FastAPI(title="CTranslate2, one call per request")
    numbers = {word: number for number, word in enumerate(words)}

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/translate")
    def translate(request: NaiveRequest) -> NaiveReply:
        tokens = [words[token % len(words)] for token in (*source.encode(request.q), source.eos)]
        length = request.length
        result = translator.translate_batch(
            [tokens], beam_size=request.beam_size, min_decoding_length=length, max_decoding_length=length
        )
        found = result[0].hypotheses[0]
        text = target.decode([numbers[token] % target.size for token in found])
        return NaiveReply(translatedText=text, tokens=len(found))

    return app


def words_of(model: Path) -> list[str]:
    """The types of a CTranslate2 model that has one vocabulary for both sides, by id."""
    words: list[str] = json.loads((model / "shared_vocabulary.json").read_text(encoding="utf-8"))
    return words


def main(
    model: Annotated[Path, typer.Option(help="Folder of the CTranslate2 model.")],
    bundle: Annotated[Path, typer.Option(help="Bundle folder whose vocabularies tokenise.")],
    port: Annotated[int, typer.Option(help="Port to listen on, on the loopback interface.")],
    workers: Annotated[int, typer.Option(min=0, help="Sentences in work at once, one thread each; 0 = cores.")] = 0,
    compute_type: Annotated[str, typer.Option(help="Precision of the model.")] = "int8",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
) -> None:
    """Serve a CTranslate2 model until stopped."""
    import ctranslate2  # type: ignore[import-untyped,unused-ignore]

    loaded = Bundle.load(bundle)
    translator = ctranslate2.Translator(
        str(model), device, compute_type=compute_type, inter_threads=workers or usable_cores(), intra_threads=1
    )
    app = create_app(translator, loaded.source_vocabularies[0], loaded.target_vocabulary, words_of(model))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    typer.run(main)
