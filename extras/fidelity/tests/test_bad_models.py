"""Whatever the model writes, nothing is lost silently: what must come back does, or `details` say what is at fault.

The models here are bad ones: each writes other tokens than it read, and copies the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.service.support import CopyGraphs, make_engine, running, tiny_bundle

pytestmark = pytest.mark.anyio
VOCABULARY_BYTES = 22  # the first of 256: after four special pieces, sixteen placeholders and two languages
Garble = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def byte(character: str) -> int:
    return VOCABULARY_BYTES + ord(character)


def swapped(read: int, written: int) -> Garble:
    return lambda tokens: np.where(tokens == read, written, tokens)


def every_third(tokens: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Ordinary tokens become a full stop."""
    return np.where((tokens >= VOCABULARY_BYTES) & (tokens % 3 == 0), byte("."), tokens)


MODELS: dict[str, Garble] = {
    "that changes a digit": swapped(byte("9"), byte("8")),
    "that breaks a character": swapped(byte("9"), VOCABULARY_BYTES + 0xC3),
    "that opens and does not close": swapped(byte(")"), byte(",")),
    "that writes a sign": swapped(byte("9"), byte("#")),
    "that loses words": every_third,
    "without words": lambda tokens: np.where(tokens >= VOCABULARY_BYTES, byte("."), tokens),
}


class Garbling(CopyGraphs):
    garble: Garble

    def run(self, graph: str, inputs: Any) -> Any:
        results = super().run(graph, inputs)
        if graph == "encode":
            results["memory.tokens"] = self.garble(results["memory.tokens"])
        return results


WORDS = st.sampled_from(
    ["das haus", "wo ist", "alt", "1984", "2019", "19", "{x}", "%1$s", "🩷", "§", "C++", "@anna", "#tag", "(alt)",
     "[9]", '"so"', "https://a.b/9", "9fceb02", "4916000123", "<br/>", "é9", "→", "*", "gut.", "ja!", "heute?", "\n"]
)  # fmt: skip
KEPT = re.compile(r"\{x\}|%1\$s|🩷|§|C\+\+|@anna|#tag|https://a\.b/9|9fceb02|4916000123|<br/>|→|\b\d{4}\b|\*")


def drawn(count: int) -> list[str]:
    texts: list[str] = []

    @hypothesis_settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(st.lists(WORDS, min_size=1, max_size=9).map(" ".join))
    def draw(text: str) -> None:
        texts.append(text)

    draw()
    return [text for text in dict.fromkeys(texts) if text.strip()][:count]


async def translated(
    folder: Path, garble: Garble, texts: list[str], **settings: Any
) -> list[tuple[str, str, set[str]]]:
    """Text, translation, and what the details say is at fault."""
    bundle = tiny_bundle(folder)
    graphs = Garbling(bundle.target_vocabulary.size)
    graphs.garble = garble
    app = create_app(Settings(max_texts=len(texts), shutdown_timeout=5, **settings), make_engine((bundle, graphs)))
    async with running(app) as client:
        body = {"q": texts, "source": "de", "target": "en", "details": True, "beam_size": 1}
        reply = await client.post("/translate", json=body)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    faults = [
        {one for sentence in text["sentences"] for one in sentence.get("faults", ())} for text in found["details"]
    ]
    return list(zip(texts, found["translatedText"], faults, strict=True))


@pytest.mark.parametrize("model", MODELS)
async def test_what_must_come_back_does_or_is_marked(tmp_path: Path, model: str) -> None:
    for text, written, faults in await translated(tmp_path, MODELS[model], drawn(60)):
        assert "\ufffd" not in written, (text, written)
        lost = {part for part in KEPT.findall(text) if text.count(part) != written.count(part)}
        assert not lost or faults & {"signs", "numbers", "parts"}, (text, written, lost)
        for pair in ("()", "[]"):
            assert written.count(pair[0]) == written.count(pair[1]) or "brackets" in faults, (text, written)
        if any(map(str.isalpha, KEPT.sub("", text))):
            assert any(map(str.isalpha, KEPT.sub("", written))) or "words" in faults, (text, written)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("that changes a digit", "das haus ist von 1984."),
        ("that writes a sign", "das haus ist von 1984."),
        ("that opens and does not close", "das haus (alt) ist gross"),
        ("that loses words", "wo ist {x} heute?"),
    ],
)
async def test_what_is_lost_is_hidden_and_comes_back(tmp_path: Path, model: str, text: str) -> None:
    ((_, written, faults),) = await translated(tmp_path, MODELS[model], [text])
    for part in re.findall(r"\d+|[()]|\{x\}", text):
        assert part in written
    assert not faults


async def test_what_cannot_be_mended_is_marked(tmp_path: Path) -> None:
    ((_, written, faults),) = await translated(tmp_path, MODELS["without words"], ["das haus ist alt"])
    assert not any(map(str.isalpha, written)) and faults == {"words"}


async def test_switched_off_everything_stands_as_the_model_wrote_it(tmp_path: Path) -> None:
    model, text = MODELS["that changes a digit"], "das haus ist von 1984."
    ((_, written, faults),) = await translated(tmp_path, model, [text], fidelity=False)
    assert written == text.replace("9", "8") and not faults
