"""Passes over a workload: each system decodes the same batches; rows are medians over the passes, in plain numbers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tandem.extras.laboratory.decoding.systems import TANDEM, DecodingSystem, Task
from tandem.extras.laboratory.runner import MedianSpread, median_ratio, take_turns
from tandem.extras.laboratory.workload import SentenceBatch, batches, sample
from tandem.extras.loadtest.client import percentile
from tandem.models.search import Hypothesis

Kind: TypeAlias = Literal["forced", "text"]
WARM_UP = 0.125  # share of the batches that is decoded before anything is measured


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Text to decode.

    Attributes:
        kind: "forced" where every batch decodes its mean source length, "text" where sentences stop by themselves.
        texts: one sentence each.
        references: of real text, parallel; empty where there are none.
    """

    kind: Kind
    texts: tuple[str, ...]
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One row to be: a system, its workload, and how much of it is decoded together.

    Attributes:
        system: that does the work.
        workload: all of it; ``batches`` name the sentences that are decoded.
        batch_size: 1 decodes sentences one after another on one thread.
        threads: that the system uses.
        batches: in the order in which they are handed out.
    """

    system: DecodingSystem
    workload: Workload
    batch_size: int
    threads: int
    batches: tuple[SentenceBatch, ...]

    @classmethod
    def of(cls, system: DecodingSystem, workload: Workload, batch_size: int, *, workers: int, single: int) -> Case:
        """Cut the workload for a system; at batch size 1 at most ``single`` sentences, evenly spread over lengths."""
        tokens = [len(ids) - 1 for ids in system.tokenise(workload.texts)]
        chosen = sample(tokens, single if batch_size == 1 else len(tokens))
        cut = batches([tokens[index] for index in chosen], batch_size, forced=workload.kind == "forced")
        own = tuple(SentenceBatch(tuple(chosen[i] for i in batch.indices), batch.target) for batch in cut)
        return cls(system, workload, batch_size, 1 if batch_size == 1 else workers, own)

    def largest(self, count: int) -> list[SentenceBatch]:
        """The batches with the most tokens: what a runtime keeps in memory grows with them."""
        return sorted(self.batches, key=lambda batch: -len(batch.indices) * (batch.target or 1))[:count]

    @property
    def indices(self) -> list[int]:
        """The sentences that are decoded, in the order of the workload."""
        return sorted(index for batch in self.batches for index in batch.indices)


@dataclass(frozen=True, slots=True, eq=False)
class DecodingPass:
    """One pass over a case.

    Attributes:
        seconds: from text in to text out.
        decode_seconds: of these, from token ids to hypotheses.
        latencies: seconds of each sentence alone, text in to text out; empty for larger batches.
        hypotheses, texts: by index into the workload.
    """

    seconds: float
    decode_seconds: float
    latencies: tuple[float, ...]
    hypotheses: dict[int, Hypothesis]
    texts: dict[int, str]

    @property
    def output_hash(self) -> str:
        """Of the hypotheses' tokens, in the order of the workload."""
        return output_hash([self.hypotheses[index].tokens for index in sorted(self.hypotheses)])


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredCase:
    """A case with its passes."""

    case: Case
    passes: Sequence[DecodingPass]


def measure_cases(
    cases: Sequence[Case], passes: int, progress: Callable[[Case, int], None] = lambda case, number: None
) -> list[MeasuredCase]:
    """Warm every case up, and run each ``passes`` times, by turns.

    Args:
        cases: rows to be; those next to each other run next to each other.
        passes: measured ones.
        progress: called before each run with the case and the number of the pass, 0 for the warm-up.
    """

    def measure(case: Case, number: int) -> DecodingPass:
        progress(case, number + 1)
        return run(case, case.batches)

    for case in cases:
        progress(case, 0)
        count = max(2 * case.threads, round(WARM_UP * len(case.batches)))
        run(case, (*case.largest(case.threads), *case.batches[:count]))
    return [MeasuredCase(case, own) for case, own in zip(cases, take_turns(cases, passes, measure), strict=True)]


def run(case: Case, batches: Sequence[SentenceBatch]) -> DecodingPass:
    """One pass: all text in, batches on all workers, all text out; at batch size 1 sentence after sentence."""
    alone = case.batch_size == 1
    spans: list[tuple[float, float]] = []  # of each part: seconds in all, and those of decoding
    hypotheses, texts = dict[int, Hypothesis](), dict[int, str]()
    for part in [[batch] for batch in batches] if alone else [batches]:
        order = [index for batch in part for index in batch.indices]
        sources = [case.workload.texts[index] for index in order]
        started = time.perf_counter()
        ids = dict(zip(order, case.system.tokenise(sources), strict=True))
        tokenised = time.perf_counter()
        tasks = [Task(tuple(ids[index] for index in batch.indices), batch.target) for batch in part]
        results = [case.system.decode_alone(tasks[0])] if alone else case.system.decode(tasks)
        searched = time.perf_counter()
        best = [hypothesis for result in results for hypothesis in result]
        written = case.system.detokenise(sources, best)
        spans.append((time.perf_counter() - started, searched - tokenised))
        hypotheses |= zip(order, best, strict=True)
        texts |= zip(order, written, strict=True)
    seconds, decode_seconds = (sum(times) for times in zip(*spans, strict=True))
    latencies = tuple(whole for whole, _ in spans) if alone else ()
    return DecodingPass(seconds, decode_seconds, latencies, hypotheses, texts)


def output_hash(tokens: Sequence[Sequence[int]]) -> str:
    """SHA-256 of token ids, sentence by sentence: equal outputs have equal hashes."""
    lines = "".join(f"{' '.join(map(str, sentence))}\n" for sentence in tokens)
    return hashlib.sha256(lines.encode()).hexdigest()


def row_of(measured: MeasuredCase, beam_size: int) -> dict[str, Any]:
    """The medians of a case; docs/performance.md explains every figure.

    What other cases or processes tell is added to it: ``bleu``, ``against`` and ``memory_mb``.
    """
    case, passes, label = measured.case, measured.passes, measured.case.system.label
    count = len(case.indices)
    tokens = sum(len(hypothesis.tokens) for hypothesis in passes[0].hypotheses.values())
    speed = MedianSpread.of([count / one.seconds for one in passes])
    alone = case.batch_size == 1
    return {
        "system": label.system,
        "model": label.model,
        "threads": case.threads,
        "batch": case.batch_size,
        "beam": beam_size,
        "precision": label.precision,
        "shortlist": label.shortlist,
        "native": label.native,
        "workload": case.workload.kind,
        "sentences": count,
        "target_tokens": tokens,
        "sentences_per_s": speed.median,
        "tokens_per_s": tokens / count * speed.median,
        "decode_sentences_per_s": MedianSpread.of([count / one.decode_seconds for one in passes]).median,
        "p50_ms": _latency(passes, 50) if alone else None,
        "p95_ms": _latency(passes, 95) if alone else None,
        "spread": speed.spread,
        "passes": len(passes),
        "output_hash": passes[0].output_hash,
        "stable": len({one.output_hash for one in passes}) == 1,
    }


def against(measured: MeasuredCase, others: Sequence[MeasuredCase]) -> dict[str, float] | None:
    """How many times as fast a case is as each peer that did the same; None for a peer, and where there is none."""
    case = measured.case
    if case.system.label.system != TANDEM:
        return None
    ratios = {}
    for peer in others:
        same = (peer.case.workload.kind, peer.case.batch_size) == (case.workload.kind, case.batch_size)
        if same and peer.case.system.label.system != TANDEM:
            counts = len(case.indices) / len(peer.case.indices)
            seconds = [[one.seconds for one in passes] for passes in (peer.passes, measured.passes)]
            ratios[str(peer.case.system.label)] = counts * median_ratio(*seconds)
    return ratios or None


def _latency(passes: Sequence[DecodingPass], percent: float) -> float:
    return 1e3 * MedianSpread.of([percentile(one.latencies, percent) for one in passes]).median
