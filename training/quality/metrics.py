"""Scores of decoded text: sacreBLEU's BLEU, chrF and TER, BLEU as the papers counted it, and ROUGE."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from models.errors import CorpusError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


@dataclass(frozen=True, slots=True)
class MeasuredScore:
    """One number and how it came about.

    Attributes:
        metric: a name of :func:`all_metrics`.
        value: in points of 100; higher is better, but see :func:`is_error`.
        signature: the implementation's own description of its settings.
    """

    metric: str
    value: float
    signature: str


def corpus_metrics(task: str) -> dict[str, Metric]:
    """A task's own metrics by name, as sacreBLEU has them: BLEU and chrF, TER too where translations are post-edited,
    ROUGE-1, ROUGE-2 and ROUGE-L (F1) of summaries. Validation, proofs, comparisons and manifests have these.
    """
    if task == "summarize":
        from training.quality.rouge import rouge_metrics, shared_scorer

        return dict(rouge_metrics("fmeasure", shared_scorer()))
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    # `force` only says that a line may end in " ." without a warning.
    metrics: dict[str, Metric] = {"BLEU": BLEU(force=True), "chrF": CHRF()}
    return metrics | {"TER": TER()} if task == "postedit" else metrics


def all_metrics(task: str, language: str, *, tokenised: bool = False) -> dict[str, Metric]:
    """A task's own metrics, then what the five papers print of such tasks.

    ======================  ============================================================================================
    TER                     multi-source attention's HTER, where the reference is a post-edit; case does not count
    BLEU, lower case        ME-MD: ``mteval-v11b.pl``, case-insensitive
    tokenised BLEU          ConvS2S, layer-wise coordination: ``multi-bleu.perl`` on cased Moses tokens
    ... lower case          DPN-S2S, and layer-wise coordination on IWSLT14 De-En: the same in lower case
    ROUGE ... recall        ConvS2S on DUC-2004, there of the first 75 bytes; without a limit for longer summaries
    ======================  ============================================================================================

    Both papers' English to Romanian is plain BLEU. NIST and DUC-2004 have four references. METEOR, which multi-source
    attention also prints, is not here: docs/recipes.md says why.

    Args:
        task: "translate", "postedit" or "summarize".
        language: of the references.
        tokenised: whether the texts are tokens already, as the papers' corpora are; then these count, and are not
            tokenised again, which would give other tokens (``'s`` becomes ``' s``).
    """
    if task == "summarize":
        from training.quality.rouge import DUC_BYTES, rouge_metrics, shared_scorer

        scorer = shared_scorer()
        recall = rouge_metrics("recall", scorer) | rouge_metrics("recall", scorer, DUC_BYTES)
        return dict(rouge_metrics("fmeasure", scorer) | recall)
    metrics = corpus_metrics(task)
    from sacrebleu.metrics.ter import TER

    from training.quality.tokenised import MtevalBleu, TokenisedBleu, moses_tokens

    tokens = None if tokenised else moses_tokens(language)
    name = "as-is" if tokenised else f"moses-{language}"
    return {
        **metrics,
        "TER": metrics.get("TER") or TER(),
        "BLEU, lower case": MtevalBleu(),
        "tokenised BLEU": TokenisedBleu(tokens, name),
        "tokenised BLEU, lower case": TokenisedBleu(tokens, name, lowercase=True),
    }


OWN = {
    "translate": ("BLEU", "chrF"),
    "postedit": ("BLEU", "chrF", "TER"),
    "summarize": ("ROUGE-1", "ROUGE-2", "ROUGE-L"),
}
"""The names that :func:`corpus_metrics` has, by task."""


def is_error(metric: str) -> bool:
    """Whether less of it is better."""
    return metric == "TER"


def corpus_scores(
    metrics: Mapping[str, Metric], hypotheses: Sequence[str], references: Sequence[str]
) -> list[MeasuredScore]:
    """The scores of a whole set, in the order of the metrics.

    Raises:
        CorpusError: there is nothing to score, or not one hypothesis for each reference.
    """
    if not references or len(hypotheses) != len(references):  # sacreBLEU scores the shorter of two lists without a word
        raise CorpusError(
            "hypotheses and references must be equally many, at least 1,"
            f" but are {len(hypotheses)} and {len(references)}"
        )
    scores = []
    for name, metric in metrics.items():
        value = metric.corpus_score(list(hypotheses), [list(references)]).score
        scores.append(MeasuredScore(name, round(value, 2), str(metric.get_signature())))
    return scores


def task_scores(task: str, hypotheses: Sequence[str], references: Sequence[str]) -> list[MeasuredScore]:
    """The scores of a whole set by the task's own metrics; raises what :func:`corpus_scores` does."""
    return corpus_scores(corpus_metrics(task), hypotheses, references)


SCORERS: dict[str, Callable[[Sequence[str], Sequence[str]], list[MeasuredScore]]] = {
    task: partial(task_scores, task) for task in OWN
}
translation_scores = SCORERS["translate"]

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])")


def first_sentence(text: str) -> str:
    """Baseline of summarization: everything up to the first end of a sentence."""
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def first_words(text: str, count: int = 10) -> str:
    """Baseline of summarization: the first words."""
    return " ".join(text.split()[:count])
