"""Rows of `tandem bench decode`: medians over the passes of one case, in plain numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from deploy.bench.measure import Measured, Timing, Workload
from deploy.bench.statistics import Summary, percentile
from deploy.bench.systems import TANDEM

LENGTH_CLASS = 10  # target tokens; costs are averaged over classes this wide


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one system at one batch size; docs/performance.md explains every figure.

    Attributes:
        system: "tandem" or the peer's name.
        model: what it ran.
        threads: that it used; batch size 1 is one thread.
        batch: sentences of a batch.
        beam: hypotheses kept at each step.
        precision: of the matrix products.
        shortlist: whether the output layer was cut to likely words.
        workload: "forced" or "text".
        sentences: decoded in one pass.
        target_tokens: of all their hypotheses, without EOS.
        sentences_per_s: median over the passes, text in to text out.
        tokens_per_s: target tokens, in the same time.
        decode_sentences_per_s: median, from token ids to hypotheses.
        p50_ms, p95_ms: latency of one sentence alone; medians over the passes.
        spread: interquartile range of ``sentences_per_s`` over the passes.
        passes: measured, the warm-up not among them.
        output_hash: of the hypotheses' token ids.
        stable: whether every pass gave that output.
        bleu: of real text that was decoded as a whole.
        against: times the speed of each peer at the same work and batch size; medians over the passes, each compared
            with the peer's in the same pass.
        memory_mb: resident megabytes of a process of its own, after loading and at most.
        phases: microseconds of each phase, for one sentence and one step.
        cost_by_length: target tokens and milliseconds for one sentence, by class of length.
        rescored: how good the hypotheses are, see ``rescoring``.
        skipped: why the system was not measured; every figure is missing then.
    """

    system: str
    model: str | None = None
    threads: int | None = None
    batch: int | None = None
    beam: int | None = None
    precision: str | None = None
    shortlist: bool | None = None
    workload: Workload | None = None
    sentences: int | None = None
    target_tokens: int | None = None
    sentences_per_s: float | None = None
    tokens_per_s: float | None = None
    decode_sentences_per_s: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    spread: float | None = None
    passes: int | None = None
    output_hash: str | None = None
    stable: bool | None = None
    bleu: float | None = None
    against: dict[str, float] | None = None
    memory_mb: dict[str, float] | None = None
    phases: dict[str, dict[str, float | None]] | None = None
    cost_by_length: list[tuple[float, float]] | None = None
    rescored: dict[str, float] | None = None
    skipped: str | None = None

    def mapping(self) -> dict[str, Any]:
        """Its plain form."""
        return asdict(self)


def row_of(measured: Measured, beam_size: int) -> Row:
    """The medians of a case; what other cases or processes tell (speeds of peers, memory, quality) is left open."""
    case, passes, label = measured.case, measured.passes, measured.case.system.label
    count = len(case.indices)
    tokens = sum(len(one.tokens) for one in measured.output.hypotheses.values())
    speed = Summary.of([count / one.seconds for one in passes])
    alone = case.batch_size == 1
    return Row(
        system=label.system,
        model=label.model,
        threads=case.threads,
        batch=case.batch_size,
        beam=beam_size,
        precision=label.precision,
        shortlist=label.shortlist,
        workload=case.work.name,
        sentences=count,
        target_tokens=tokens,
        sentences_per_s=speed.median,
        tokens_per_s=Summary.of([tokens / one.seconds for one in passes]).median,
        decode_sentences_per_s=Summary.of([count / one.decode_seconds for one in passes]).median,
        p50_ms=_latency(passes, 50) if alone else None,
        p95_ms=_latency(passes, 95) if alone else None,
        spread=speed.spread,
        passes=len(passes),
        output_hash=passes[0].output_hash,
        stable=len({one.output_hash for one in passes}) == 1,
        phases=_phases(passes, count),
        cost_by_length=_costs(passes),
    )


def against(measured: Measured, others: Sequence[Measured]) -> dict[str, float] | None:
    """How many times as fast a case is as each peer that did the same; None for a peer, and where there is none."""
    case = measured.case
    if case.system.label.system == TANDEM:
        same = [o for o in others if (o.case.work.name, o.case.batch_size) == (case.work.name, case.batch_size)]
        ratios = {
            str(peer.case.system.label): Summary.of(_ratios(measured, peer)).median
            for peer in same
            if peer.case.system.label.system != TANDEM
        }
        return ratios or None
    return None


def _ratios(measured: Measured, peer: Measured) -> list[float]:
    """Speed over the peer's speed, pass by pass: what slows a machine for a while slows both."""
    counts = len(measured.case.indices) / len(peer.case.indices)
    return [counts * theirs.seconds / ours.seconds for ours, theirs in zip(measured.passes, peer.passes, strict=True)]


def _latency(passes: Sequence[Timing], percent: float) -> float:
    return 1e3 * Summary.of([percentile(one.latencies, percent) for one in passes]).median


def _phases(passes: Sequence[Timing], count: int) -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = {}
    for phase in passes[0].phases:
        median = 1e6 * Summary.of([one.phases[phase] for one in passes]).median
        steps = passes[0].steps
        found[phase] = {"us_per_sentence": median / count, "us_per_step": median / steps if steps else None}
    return found


def _costs(passes: Sequence[Timing]) -> list[tuple[float, float]]:
    """Mean target tokens and median milliseconds of one sentence, for each class of target lengths."""
    classes: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for tokens, seconds in (cost for one in passes for cost in one.costs):
        classes[int(tokens // LENGTH_CLASS)].append((tokens, seconds))
    return [
        (float(np.mean([tokens for tokens, _ in own])), 1e3 * float(np.median([seconds for _, seconds in own])))
        for _, own in sorted(classes.items())
    ]
