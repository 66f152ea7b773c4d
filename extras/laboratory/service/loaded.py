"""A service under load: every run leaves a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tandem.extras.loadtest.client import LoadRun, arrivals, closed_loop, open_loop
from tandem.extras.loadtest.measure import highest_rate
from tandem.extras.loadtest.options import not_answered
from tandem.extras.loadtest.server import Server, watched
from tandem.extras.shared.report import say

CAPACITY_P99 = 1.0  # seconds
_WARM_UP = 3.0  # seconds
_GIVE_UP = 1.5  # seconds after its last arrival at which a run that looks for the capacity has failed
_STEP = 1.3  # of the search: factor until it knows both sides


@dataclass(slots=True)
class LoadedService:
    """A running service that is loaded.

    Attributes:
        system: its name in the rows; only "tandem" has metrics.
        server: running.
        path: of the route.
        bodies: requests as JSON, sent in this order.
        clients: requests in flight in closed loops.
        duration: seconds of a run.
        rows: one per run, in order; systems may share the list.
    """

    system: str
    server: Server
    path: str
    bodies: list[bytes]
    clients: int
    duration: float
    rows: list[dict[str, Any]] = field(default_factory=list)

    def warm_up(self) -> None:
        """Load it for a moment, so that threads, buffers and connections are there."""
        closed_loop(self.url, self.bodies, self.clients, min(_WARM_UP, self.duration))

    def closed(self, purpose: str, number: int = 0) -> dict[str, Any]:
        """Closed loop; ``number`` is the pass."""
        head = {"mode": "closed", "purpose": purpose, "pass": number, "clients": self.clients}
        return self._row(head, lambda: closed_loop(self.url, self.bodies, self.clients, self.duration))

    def open(self, rate: float, purpose: str, number: int = 0, patience: float = 120.0) -> dict[str, Any]:
        """Poisson arrivals; ``number`` is the pass, which has its own moments."""
        head = {"mode": "open", "purpose": purpose, "pass": number, "rate": round(rate, 2)}
        schedule = arrivals(rate, self.duration, number)
        return self._row(head, lambda: open_loop(self.url, self.bodies, schedule, patience))

    def capacity(self, closed_rate: float) -> float:
        """The highest rate with a p99 of at most a second; ``closed_rate`` says where to begin."""

        def sustains(rate: float) -> bool:
            row = self.open(rate, "capacity", patience=_GIVE_UP)
            late = row["p99_ms"] is None or row["p99_ms"] > 1e3 * CAPACITY_P99
            return not (late or not_answered(row))

        return highest_rate(sustains, 0.9 * closed_rate, _STEP) if closed_rate else 0.0

    @property
    def url(self) -> str:
        """Of the route."""
        return self.server.url + self.path

    def _row(self, head: dict[str, Any], load: Callable[[], LoadRun]) -> dict[str, Any]:
        run, figures = watched(self.server, load, metrics=self.system == "tandem")
        row = {"system": self.system, **head, **run.record(), **figures}
        self.rows.append(row)
        times = f"{row['requests_per_s']:g}/s answered, p50 {row['p50_ms']} ms, p99 {row['p99_ms']} ms"
        rest = f"not answered: {not_answered(row)}"
        say(f"{self.system}, {row['purpose']}, {offered(row)}: {times}, {rest}", error=True)
        return row


def offered(row: dict[str, Any]) -> str:
    """The load of a run in words."""
    return f"{row['rate']:g}/s" if row["mode"] == "open" else f"{row['clients']} clients"
