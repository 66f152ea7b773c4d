"""Lines in, lines out, with a search that returns its source backwards."""

from __future__ import annotations

from collections.abc import Sequence
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


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[Array, ...]]]:
    made: list[list[tuple[Array, ...]]] = []

    def backwards(
        graphs: Any, sources: Sequence[tuple[Array, ...]], options: SearchOptions, *, token_budget: int
    ) -> list[list[Hypothesis]]:
        assert options is OPTIONS
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
