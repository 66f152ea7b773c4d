"""Metrics on examples that can be counted by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from models.errors import CorpusError
from training.metrics import (
    SCORERS,
    Score,
    first_sentence,
    first_words,
    postedit_scores,
    summary_scores,
    translation_scores,
)

TEXT = ["the cat sat on the mat today", "a second sentence follows the first one"]


def values(scores: list[Score]) -> dict[str, float]:
    return {score.metric: score.value for score in scores}


def test_identity_is_100() -> None:
    assert values(translation_scores(TEXT, TEXT)) == {"BLEU": 100.0, "chrF": 100.0}
    assert values(summary_scores(TEXT, TEXT)) == {"ROUGE-1": 100.0, "ROUGE-2": 100.0, "ROUGE-L": 100.0}


def test_nothing_in_common_is_0() -> None:
    assert values(translation_scores(["x y z w v"], ["a b c d e"])) == {"BLEU": 0.0, "chrF": 0.0}
    assert values(summary_scores(["x y z"], ["a b c"])) == {"ROUGE-1": 0.0, "ROUGE-2": 0.0, "ROUGE-L": 0.0}
    assert values(summary_scores([""], ["a b c"]))["ROUGE-1"] == 0.0
    assert values(translation_scores([""], ["a b c"]))["BLEU"] == 0.0


def test_bleu_is_the_geometric_mean_of_precisions_times_the_brevity_penalty() -> None:
    """One word of eight differs at the end: precisions 7/8, 6/7, 5/6, 4/5; then the same cut short."""
    reference = ["one two three four five six seven eight"]
    found = values(translation_scores(["one two three four five six seven nine"], reference))["BLEU"]
    assert found == pytest.approx(100 * (7 / 8 * 6 / 7 * 5 / 6 * 4 / 5) ** 0.25, abs=0.01)
    found = values(translation_scores(["one two three four five six"], reference))["BLEU"]
    assert found == pytest.approx(100 * math.exp(1 - 8 / 6), abs=0.01)


def test_bleu_counts_over_the_corpus_and_keeps_case() -> None:
    """Not the mean of sentences (which would be 50)."""
    hypotheses, references = ["a b c d", "A B C D"], ["a b c d", "a b c d"]
    found = values(translation_scores(hypotheses, references))["BLEU"]
    assert found == pytest.approx(100 * (4 / 8 * 3 / 6 * 2 / 4 * 1 / 2) ** 0.25, abs=0.01)


def test_rouge_is_the_mean_f1_of_stemmed_words() -> None:
    """Two of two against two of three words; one of one against one of two bigrams."""
    found = values(summary_scores(["the cats"], ["the cat sat"]))
    assert found == {"ROUGE-1": 80.0, "ROUGE-2": pytest.approx(66.67), "ROUGE-L": 80.0}
    both = values(summary_scores(["the cats", "x"], ["the cat sat", "y"]))
    assert both["ROUGE-1"] == 40.0


def test_rouge_l_follows_the_longest_common_subsequence() -> None:
    found = values(summary_scores(["d b c a"], ["a b c d"]))
    assert found["ROUGE-1"] == 100.0
    assert found["ROUGE-L"] == 50.0


@pytest.mark.parametrize("score", [translation_scores, summary_scores])
@pytest.mark.parametrize(("hypotheses", "references"), [(2, 1), (1, 2), (0, 0)])
def test_what_is_not_parallel_is_refused(score: Any, hypotheses: int, references: int) -> None:
    with pytest.raises(CorpusError, match=f"at least 1, but are {hypotheses} and {references}"):
        score(["a"] * hypotheses, ["a"] * references)


def test_signatures_say_how() -> None:
    bleu, chrf = translation_scores(TEXT, TEXT)
    assert "case:mixed" in bleu.signature
    assert "tok:13a" in bleu.signature
    assert "version:" in chrf.signature
    assert all(score.signature.startswith("F1|stemmer:yes|rouge-score:") for score in summary_scores(TEXT, TEXT))


def test_every_task_has_its_scores() -> None:
    assert {task: scorer.__name__ for task, scorer in SCORERS.items()} == {
        "translate": "translation_scores",
        "postedit": "postedit_scores",
        "summarize": "summary_scores",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.", "One."),
        ("No end", "No end"),
        ("Really?  Yes!", "Really?"),
        ("About 3.5 percent. More.", "About 3.5 percent."),
        ("E.g. this goes on. That not.", "E.g. this goes on."),
        ("", ""),
    ],
)
def test_first_sentence(text: str, expected: str) -> None:
    assert first_sentence(text) == expected


def test_first_words() -> None:
    assert first_words(" ".join(map(str, range(20)))) == "0 1 2 3 4 5 6 7 8 9"
    assert first_words("a  b c", 2) == "a b"
    assert first_words("") == ""


def test_post_edits_are_also_scored_by_the_edits_that_are_missing() -> None:
    """One word of five replaced, then two neighbours swapped, which is one shift."""
    assert values(postedit_scores(TEXT, TEXT)) == {"BLEU": 100.0, "chrF": 100.0, "TER": 0.0}
    assert values(postedit_scores(["a b c d x"], ["a b c d e"]))["TER"] == 20.0
    assert values(postedit_scores(["a b d c e"], ["a b c d e"]))["TER"] == 20.0
