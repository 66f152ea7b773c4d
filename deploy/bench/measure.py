"""Passes over the work: all systems in turn, pass after pass, so that a busy moment falls on all of them."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from deploy.bench.systems import Decoded, Ids, System, Task
from deploy.bench.workload import Batch, batches, sample
from models.search import Hypothesis

Workload: TypeAlias = Literal["forced", "text"]
WARM_UP = 0.125  # share of the batches that is decoded before anything is measured


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Text to decode.

    Attributes:
        name: "forced" where every batch decodes its mean source length, "text" where sentences stop by themselves.
        texts: one sentence each.
        references: of real text, parallel; empty where there are none.
    """

    name: Workload
    texts: tuple[str, ...]
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One row to be: a system, its work, and how much of it is decoded together.

    Attributes:
        system: that does the work.
        work: all of it; ``batches`` name the sentences that are decoded.
        batch_size: 1 decodes sentences one after another on one thread.
        threads: that the system uses.
        batches: in the order in which they are handed out.
    """

    system: System
    work: Work
    batch_size: int
    threads: int
    batches: tuple[Batch, ...]

    @classmethod
    def of(cls, system: System, work: Work, batch_size: int, *, workers: int, single: int) -> Case:
        """Cut the work for a system; at batch size 1 at most ``single`` sentences of it, evenly spread over lengths."""
        tokens = [len(ids) - 1 for ids in system.tokenise(work.texts)]
        chosen = sample(tokens, single if batch_size == 1 else len(tokens))
        cut = batches([tokens[index] for index in chosen], batch_size, forced=work.name == "forced")
        own = tuple(Batch(tuple(chosen[i] for i in batch.indices), batch.target) for batch in cut)
        return cls(system, work, batch_size, 1 if batch_size == 1 else workers, own)

    def largest(self, count: int) -> list[Batch]:
        """The batches with the most tokens: what a runtime keeps in memory grows with them."""
        return sorted(self.batches, key=lambda batch: -len(batch.indices) * (batch.target or 1))[:count]

    @property
    def indices(self) -> list[int]:
        """The sentences that are decoded, in the order of the work."""
        return sorted(index for batch in self.batches for index in batch.indices)


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """One pass.

    Attributes:
        seconds: from text in to text out.
        decode_seconds: of these, from token ids to hypotheses.
        latencies: seconds of each sentence alone, text in to text out; empty for larger batches.
        phases: seconds by phase, added up over the workers.
        steps: of the search, added up over the batches.
        costs: tokens decoded and seconds for each sentence (of a batch its share), where the system tells.
        output_hash: of the hypotheses' tokens.
    """

    seconds: float
    decode_seconds: float
    latencies: tuple[float, ...]
    phases: dict[str, float]
    steps: int
    costs: tuple[tuple[float, float], ...]
    output_hash: str


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What a pass decoded, by index into the work."""

    hypotheses: dict[int, Hypothesis]
    texts: dict[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A case with its passes and what the first of them decoded."""

    case: Case
    passes: tuple[Timing, ...]
    output: Output


def measure(
    cases: Sequence[Case], passes: int, progress: Callable[[Case, int], None] = lambda case, number: None
) -> list[Measured]:
    """Run every case ``passes`` times, all cases once before any of them a second time.

    Args:
        cases: rows to be; those next to each other run next to each other.
        passes: measured ones; the warm-up comes on top.
        progress: called before each run with the case and the number of the pass, 0 for the warm-up.
    """
    for case in cases:
        progress(case, 0)
        for _ in _decoded(case, _warming(case)):
            pass
    runs: list[list[tuple[Timing, Output]]] = [[] for _ in cases]
    for number in range(passes):
        for case, own in zip(cases, runs, strict=True):
            progress(case, number + 1)
            timing, output = run(case)
            own.append((timing, output if number == 0 else Output({}, {})))
    return [Measured(case, tuple(t for t, _ in own), own[0][1]) for case, own in zip(cases, runs, strict=True)]


def run(case: Case) -> tuple[Timing, Output]:
    """One pass over the work."""
    return _alone(case) if case.batch_size == 1 else _together(case)


def _warming(case: Case) -> list[Batch]:
    """Some batches, the largest for each worker among them."""
    count = max(2 * case.threads, round(WARM_UP * len(case.batches)))
    return [*case.largest(case.threads), *case.batches[:count]]


def _decoded(case: Case, chosen: Sequence[Batch]) -> Iterator[Decoded]:
    sources = [case.system.tokenise([case.work.texts[i] for i in batch.indices]) for batch in chosen]
    tasks = [Task(tuple(ids), batch.target) for batch, ids in zip(chosen, sources, strict=True)]
    if case.batch_size == 1:
        yield from map(case.system.decode_alone, tasks)
    else:
        yield from case.system.decode(tasks)


def _together(case: Case) -> tuple[Timing, Output]:
    """All text in, batches on all workers, all text out."""
    system, order = case.system, [index for batch in case.batches for index in batch.indices]
    written = [case.work.texts[index] for index in order]
    started = time.perf_counter()
    ids: dict[int, Ids] = dict(zip(order, system.tokenise(written), strict=True))
    tokenised = time.perf_counter()
    tasks = [Task(tuple(ids[index] for index in batch.indices), batch.target) for batch in case.batches]
    decoded = system.decode(tasks)
    searched = time.perf_counter()
    hypotheses = [one for part in decoded for one in part.hypotheses]
    texts = system.detokenise(written, hypotheses)
    done = time.perf_counter()
    phases = {"tokenise": tokenised - started, **_sum(decoded), "detokenise": done - searched}
    output = Output(dict(zip(order, hypotheses, strict=True)), dict(zip(order, texts, strict=True)))
    return _timing(case, done - started, searched - tokenised, (), phases, decoded, output), output


def _alone(case: Case) -> tuple[Timing, Output]:
    """Sentence after sentence on one thread, each from text to text."""
    system, output, decoded = case.system, Output({}, {}), list[Decoded]()
    latencies, decode_seconds, phases = list[float](), 0.0, Counter[str]()
    for batch in case.batches:
        (index,) = batch.indices
        text = [case.work.texts[index]]
        started = time.perf_counter()
        ids = system.tokenise(text)
        tokenised = time.perf_counter()
        decoded.append(system.decode_alone(Task(tuple(ids), batch.target)))
        searched = time.perf_counter()
        output.hypotheses[index] = decoded[-1].hypotheses[0]
        (output.texts[index],) = system.detokenise(text, decoded[-1].hypotheses)
        done = time.perf_counter()
        latencies.append(done - started)
        decode_seconds += searched - tokenised
        phases.update({"tokenise": tokenised - started, "detokenise": done - searched})
    ordered = {"tokenise": phases["tokenise"], **_sum(decoded), "detokenise": phases["detokenise"]}
    return _timing(case, sum(latencies), decode_seconds, tuple(latencies), ordered, decoded, output), output


def _timing(
    case: Case,
    seconds: float,
    decode_seconds: float,
    latencies: tuple[float, ...],
    phases: dict[str, float],
    decoded: Sequence[Decoded],
    output: Output,
) -> Timing:
    busy = latencies or [part.seconds for part in decoded]
    costs = [
        (sum(len(one.tokens) for one in part.hypotheses) / len(part.hypotheses), spent / len(part.hypotheses))
        for part, spent in zip(decoded, busy, strict=True)
        if spent is not None
    ]
    steps = sum(part.steps for part in decoded)
    hashed = output_hash([output.hypotheses[index].tokens for index in case.indices])
    return Timing(seconds, decode_seconds, latencies, phases, steps, tuple(costs), hashed)


def _sum(decoded: Sequence[Decoded]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in decoded:
        for phase, seconds in part.phases.items():
            total[phase] = total.get(phase, 0.0) + seconds
    return total


def output_hash(tokens: Sequence[Sequence[int]]) -> str:
    """SHA-256 of token ids, sentence by sentence: equal outputs have equal hashes."""
    lines = "".join(f"{' '.join(map(str, sentence))}\n" for sentence in tokens)
    return hashlib.sha256(lines.encode()).hexdigest()
