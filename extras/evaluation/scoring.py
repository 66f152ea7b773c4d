"""Everything that text is scored by: a task's own metrics, what the papers print, and what costs nothing beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tandem.training.quality.metrics import bleu_tokens, corpus_metrics, ter

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


def all_metrics(task: str, language: str, *, tokenised: bool = False) -> dict[str, Metric]:
    """A task's own metrics, then what the five papers print of such tasks.

    ======================  ============================================================================================
    TER                     multi-source attention's HTER, where the reference is a post-edit; case does not count
    BLEU, lower case        ME-MD: ``mteval-v11b.pl``, case-insensitive
    tokenised BLEU          ConvS2S, layer-wise coordination: ``multi-bleu.perl`` on cased Moses tokens
    ... lower case          DPN-S2S, and layer-wise coordination on IWSLT14 De-En: the same in lower case
    ROUGE-Lsum              none of them: summaries of several sentences, as the field prints them
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
        from tandem.training.quality.rouge import DUC_BYTES, rouge_metrics, shared_scorer, summary_level

        scorer = shared_scorer()
        recall = rouge_metrics("recall", scorer) | rouge_metrics("recall", scorer, DUC_BYTES)
        return {**rouge_metrics("fmeasure", scorer), "ROUGE-Lsum": summary_level(sentence_lines), **recall}
    metrics = corpus_metrics(task, language)
    from tandem.extras.evaluation.tokenised import MtevalBleu, TokenisedBleu, moses_tokens

    tokens = None if tokenised else moses_tokens(language)
    name = "as-is" if tokenised else f"moses-{language}"
    return {
        **metrics,
        "TER": metrics.get("TER") or ter(language),
        "BLEU, lower case": MtevalBleu(bleu_tokens(language)),
        "tokenised BLEU": TokenisedBleu(tokens, name),
        "tokenised BLEU, lower case": TokenisedBleu(tokens, name, lowercase=True),
    }


def is_error(metric: str) -> bool:
    """Whether less of it is better."""
    return metric == "TER"


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])")


def first_sentence(text: str) -> str:
    """Baseline of summarization: everything up to the first end of a sentence."""
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def sentence_lines(text: str) -> str:
    """A text with each of its sentences on a line of its own, as ROUGE-Lsum reads it."""
    return _SENTENCE_END.sub("\n", text)


def first_words(text: str, count: int = 10) -> str:
    """Baseline of summarization: the first words."""
    return " ".join(text.split()[:count])
