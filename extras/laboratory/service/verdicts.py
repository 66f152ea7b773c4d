"""What service figures amount to: the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tandem.extras.laboratory.service.loaded import CAPACITY_P99
from tandem.extras.loadtest.options import not_answered

TARGET, AIM = 1.3, 2.0  # times the naive service's rate
TAIL_SHARE, TAIL_RATIO = 1 / 3, 3.0  # of the naive service's p99; p99 over p50 at LOAD
LOAD = 0.7  # of the capacity
MEMORY_MB, READY_SECONDS = 250.0, 5.0

_OF_EVERY_VERDICT = ("target", "value", "bound", "met")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target beside what was measured.

    Attributes:
        text: the target in words, with its bound.
        value: what was measured; None where there is no figure, which does not meet it.
        bound: the most that meets it.
        further: other figures that belong to it.
        clean: whether nothing else spoils it, such as a rejected request.
    """

    text: str
    value: float | None
    bound: float
    further: dict[str, Any] = field(default_factory=dict)
    clean: bool = True

    @property
    def met(self) -> bool:
        return self.clean and self.value is not None and self.value <= self.bound

    def mapping(self) -> dict[str, Any]:
        """Its plain form."""
        value = None if self.value is None else round(self.value, 4)
        return {"target": self.text, "value": value, "bound": round(self.bound, 4), "met": self.met, **self.further}


def service_verdict(peers: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]], factor: float) -> Verdict:
    """Under ``factor`` times the naive service's rate, our p99 beside its own.

    Args:
        peers: rows of the naive service, closed loop, one per pass.
        ours: rows of Tandem under Poisson arrivals at ``factor`` times the rate of the same pass.
        factor: of the rate.
    """
    pairs = [(one["p99_ms"], theirs["p99_ms"]) for one, theirs in zip(ours, peers, strict=True)]
    known = [mine / theirs for mine, theirs in pairs if mine is not None and theirs]
    refused = sum(not_answered(row) for row in ours)
    return Verdict(
        f"p99 at {factor:g} x the naive service's rate, as a share of its p99; no request rejected",
        median(known) if len(known) == len(pairs) else None,
        TAIL_SHARE,
        {
            "naive_requests_per_s": median(row["requests_per_s"] for row in peers),
            "naive_p99_ms": _median(row["p99_ms"] for row in peers),
            "rate": median(row["rate"] for row in ours),
            "p99_ms": _median(row["p99_ms"] for row in ours),
            "not_answered": refused,
        },
        clean=refused == 0,
    )


def tail_verdict(capacity: float, rows: Sequence[dict[str, Any]]) -> Verdict:
    """p99 over p50 at a share of the capacity; rows of several passes."""
    ratios = [row["p99_ms"] / row["p50_ms"] for row in rows if row["p99_ms"] and row["p50_ms"]]
    return Verdict(
        f"p99 over p50 at {LOAD:.0%} of the capacity (the highest rate with p99 <= {CAPACITY_P99:g} s)",
        median(ratios) if ratios and len(ratios) == len(rows) else None,
        TAIL_RATIO,
        {"capacity": round(capacity, 2), "rate": round(LOAD * capacity, 2)},
        clean=not any(not_answered(row) for row in rows),
    )


def memory_verdict(memory: dict[str, float]) -> Verdict:
    """Resident memory once ready; ``memory`` is what :func:`extras.loadtest.server.memory_of` tells."""
    return Verdict("resident MB once ready", memory.get("rss_mb"), MEMORY_MB)


def ready_verdict(seconds: float) -> Verdict:
    """Seconds from the start of the process until it was ready."""
    return Verdict("seconds from start to ready", seconds, READY_SECONDS)


def in_words(verdict: dict[str, Any]) -> str:
    """A verdict's plain form in one line."""
    value = "no figure" if verdict["value"] is None else f"{verdict['value']:.3g}"
    shown = {name: one for name, one in verdict.items() if name not in _OF_EVERY_VERDICT and one is not None}
    rest = ", ".join(f"{name} {one:g}" for name, one in shown.items())
    state = "reached" if verdict["met"] else "NOT reached"
    return f"{state}: {verdict['target']}: {value}, at most {verdict['bound']:.3g}" + (f" ({rest})" if rest else "")


def _median(values: Any) -> float | None:
    known = list(values)
    return None if None in known else median(known)
