"""A service under load: every run leaves a row."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from deploy.bench.load import Run, arrivals, closed_loop, open_loop
from deploy.bench.report import console
from deploy.bench.servers import Sample, Server, busy_seconds
from deploy.bench.verdicts import Row, not_answered

_WARM_UP = 3.0  # seconds


@dataclass(frozen=True, slots=True)
class Load:
    """What every run of a system shares.

    Attributes:
        bodies: requests as JSON, sent in this order.
        clients: requests in flight in closed loops.
        duration: seconds of a run.
        seed: of arrivals.
    """

    bodies: list[bytes]
    clients: int
    duration: float
    seed: int = 0


@dataclass(slots=True)
class Trial:
    """A running service that is loaded.

    Attributes:
        system: its name in the rows; only "tandem" has metrics.
        server: running.
        path: of the route.
        load: see there.
        rows: one per run, in order; systems may share the list.
    """

    system: str
    server: Server
    path: str
    load: Load
    rows: list[Row] = field(default_factory=list)

    def warm_up(self) -> None:
        """Load it for a moment, so that threads, buffers and connections are there."""
        closed_loop(self._url, self.load.bodies, self.load.clients, min(_WARM_UP, self.load.duration))

    def closed(self, purpose: str, number: int = 0) -> Row:
        """Closed loop; ``number`` is the pass."""
        head = {"mode": "closed", "purpose": purpose, "pass": number, "clients": self.load.clients}
        before = self._reading()
        run = closed_loop(self._url, self.load.bodies, self.load.clients, self.load.duration)
        return self._row(head, run, before)

    def open(self, rate: float, purpose: str, number: int = 0, patience: float = 120.0) -> Row:
        """Poisson arrivals; ``number`` is the pass, which has its own moments."""
        head = {"mode": "open", "purpose": purpose, "pass": number, "rate": round(rate, 2)}
        schedule = arrivals(rate, self.load.duration, self.load.seed + number)
        before = self._reading()
        return self._row(head, open_loop(self._url, self.load.bodies, schedule.tolist(), patience), before)

    @property
    def _url(self) -> str:
        return self.server.url + self.path

    def _reading(self) -> Reading:
        return Reading.of(self.server, metrics=self.system == "tandem")

    def _row(self, head: Row, run: Run, before: Reading) -> Row:
        after = self._reading()
        row = {"system": self.system, **head, **run.record(), **after.since(before, run)}
        row |= {name: round(value, 1) for name, value in self.server.memory().items()}
        self.rows.append(row)
        _say(row)
        return row


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read before and after a run: metrics, processor seconds of the service and of everything, the time."""

    sample: Sample | None
    processor: float | None
    busy: float | None
    moment: float

    @classmethod
    def of(cls, server: Server, *, metrics: bool) -> Reading:
        """Read it now; ``metrics`` where the service has those of Tandem."""
        sample = Sample.fetch(server.url) if metrics else None
        return cls(sample, server.processor_seconds(), busy_seconds(), time.perf_counter())

    def since(self, before: Reading, run: Run) -> Row:
        """What the service did between two readings, and how many cores others kept busy meanwhile."""
        row: Row = {}
        if self.sample is not None and before.sample is not None:
            row |= self.sample.since(before.sample)
        if self.processor is None or before.processor is None:
            return row
        served = self.processor - before.processor
        row["server_cpu_ms"] = round(1e3 * served / max(1, len(run.outcomes)), 2)
        if self.busy is not None and before.busy is not None:
            others = self.busy - before.busy - served - run.cpu
            row["others_cores"] = round(max(0.0, others) / (self.moment - before.moment), 2)
        return row


def _say(row: Row) -> None:
    offered = f"{row['rate']:g}/s" if "rate" in row else f"{row['clients']} clients"
    figures = f"{row['requests_per_s']:g}/s answered, p50 {row['p50_ms']} ms, p99 {row['p99_ms']} ms"
    rest = f", not answered: {not_answered(row)}"
    console(error=True).print(f"{row['system']}, {row['purpose']}, {offered}: {figures}{rest}", highlight=False)
