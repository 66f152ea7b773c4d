"""Word alignment on text whose translations are known."""

from __future__ import annotations

from functools import partial

import pytest

from tandem.extras.shared import alignment
from tandem.extras.shared.alignment import aligned_words, build_dictionary
from tandem.models.vocabulary.dictionary import Dictionary
from tests.training.toy import random_bitext

LEXICON = {f"wort{n}": f"word{n}" for n in range(40)}
bitext = partial(random_bitext, LEXICON, 300, names=50)


def test_every_word_finds_its_translation() -> None:
    found = aligned_words(*bitext(), seed=1)
    assert found == LEXICON  # names are copied anyway, and nothing is aligned to the article


def test_the_same_text_gives_the_same_dictionary_in_chunks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = aligned_words(*bitext(), seed=1)
    monkeypatch.setattr(alignment, "CHUNK_CELLS", 100)
    assert aligned_words(*bitext(), seed=1) == whole


def test_words_that_are_linked_once_are_left_to_copying() -> None:
    source, target = bitext()
    assert "einmal" not in aligned_words([*source, "einmal"], [*target, "once"], seed=1)
    assert aligned_words([*source, *["zweimal"] * 2], [*target, *["twice"] * 2], seed=1)["zweimal"] == "twice"


def test_of_large_text_some_sentences_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MOST_CELLS", 400)
    source, target = random_bitext(LEXICON, 1000, names=50)
    few = aligned_words(source, target, seed=1)
    assert 0 < len(few) < len(LEXICON)
    assert few == aligned_words(source, target, seed=1)
    assert sum(LEXICON.get(word) == translation for word, translation in few.items()) > len(few) / 2


def test_text_without_pairs_gives_nothing() -> None:
    assert aligned_words([], [], seed=1) == {}
    assert aligned_words(["", "a"], ["b", ""], seed=1) == {}


def test_sources_in_the_targets_language_have_none() -> None:
    source, target = bitext()
    found = build_dictionary([target, source, target], ("en", "de", "en"), 1)
    assert found == Dictionary(({}, LEXICON))
