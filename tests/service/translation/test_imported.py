"""Bundles of public models: no placeholders, no bytes, and tags on both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.bundle import (
    Bundle,
    ImportedFrom,
    Limits,
    Manifest,
    Training,
    Vocabularies,
    VocabularyFile,
    write_bundle,
)
from tandem.models.search import SearchOptions
from tandem.models.vocabulary import MappedVocabulary
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.models.vocabulary.published import pieces, sentencepiece_model
from tests.service.aligning import AligningGraphs
from tests.service.support import LINES, CopyGraphs, Served, make_engine, running, served

pytestmark = pytest.mark.anyio
MODEL = sentencepiece_model(LINES * 4, 60)
NAMES = ["<pad>", "<unk>", "⟨start⟩", "</s>", "__de__", "__en__", "__fr__", *pieces(MODEL)]
LANGUAGES = {code: f"__{code}__" for code in ("de", "en", "fr")}


CODES = ("X1 X2 X3", "X4 X5 X6 X7 X8 X9")


def imported(folder: Path, lines: Sequence[str] = (), **changes: Any) -> Bundle:
    """A bundle with a public model's vocabulary, which reads further lines, too."""
    model = sentencepiece_model((*LINES, *lines) * 4, 60 + 2 * len("".join(lines)))
    names = [*NAMES[:7], *pieces(model)]
    vocabulary = MappedVocabulary(model, names, languages=LANGUAGES)
    file = VocabularyFile("source.json", "mapped")
    fields: dict[str, Any] = {
        "name": "imported",
        "task": "translate",
        "source_languages": ("de",),
        "target_language": "en",
        "architecture": "copy",
        "config": {},
        "decoding": SearchOptions(beam_size=2, max_length=60),
        "limits": Limits(60, 60),
        "vocabularies": Vocabularies((file,), file),
        "training": Training((), {}, 0, 0),
        "licence": "CC-BY-4.0",
        "origin": ImportedFrom("Hugging Face MarianMT"),
    }
    manifest = Manifest(**(fields | changes))
    return write_bundle(
        folder / manifest.name, manifest, {"weight": np.ones(1, np.float32)}, {"source.json": vocabulary}
    )


async def test_what_is_protected_comes_back_though_its_pieces_are_unknown(tmp_path: Path) -> None:
    async with served({"imported": imported(tmp_path)}, first="imported") as service:
        text = "das haus Q#Z_9 ist alt"
        assert (await service.translate(text)).json()[
            "translatedText"
        ] == text  # unasked, as it is unknown to the model
        reply = (await service.translate(text, protect=["Q#Z_9"], glossary={"alt": "OLD!"})).json()
        assert reply["translatedText"] == "das haus Q#Z_9 ist OLD!"
        assert reply["protected"] == [{"text": "Q#Z_9", "kept": True}]
        assert reply["glossary"] == [{"source": "alt", "target": "OLD!", "found": True}]


@asynccontextmanager
async def serving(*served: tuple[Bundle, CopyGraphs]) -> AsyncIterator[Served]:
    bundle, graphs = served[0]
    engine = make_engine(*served)
    app = create_app(Settings(shutdown_timeout=5), engine)
    async with running(app) as client:
        for _, one in served:
            one.together.clear()
        yield Served(app, client, engine, graphs, bundle)


def read_by(bundle: Bundle, graphs: CopyGraphs) -> list[str]:
    vocabulary = bundle.source_vocabularies[0]
    return [vocabulary.decode(ids[:-1]) for ids in graphs.encoded]


async def test_a_code_stands_for_what_is_kept(tmp_path: Path) -> None:
    """Models without placeholders copy what looks like a name: the sentence is read as a whole, once."""
    bundle = imported(tmp_path, CODES)
    graphs = AligningGraphs(bundle.target_vocabulary.size)
    text = "das {name} haus ist {n}alt und 🩷 gross"
    async with serving((bundle, graphs)) as service:
        assert (await service.translate(text)).json()["translatedText"] == text
        assert read_by(bundle, graphs) == ["das X1 haus ist X2 alt und X3 gross"]
        graphs.together.clear()
        typed = "das X1 haus ist {name} alt"  # a code that stands there stands for nothing
        assert (await service.translate(typed)).json()["translatedText"] == typed
        assert read_by(bundle, graphs) == ["das X2 haus ist X3 alt"]


async def test_the_beam_is_as_wide_as_alternatives_need_it(tmp_path: Path) -> None:
    bundle = imported(tmp_path, decoding=SearchOptions(beam_size=1, max_length=60))
    async with served({"imported": bundle}, first="imported") as service:
        reply = await service.translate("das haus", alternatives=2)
        assert len(reply.json()["alternatives"]) == 2
        refused = await service.translate("das haus", alternatives=2, beam_size=2)
        assert refused.status_code == 422


async def test_nothing_that_is_typed_is_a_tag(tmp_path: Path) -> None:
    async with served({"imported": imported(tmp_path)}, first="imported") as service:
        await service.translate("__fr__ das haus </s>")
        assert service.graphs.encoded
        for read in service.graphs.encoded:
            assert not {0, 2, 4, 5, 6} & {*read[:-1]}


async def test_every_pair_has_its_tags(tmp_path: Path) -> None:
    pairs = (("de", "en"), ("fr", "en"), ("en", "fr"))
    bundle = imported(
        tmp_path,
        source_languages=("de", "fr"),
        pairs=pairs,
        tags="both",
        decoding=SearchOptions(beam_size=2, max_length=60, prefix=(5,)),
    )
    async with served({"imported": bundle}, first="imported") as service:
        for source, target in pairs:
            service.graphs.together.clear()
            reply = await service.translate("das haus ist alt", source=source, target=target, details=True)
            # The copy begins after the tag that is forced, thus with the second token of what was read.
            assert reply.json()["translatedText"] == "das haus ist alt"
            assert reply.json()["details"][0]["sentences"][0]["tokens"][0] == LANGUAGES[target]
            assert {NAMES[read[0]] for read in service.graphs.encoded} == {LANGUAGES[source]}
        refused = await service.translate("das haus", source="en", target="de")
        assert refused.status_code == 404
        begun = await service.translate("das haus ist alt", prefix="das")
        assert begun.json()["translatedText"].startswith("das")
        languages = {one["code"]: one["targets"] for one in (await service.client.get("/languages")).json()}
        assert languages == {"de": ["en", "fr"], "fr": ["en"], "en": ["fr"]}  # from German into French by English
        (model,) = (await service.client.get("/models")).json()
        assert [(pair["source"], pair["target"]) for pair in model["pairs"]] == list(pairs)
        assert model["licence"] == "CC-BY-4.0"
        assert model["origin"] == {"form": "Hugging Face MarianMT"}
