"""ROUGE as one of sacreBLEU's metrics, so that intervals and tests of significance are the same for every score.

The numbers are those of ``rouge-score`` (stemmed words, as ROUGE-1.5.5 counts them with ``-m``), which is what papers
have used since; sacreBLEU has no ROUGE, and ``rouge-score`` has bootstrap intervals but no paired test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sacrebleu.metrics.base import Metric, Score, Signature

if TYPE_CHECKING:
    from rouge_score.scoring import Score as Triple

Of: TypeAlias = Literal["fmeasure", "recall"]
Scorer: TypeAlias = Callable[[str, str], "dict[str, Triple]"]

KINDS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
"""rouge-score's names, and how papers write them."""
_NAMES = {**KINDS, "rougeLsum": "ROUGE-Lsum"}

DUC_BYTES = 75
"""What of a headline counts at DUC-2004: recall without a limit would reward length (Over et al. 2007)."""


def shared_scorer() -> Scorer:
    """(reference, hypothesis) -> precision, recall and F1 of every kind; a pair is counted once, however many ask."""
    from rouge_score.rouge_scorer import RougeScorer

    score: Scorer = lru_cache(maxsize=None)(RougeScorer(list(KINDS), use_stemmer=True).score)
    return score


def rouge_metrics(of: Of, scorer: Scorer, limit_bytes: int | None = None) -> dict[str, Rouge]:
    """ROUGE-1, ROUGE-2 and ROUGE-L by name; the arguments are those of :class:`Rouge`."""
    cut = "" if limit_bytes is None else f", {limit_bytes} bytes"
    ending = cut if of == "fmeasure" else f" {of}{cut}"
    return {f"{shown}{ending}": Rouge(kind, of, scorer, limit_bytes) for kind, shown in KINDS.items()}


def summary_level(lines: Callable[[str], str]) -> Rouge:
    """ROUGE-Lsum: of each sentence of a reference the union of its longest common subsequences with all of a summary's
    (Lin 2004, section 3.2), as papers on summaries of several sentences print it under the name of ROUGE-L.

    Args:
        lines: puts each sentence of a text on a line of its own.
    """
    from rouge_score.rouge_scorer import RougeScorer

    counted = RougeScorer(["rougeLsum"], use_stemmer=True).score
    return Rouge("rougeLsum", "fmeasure", lambda reference, summary: counted(lines(reference), lines(summary)))


class RougeSignature(Signature):
    """What was counted, besides what every signature says."""

    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        limit = args["limit_bytes"]
        self.info |= {"of": args["shown_of"], "bytes": limit, "stemmer": True, "rouge-score": version("rouge-score")}


class Rouge(Metric):
    """The mean over segments of ROUGE's F1 or recall, in points of 100; of several references the mean over them, as
    ROUGE-1.5.5 counts them unless told otherwise (``-f A``).

    Args:
        kind: "rouge1", "rouge2", "rougeL" or "rougeLsum".
        of: "fmeasure" or "recall".
        scorer: (reference, hypothesis) -> scores; of :func:`shared_scorer`, one for all that measure the same texts.
        limit_bytes: of the hypothesis, in UTF-8; None for all of it.
    """

    _SIGNATURE_TYPE = RougeSignature

    def __init__(self, kind: str, of: Of, scorer: Scorer, limit_bytes: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kind, self.of, self.limit_bytes = kind, of, limit_bytes
        self.shown_of = "F1" if of == "fmeasure" else of
        self._scorer = scorer

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[Any]:
        """The segment's score, and one segment."""
        if self.limit_bytes is not None:
            hypothesis = hypothesis.encode()[: self.limit_bytes].decode(errors="ignore")
        references = ref_kwargs["references"]
        scores = [getattr(self._scorer(one, hypothesis)[self.kind], self.of) for one in references]
        return [sum(scores) / len(scores), 1]

    def _compute_score_from_stats(self, stats: Sequence[Any]) -> Score:
        return Score(_NAMES[self.kind], 100 * float(stats[0]) / float(stats[1]))

    def _aggregate_and_compute(self, stats: Sequence[Sequence[Any]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])
