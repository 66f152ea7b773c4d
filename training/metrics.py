"""Scores of decoded text: sacreBLEU's BLEU and chrF, and ROUGE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.errors import CorpusError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


@dataclass(frozen=True, slots=True)
class Score:
    """One number and how it came about.

    Attributes:
        metric: "BLEU", "chrF", "TER", "ROUGE-1", "ROUGE-2" or "ROUGE-L".
        value: in points of 100; higher is better, but for TER, which counts edits.
        signature: the implementation's own description of its settings.
    """

    metric: str
    value: float
    signature: str


def _check_parallel(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """sacreBLEU scores the shorter of two lists without a word."""
    if not references or len(hypotheses) != len(references):
        raise CorpusError(
            "hypotheses and references must be equally many, at least 1,"
            f" but are {len(hypotheses)} and {len(references)}"
        )


def translation_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    """Corpus BLEU (cased, detokenised) and chrF.

    Raises:
        CorpusError: there is nothing to score, or not one hypothesis for each reference.
    """
    return _corpus_scores("translate", hypotheses, references)


def postedit_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    """Corpus BLEU and chrF as of translations, and TER: the edits that are still missing per reference word.

    Raises:
        CorpusError: there is nothing to score, or not one hypothesis for each reference.
    """
    return _corpus_scores("postedit", hypotheses, references)


def corpus_metrics(task: str) -> dict[str, Metric]:
    """sacreBLEU's metrics of a task by name: BLEU and chrF, and TER where translations are post-edited."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    metrics: dict[str, Metric] = {"BLEU": BLEU(), "chrF": CHRF()}
    return metrics | {"TER": TER()} if task == "postedit" else metrics


def _corpus_scores(task: str, hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    _check_parallel(hypotheses, references)
    scores = []
    for name, metric in corpus_metrics(task).items():
        value = metric.corpus_score(list(hypotheses), [list(references)]).score
        scores.append(Score(name, round(value, 2), str(metric.get_signature())))
    return scores


def summary_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    """Mean ROUGE-1, ROUGE-2 and ROUGE-L F1, stemmed.

    Raises:
        CorpusError: there is nothing to score, or not one hypothesis for each reference.
    """
    _check_parallel(hypotheses, references)
    from importlib.metadata import version

    from rouge_score.rouge_scorer import RougeScorer

    names = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
    scorer = RougeScorer(list(names), use_stemmer=True)
    totals = dict.fromkeys(names, 0.0)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for name, score in scorer.score(reference, hypothesis).items():
            totals[name] += score.fmeasure
    signature = f"F1|stemmer:yes|rouge-score:{version('rouge-score')}"
    count = len(references)
    return [Score(shown, round(100 * totals[name] / count, 2), signature) for name, shown in names.items()]


SCORERS: dict[str, Callable[[Sequence[str], Sequence[str]], list[Score]]] = {
    "translate": translation_scores,
    "postedit": postedit_scores,
    "summarize": summary_scores,
}

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])")


def first_sentence(text: str) -> str:
    """Baseline of summarization: everything up to the first end of a sentence."""
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def first_words(text: str, count: int = 10) -> str:
    """Baseline of summarization: the first words."""
    return " ".join(text.split()[:count])
