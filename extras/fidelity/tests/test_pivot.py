"""Pairs that go through a third language, whose sentences are at fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.translation.test_pivot import IST, UNTAUGHT, VOCABULARY, chained

pytestmark = pytest.mark.anyio


async def test_a_piece_of_which_the_first_makes_no_words_stays_as_it_wrote_it(tmp_path: Path) -> None:
    of = {"training": UNTAUGHT}, {"training": UNTAUGHT}
    async with chained(tmp_path, of=of) as chain:
        chain.first.words = {IST: VOCABULARY.eos}  # it writes nothing for a piece that begins so
        body = (await chain.translate("ist {n} Haus", protect=["placeholders"])).json()
    assert (body["translatedText"].split(), body["protected"]) == (["{n}", "Haus"], [{"text": "{n}", "kept": True}])
