"""Lines in, lines out, with a search that returns its source backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models import translator
from models.search import Array, Hypothesis, SearchOptions
from models.translator import encode_lines, translate_lines
from models.vocabulary import EOS, UNK, WordVocabulary

WORDS = WordVocabulary(["eins", "zwei", "drei", "vier", "café"])
OTHER = WordVocabulary(["one", "two", "three", "four", "coffee"])
OPTIONS = SearchOptions(beam_size=2)
HYPOTHESIS = Hypothesis((OTHER.id_of("one"), OTHER.id_of("two")), 0.0, 0.0, True, ())


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[Array, ...]]]:
    made: list[list[tuple[Array, ...]]] = []

    def backwards(
        graphs: Any, sources: Sequence[tuple[Array, ...]], options: SearchOptions, *, token_budget: int, shortlist: None
    ) -> list[list[Hypothesis]]:
        assert options == replace(OPTIONS, attention=True)  # words may be unknown
        made.append(list(sources))
        return [[Hypothesis(tuple(one[0][-2::-1].tolist()), 0.0, 0.0, True, ())] for one in sources]

    monkeypatch.setattr(translator, "translate_batch", backwards)
    return made


def translate(*columns: list[str], limit: int = 10, progress: Any = lambda done: None) -> list[str]:
    vocabularies = ([WORDS] * len(columns), OTHER)
    graphs: Any = None
    return translate_lines(graphs, vocabularies, columns, OPTIONS, max_source_tokens=limit, progress=progress)


def test_lines_keep_their_order() -> None:
    assert translate(["eins zwei", "drei", "vier drei zwei"]) == ["two one", "three", "two three four"]


def test_empty_lines_stay_and_are_not_decoded(calls: list[list[tuple[Array, ...]]]) -> None:
    assert translate(["", "eins", "  \t", ""]) == ["", "one", "", ""]
    assert [len(call) for call in calls] == [1]
    assert translate([]) == []


def test_text_is_normalised_first() -> None:
    assert translate(["cafe\N{COMBINING ACUTE ACCENT}"]) == ["coffee"]


def test_long_lines_are_cut_and_still_end(calls: list[list[tuple[Array, ...]]]) -> None:
    assert translate(["eins zwei drei vier"], limit=3) == ["two one"]
    assert calls[0][0][0].tolist() == [4, 5, EOS]


def test_several_sources_of_which_one_may_be_empty(calls: list[list[tuple[Array, ...]]]) -> None:
    assert translate(["eins", "", ""], ["zwei", "drei", ""]) == ["one", "", ""]
    assert [[ids.tolist() for ids in one] for one in calls[0]] == [[[4, EOS], [5, EOS]], [[EOS], [6, EOS]]]


def test_matrices_go_to_the_decoder_as_they_are(calls: list[list[tuple[Array, ...]]]) -> None:
    """Beside a text, whose empty lines stay."""
    matrices: list[Any] = [np.full((2, 3), number, np.float16) for number in range(3)]
    graphs: Any = None
    lines = [["eins", "", "drei"], matrices]
    assert translate_lines(graphs, ([WORDS, None], OTHER), lines, OPTIONS, max_source_tokens=10) == ["one", "", "three"]
    assert [one[1] is matrices[number] for one, number in zip(calls[0], (0, 2), strict=True)] == [True, True]


def test_matrices_alone_are_always_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator, "translate_batch", lambda graphs, sources, *_, **__: [[HYPOTHESIS]] * len(sources))
    graphs: Any = None
    column = [np.zeros((2, 3), np.float32)] * 3
    assert translate_lines(graphs, ([None], OTHER), [column], OPTIONS, max_source_tokens=10) == ["one two"] * 3


def test_many_lines_go_in_chunks_with_progress(calls: list[list[tuple[Array, ...]]]) -> None:
    done: list[int] = []
    lines = ["eins" if number % 2 else "zwei drei" for number in range(5000)]
    assert translate(lines, progress=done.append) == ["one" if n % 2 else "three two" for n in range(5000)]
    assert [len(call) for call in calls] == done
    assert sum(done) == 5000
    assert len(done) > 1


def test_encoding_of_lines() -> None:
    first, second = encode_lines(WORDS, ["eins neu", ""], 8)
    assert first.tolist() == [4, UNK, EOS]
    assert second.tolist() == [EOS]
    assert first.dtype == np.int64
