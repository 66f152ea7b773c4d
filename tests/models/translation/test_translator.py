"""Lines in, lines out, with a search that returns its source backwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tandem.models.search import Hypothesis, OfflineDecoder, SearchOptions
from tandem.models.search.offline import NBest, Sources
from tandem.models.translation.translator import encode_lines, translate_lines
from tandem.models.vocabulary import EOS, UNK, WordVocabulary

WORDS = WordVocabulary(["eins", "zwei", "drei", "vier", "café"])
OTHER = WordVocabulary(["one", "two", "three", "four", "coffee"])
OPTIONS = SearchOptions(beam_size=2)
HYPOTHESIS = Hypothesis((OTHER.id_of("one"), OTHER.id_of("two")), 0.0, 0.0, True, ())


@dataclass(eq=False)
class Backwards(OfflineDecoder):
    """Finds its first source backwards, or the same words for a matrix; keeps what it was given."""

    given: list[Sources] = field(default_factory=list)

    def decode(self, sources: Iterable[Sources]) -> Iterator[NBest]:
        for one in sources:
            self.given.append(one)
            tokens = tuple(one[0][-2::-1].tolist()) if one[0].ndim == 1 else HYPOTHESIS.tokens
            yield [replace(HYPOTHESIS, tokens=tokens)]


@pytest.fixture
def backwards() -> Backwards:
    graphs: Any = None
    return Backwards(graphs, OPTIONS)


def translate(decoder: Backwards, *columns: list[str], limit: int = 10) -> list[str]:
    return translate_lines(decoder, ([WORDS] * len(columns), OTHER), columns, max_source_tokens=limit)


def test_lines_keep_their_order(backwards: Backwards) -> None:
    assert translate(backwards, ["eins zwei", "drei", "vier drei zwei"]) == ["two one", "three", "two three four"]


def test_words_that_may_be_unknown_need_attention(monkeypatch: pytest.MonkeyPatch, backwards: Backwards) -> None:
    used: list[SearchOptions] = []

    def decode(self: Backwards, sources: Iterable[Sources]) -> Iterator[NBest]:
        used.append(self.options)
        return iter([[HYPOTHESIS] for _ in sources])

    monkeypatch.setattr(Backwards, "decode", decode)
    assert translate(backwards, ["eins"]) == ["one two"]
    assert used == [replace(OPTIONS, attention=True)]


def test_empty_lines_stay_and_are_not_decoded(backwards: Backwards) -> None:
    assert translate(backwards, ["", "eins", "  \t", ""]) == ["", "one", "", ""]
    assert len(backwards.given) == 1
    assert translate(backwards, []) == []


def test_text_is_normalised_first(backwards: Backwards) -> None:
    assert translate(backwards, ["cafe\N{COMBINING ACUTE ACCENT}"]) == ["coffee"]


def test_long_lines_are_cut_and_still_end(backwards: Backwards) -> None:
    assert translate(backwards, ["eins zwei drei vier"], limit=3) == ["two one"]
    assert backwards.given[0][0].tolist() == [4, 5, EOS]


def test_several_sources_of_which_one_may_be_empty(backwards: Backwards) -> None:
    assert translate(backwards, ["eins", "", ""], ["zwei", "drei", ""]) == ["one", "", ""]
    assert [[ids.tolist() for ids in one] for one in backwards.given] == [[[4, EOS], [5, EOS]], [[EOS], [6, EOS]]]


def test_matrices_go_to_the_decoder_as_they_are(backwards: Backwards) -> None:
    """Beside a text, whose empty lines stay."""
    matrices: list[Any] = [np.full((2, 3), number, np.float16) for number in range(3)]
    lines = [["eins", "", "drei"], matrices]
    assert translate_lines(backwards, ([WORDS, None], OTHER), lines, max_source_tokens=10) == ["one", "", "three"]
    pairs = zip(backwards.given, (0, 2), strict=True)
    assert [one[1] is matrices[number] for one, number in pairs] == [True, True]


def test_matrices_alone_are_always_decoded(backwards: Backwards) -> None:
    column = [np.zeros((2, 3), np.float32)] * 3
    assert translate_lines(backwards, ([None], OTHER), [column], max_source_tokens=10) == ["one two"] * 3


def test_encoding_of_lines() -> None:
    first, second = encode_lines(WORDS, ["eins neu", ""], 8)
    assert first.tolist() == [4, UNK, EOS]
    assert second.tolist() == [EOS]
    assert first.dtype == np.int64
    (other,) = encode_lines(WORDS, ["\u2067ei\u00adns\u2069\u00a0 neu"], 8)  # read as a server reads it
    assert other.tolist() == first.tolist()
