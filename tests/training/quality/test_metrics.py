"""Metrics on examples that can be counted by hand."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from tandem.models.errors import CorpusError
from tandem.training.quality import metrics
from tandem.training.quality.metrics import (
    OWN,
    MeasuredScore,
    all_metrics,
    bleu_tokens,
    corpus_metrics,
    corpus_scores,
    first_sentence,
    first_words,
    is_error,
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


# --- what the papers print ------------------------------------------------------------------------------------------


def papers(task: str, hypotheses: list[str], references: list[str], **options: bool) -> dict[str, float]:
    return values(corpus_scores(all_metrics(task, "en", **options), hypotheses, references))


@pytest.mark.parametrize("task", OWN)
def test_the_tasks_own_come_first(task: str) -> None:
    assert tuple(corpus_metrics(task, "en")) == OWN[task] == tuple(all_metrics(task, "en"))[: len(OWN[task])]
    assert [name for name in all_metrics(task, "en") if is_error(name)] == ([] if task == "summarize" else ["TER"])


def test_ter_is_edits_per_reference_word_of_the_whole_set_whatever_the_case() -> None:
    """One word replaced and two missing, of six; the mean of the sentences would be another number."""
    assert papers("translate", ["a b c", "X"], ["a B d", "x y z"])["TER"] == 50.0
    assert papers("postedit", ["b c a d", "e"], ["a b c d", "e"])["TER"] == 20.0  # one shift


def test_tokenised_bleu_counts_moses_tokens() -> None:
    """He said : yes , we can . / ! of eight tokens; of five words where these are the tokens."""
    texts = ["He said: yes, we can."], ["He said: yes, we can!"]
    moses = 100 * (7 / 8 * 6 / 7 * 5 / 6 * 4 / 5) ** 0.25
    assert papers("translate", *texts)["tokenised BLEU"] == pytest.approx(moses, abs=0.01)
    words = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert papers("translate", *texts, tokenised=True)["tokenised BLEU"] == pytest.approx(words, abs=0.01)


def test_tokenised_bleu_has_no_smoothing() -> None:
    """As in multi-bleu.perl; three words have no 4-gram at all."""
    found = papers("translate", ["one two three x five"], ["one two three four five"])
    assert found["tokenised BLEU"] == 0.0 and found["BLEU, lower case"] == 0.0
    assert found["BLEU"] > 0
    assert papers("translate", ["one two three"], ["one two three"])["tokenised BLEU"] == 0.0


def test_which_of_several_references_is_the_length_to_reach() -> None:
    """Of 4 and 7 words for 6: the closest for multi-bleu.perl, the shortest for mteval-v11b.pl, which asks for less."""
    metrics = all_metrics("translate", "en")
    found = {
        name: metrics[name].corpus_score(["a b c d e f"], [["a b c d e f g"], ["a b c d"]]).score
        for name in ("tokenised BLEU", "BLEU, lower case")
    }
    assert found["BLEU, lower case"] == pytest.approx(100)
    assert found["tokenised BLEU"] == pytest.approx(100 * math.exp(1 - 7 / 6))


def test_rouge_of_several_references_is_the_mean() -> None:
    """Recall of both words of one, and of one word of four of the other; not of their best, which would be 1."""
    recall = all_metrics("summarize", "en")["ROUGE-1 recall"]
    assert recall.corpus_score(["red cat"], [["red cat"], ["blue cat flew home"]]).score == pytest.approx(62.5)


def test_case_counts_where_the_paper_counts_it() -> None:
    found = papers("translate", ["ONE two three Four five"], ["one two three four Five"])
    assert found["BLEU, lower case"] == found["tokenised BLEU, lower case"] == 100.0
    assert found["tokenised BLEU"] == 0.0


def test_words_become_lower_case_after_they_are_tokens() -> None:
    """An abbreviation is known by its case: Mr. stays one token, as in the papers' corpora."""
    metric = all_metrics("translate", "en")["tokenised BLEU, lower case"]
    assert metric._preprocess_segment("Mr. Smith's here.") == "mr. smith 's here ."


def test_tokens_are_those_of_the_language() -> None:
    """A French apostrophe stays with the word before; regions of a language change nothing."""
    french, english = (all_metrics("translate", code)["tokenised BLEU"] for code in ("fr-CA", "en"))
    assert french._preprocess_segment("l'amie") == "l' amie"
    assert english._preprocess_segment("l'amie") == "l 'amie"


def test_every_way_to_count_says_so() -> None:
    metrics = all_metrics("translate", "en-GB")
    signatures = {one.metric: one.signature for one in corpus_scores(metrics, TEXT, TEXT)}
    assert len(set(signatures.values())) == len(signatures)
    assert "case:mixed|eff:no|tok:moses-en-GB|smooth:none" in signatures["tokenised BLEU"]
    assert "case:lc|eff:no|tok:13a|smooth:none" in signatures["BLEU, lower case"]
    assert "tok:as-is" in corpus_scores(all_metrics("translate", "en", tokenised=True), TEXT, TEXT)[-1].signature
    recall = corpus_scores(all_metrics("summarize", "en"), TEXT, TEXT)[-1]
    assert "of:recall|bytes:75" in recall.signature


def test_rouge_lsum_is_of_every_sentence_by_itself() -> None:
    """The same two sentences in the other order: the longest common subsequence of the whole has one of them."""
    sentences = ["The cat sat on the mat.", "A dog slept in the old barn."]
    found = papers("summarize", [" ".join(sentences)], [" ".join(reversed(sentences))])
    assert found["ROUGE-Lsum"] == 100.0
    assert found["ROUGE-L"] == pytest.approx(100 * 7 / 13, abs=0.01)


def test_rouge_recall_is_of_the_reference() -> None:
    """Two of three words, one of two bigrams; more words than the reference has cost nothing."""
    found = papers("summarize", ["the cats"], ["the cat sat"])
    assert [found[f"{name} recall"] for name in OWN["summarize"]] == [66.67, 50.0, 66.67]
    assert papers("summarize", ["a b c and much more"], ["a b c"])["ROUGE-L recall"] == 100.0


def test_recall_of_75_bytes_is_of_what_comes_first() -> None:
    """Ten words of seven bytes, space included, are whole; the eleventh is cut and is another word."""
    text = " ".join(f"word{number:02}" for number in range(30))
    assert papers("summarize", [text], [text])["ROUGE-1 recall, 75 bytes"] == 33.33
    assert papers("summarize", [text], [text])["ROUGE-1 recall"] == 100.0
    cut = papers("summarize", ["é" * 40], ["a"])  # between the two bytes of a letter
    assert cut["ROUGE-1 recall, 75 bytes"] == 0.0


# --- languages without spaces ---------------------------------------------------------------------------------------


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
    assert corpus_scores(all_metrics("translate", language), [found], [wanted])[3].value == scores["BLEU"]


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
