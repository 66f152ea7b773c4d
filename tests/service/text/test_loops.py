"""Loops are cut, and what only looks like one is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.search import Array
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tandem.service.text.loops import MOST_LINKED, cut_loops
from tests.service.support import CopyGraphs, make_engine, running, tiny_bundle


@pytest.mark.parametrize(
    ("text", "source", "wanted"),
    [
        ("I like salad salad salad.", "Ich mag Salat.", "I like salad."),
        ("I like salad salad salad salad.", "Ich mag Salat.", "I like salad."),
        ("in the middle of the day of the day of the day of", "mitten am Tag", "in the middle of the day"),
        ("Salad salad salad salad", "Salat", "Salad"),
        ("salad, salad, salad, salad, salad.", "Salat.", "salad."),
        ("I eat salad and cheese and cheese and cheese and cheese and", "x", "I eat salad and cheese"),
        ("I eat salad and cheese and cheese and cheese and cheese and ham.", "x", "I eat salad and cheese and ham."),
        ("the cat and the dog, " * 5 + "at last.", "x", "the cat and the dog, at last."),
        ("Yes. Yes. Yes. Yes. Yes.", "Ja.", "Yes."),
        ("a b b b b c c c c d", "x", "a b c d"),
        ("我喜欢沙拉沙拉沙拉沙拉沙拉。", "I like salad.", "我喜欢沙拉。"),
        ("ไปไปไปไปไป", "go", "ไป"),
        ("loooooooooooooooooooong", "lang", "long"),
        ("lalalalalalalalalalalalalalalala", "la", "la"),
        ("Wait...............", "Warte...", "Wait..."),
        ("ha " * 40, "ha ha ha ha", "ha ha ha ha "),
    ],
)
def test_loops_are_cut(text: str, source: str, wanted: str) -> None:
    assert cut_loops(text, source) == (wanted, True)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("very very good", "sehr gut"),
        ("very, very, very good", "sehr, sehr, sehr gut"),
        ("my great-great-great-grandfather", "mein Urururgroßvater"),
        ("好好好", "okay okay"),
        ("no, no, no, no, no!", "nein, nein, nein, nein, nein!"),
        ("ha ha ha ha ha", "hahahahaha"),
        ("哈哈哈哈哈", "ha ha ha ha ha"),
        ("1 000 000 000 000 and 1000000000000", "eine Billion"),
        ("Name: ________________", "Name: ________________"),
        ("--------", "Linie"),
        ("the cat and the dog and the cat and the dog", "x"),
        ("⟨ph0⟩ ⟨ph1⟩ ⟨ph2⟩ ⟨ph3⟩ ⟨ph4⟩", "x"),
        ("", ""),
    ],
)
def test_what_people_write_stays(text: str, source: str) -> None:
    assert cut_loops(text, source) == (text, False)


WORDS = st.lists(st.sampled_from(["salad", "and", "me", "沙", "."]), max_size=12)


@given(
    before=WORDS,
    loop=st.sampled_from(["salad", "to be", "a, b", "沙拉"]),
    after=WORDS,
    rounds=st.integers(MOST_LINKED + 1, 9),
)
def test_a_loop_anywhere_is_found_and_cutting_again_changes_nothing(
    before: list[str], loop: str, after: list[str], rounds: int
) -> None:
    text = " ".join([*before, *[loop] * rounds, *after])
    cut, repetition = cut_loops(text, "quite another text")
    assert repetition and len(cut) < len(text)
    assert cut_loops(cut, "quite another text") == (cut, False)
    assert loop in cut or loop.split(",")[0].split()[0] in cut


@given(st.text(max_size=80))
def test_a_text_that_repeats_its_source_is_never_cut(text: str) -> None:
    assert cut_loops(text, text) == (text, False)


class Looping(CopyGraphs):
    """Writes the source's first tokens for ever."""

    first = 0

    def _logits(self, inputs: Any) -> Array:
        logits = super()._logits(inputs)
        rows, sentences = len(logits), len(inputs["memory.lengths"])
        for row in range(rows):
            tokens = inputs["memory.tokens"][row * sentences // rows]
            logits[row, int(tokens[int(inputs["position"][row]) % self.first])] += 90.0
        return logits


@pytest.mark.anyio
async def test_the_reply_says_where_a_loop_was_cut(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path)
    text = "one two three four"
    graphs = Looping(bundle.target_vocabulary.size)
    graphs.first = len(bundle.target_vocabulary.encode("one two"))
    app = create_app(Settings(shutdown_timeout=5), make_engine((bundle, graphs)))
    fields = {"q": text, "source": "de", "target": "en", "details": True, "min_length": 60, "max_length": 100}
    async with running(app) as client:
        body = (await client.post("/translate", json=fields)).json()
    assert body["translatedText"] == "one two"
    (sentence,) = body["details"][0]["sentences"]
    assert sentence["repetition"] is True
    assert (sentence["target"]["start"], sentence["target"]["end"]) == (0, 7)
