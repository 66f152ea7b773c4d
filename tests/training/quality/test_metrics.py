"""Metrics on examples that can be counted by hand."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from tandem.models.errors import CorpusError
from tandem.training.quality import metrics
from tandem.training.quality.metrics import (
    MeasuredScore,
    bleu_tokens,
    pooled_scores,
    task_scores,
)

translation_scores, postedit_scores, summary_scores = (
    partial(task_scores, task, "en") for task in ("translate", "postedit", "summarize")
)
TEXT = ["the cat sat on the mat today", "a second sentence follows the first one"]


def values(scores: list[MeasuredScore]) -> dict[str, float]:
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
    assert all("|of:F1|stemmer:yes|rouge-score:" in score.signature for score in summary_scores(TEXT, TEXT))


def test_post_edits_are_also_scored_by_the_edits_that_are_missing() -> None:
    """One word of five replaced, then two neighbours swapped, which is one shift."""
    assert values(postedit_scores(TEXT, TEXT)) == {"BLEU": 100.0, "chrF": 100.0, "TER": 0.0}
    assert values(postedit_scores(["a b c d x"], ["a b c d e"]))["TER"] == 20.0
    assert values(postedit_scores(["a b d c e"], ["a b c d e"]))["TER"] == 20.0


@pytest.mark.parametrize(
    ("language", "found", "wanted"),
    [
        ("zh", "今天天气很好吗", "今天天气很好吧"),
        ("zh-Hant", "今天天氣很好嗎", "今天天氣很好吧"),
        ("ja", "今日天気最高日", "今日天気最高月"),
        ("th", "กขคงจฉช", "กขคงจฉซ"),
    ],
)
def test_a_line_without_spaces_is_no_single_word(
    language: str, found: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seven characters the last is another: precisions 6/7, 5/6, 4/5, 3/4. As one word nothing would be right."""
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    bleu = 100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25
    scores = values(task_scores("postedit", language, [found], [wanted]))
    assert scores["BLEU"] == pytest.approx(bleu, abs=0.01)
    assert values(postedit_scores([found], [wanted]))["BLEU"] == 0.0
    if language.startswith("zh"):
        assert scores["TER"] == pytest.approx(100 / 7, abs=0.01)


def test_the_tokeniser_is_the_best_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    assert [bleu_tokens(code) for code in ("zh", "ja", "ko", "th", "de", "pt-BR")] == [
        *("zh", "char", "char", "char", "13a", "13a")
    ]
    monkeypatch.setattr(metrics, "find_spec", lambda name: name)
    assert [bleu_tokens(code) for code in ("zh_Hans", "ja-JP", "ko", "en")] == ["zh", "ja-mecab", "ko-mecab", "13a"]
    monkeypatch.setattr(metrics, "find_spec", lambda name: name == "MeCab" or None)  # no dictionary
    assert bleu_tokens("ja") == "char"


def test_signatures_say_how_a_language_is_tokenised() -> None:
    found = {one.metric: one.signature for one in task_scores("postedit", "zh", ["好 吗"], ["好 吗"])}
    assert "tok:zh|" in found["BLEU"] and "asian:yes" in found["TER"]
    found = {one.metric: one.signature for one in postedit_scores(TEXT, TEXT)}
    assert "tok:13a|" in found["BLEU"] and "norm:no" in found["TER"] and "asian:no" in found["TER"]


def test_texts_in_several_languages_are_counted_together_each_in_its_own_way() -> None:
    """Five words and seven characters, the last of either wrong: 10/12, 8/10, 6/8, 4/6."""
    english, chinese = (["a b c d x"], ["a b c d e"]), (["今天天气很好吗"], ["今天天气很好吧"])
    both = pooled_scores("translate", {"en": english, "zh": chinese})
    assert both["BLEU"] == pytest.approx(100 * (10 / 12 * 8 / 10 * 6 / 8 * 4 / 6) ** 0.25, abs=0.01)
    assert pooled_scores("translate", {"en": english}) == values(translation_scores(*english))
    with pytest.raises(CorpusError, match="at least 1, but are 1 and 0"):
        pooled_scores("translate", {"en": (["a"], [])})
