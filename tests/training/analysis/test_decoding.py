"""Scores by length and speed by beam size, with a scripted decoder and clock."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from models.vocabulary import WordVocabulary
from training.analysis.decoding import length_classes, scores_by_length, source_lengths, speed_by_beam
from training.metrics import Score


def share_equal(hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    equal = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    return [Score("equal", 100 * equal / len(references), "")]


def test_every_sentence_is_in_one_class_of_length() -> None:
    lengths = [1, 10, 11, 20, 99]
    found = scores_by_length(list("abcde"), list("axcye"), lengths, share_equal, edges=(10, 20, 30))
    assert [(s.shortest, s.longest, s.sentences, s.value) for s in found] == [
        (1, 10, 2, 50.0),
        (11, 20, 2, 50.0),
        (31, None, 1, 100.0),
    ]


def test_classes_hold_every_sentence_once_empty_ones_too() -> None:
    found = length_classes([10, 0, 51, 11, 1])
    assert [(one.shown, one.rows) for one in found] == [("1-10", (0, 1, 4)), ("11-20", (3,)), ("51+", (2,))]


def test_the_longest_text_of_a_sentence_counts_and_matrices_only_alone() -> None:
    words, matrices = WordVocabulary(("a", "b")), [np.zeros((9, 2)), np.zeros((7, 2))]
    assert source_lengths([words, words, None], [["a", ""], ["a b a", ""], matrices]) == [3, 0]
    assert source_lengths([None], [matrices]) == [9, 7]


def test_speed_is_the_median_of_passes_that_take_turns() -> None:
    # Seconds that each call takes, in the order of the calls: beam 1, beam 5, beam 1, beam 5, beam 1, beam 5.
    durations = iter([1.0, 4.0, 9.0, 5.0, 2.0, 90.0])
    now, order = 0.0, []

    def decode(size: int) -> list[str]:
        nonlocal now
        now += next(durations)
        order.append(size)
        return ["a", "b"] if size == 5 else ["a", "x"]

    found = speed_by_beam(decode, (1, 5), ["a", "b"], share_equal, passes=3, clock=lambda: now)
    assert order == [1, 5, 1, 5, 1, 5]
    assert [(s.beam_size, s.seconds, s.value) for s in found] == [(1, 2.0, 50.0), (5, 5.0, 100.0)]
    assert found[0].sentences_per_second == pytest.approx(1.0)


def test_without_references_there_is_no_score() -> None:
    (found,) = speed_by_beam(lambda size: ["a"], (1,), [], share_equal, passes=1, clock=iter([0.0, 1.0]).__next__)
    assert (found.metric, found.value) == ("", 0.0)
