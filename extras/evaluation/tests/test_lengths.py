"""Classes of sentence length."""

from __future__ import annotations

import numpy as np

from tandem.extras.evaluation.lengths import length_classes, source_lengths
from tandem.models.vocabulary import WordVocabulary


def test_classes_hold_every_sentence_once_empty_ones_too() -> None:
    found = length_classes([10, 0, 51, 11, 1])
    assert [(one.shown, one.rows) for one in found] == [("1-10", (0, 1, 4)), ("11-20", (3,)), ("51+", (2,))]


def test_the_longest_text_of_a_sentence_counts_and_matrices_only_alone() -> None:
    words, matrices = WordVocabulary(("a", "b")), [np.zeros((9, 2)), np.zeros((7, 2))]
    assert source_lengths([words, words, None], [["a", ""], ["a b a", ""], matrices]) == [3, 0]
    assert source_lengths([None], [matrices]) == [9, 7]
