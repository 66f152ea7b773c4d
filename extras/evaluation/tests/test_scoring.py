"""What the papers print, on examples that can be counted by hand."""

from __future__ import annotations

import math

import pytest

from tandem.extras.evaluation.scoring import all_metrics, first_sentence, first_words, is_error
from tandem.training.quality.metrics import OWN, corpus_metrics, corpus_scores

TEXT = ["the cat sat on the mat today", "a second sentence follows the first one"]


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


def papers(task: str, hypotheses: list[str], references: list[str], **options: bool) -> dict[str, float]:
    scores = corpus_scores(all_metrics(task, "en", **options), hypotheses, references)
    return {score.metric: score.value for score in scores}


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


def test_bleu_in_lower_case_takes_a_language_apart_as_bleu_does() -> None:
    """Of seven characters the last is another: precisions 6/7, 5/6, 4/5, 3/4. As one word nothing would be right."""
    found = corpus_scores(all_metrics("translate", "zh"), ["今天天气很好吗"], ["今天天气很好吧"])
    scores = {score.metric: score.value for score in found}
    bleu = 100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25
    assert scores["BLEU, lower case"] == scores["BLEU"] == pytest.approx(bleu, abs=0.01)
