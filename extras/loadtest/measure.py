"""A service under rising load: every run leaves a row; the highest rate that keeps a p99 is found by bisection.

Requests are due at moments of a Poisson process or at even gaps, whatever the service does (an open loop), and latency
counts from when a request was due: see :mod:`extras.loadtest.client`, whose client this uses. Clients that wait for
their answers first give a slow service less load, so that it looks better than it is.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tandem.extras.loadtest.client import LoadRun, arrivals, closed_loop, open_loop, percentile
from tandem.extras.loadtest.options import LoadOptions, Result, not_answered, parse_rates
from tandem.extras.loadtest.scenarios import PATH, Call, Calls, choose_pair, served_pairs
from tandem.extras.loadtest.texts import LANGUAGES, read_lines
from tandem.extras.shared.report import environment, say
from tandem.models.errors import ConfigError, TandemError

if TYPE_CHECKING:  # what starts a service needs the packages that serve; who loads one at a URL has them not
    from tandem.extras.loadtest.server import Server

# Of the highest rate, where no rates are given: the curve. The highest one is measured again with it.
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0, 1.15, 1.5)
LATE_SHARE, BUSY = 0.05, 0.85  # of the bound, and of a core: beyond them the client is no bystander
_WARM_UP, _CLIENTS, _BODIES = 3.0, 8, 400  # seconds, requests in flight and distinct ones
_FEWEST = 20  # requests of a run, which lasts longer where the rate is low
_PATIENCE = 10.0  # seconds after its last arrival for which answers are waited for, at least
_START, _STEP = 0.7, 2.0  # of the search: share of the closed loop's rate, and factor until it knows both sides
_PRECISION, _MOST_RUNS = 1.05, 12  # of the search: where it ends
_COME_ROUND = 60.0  # seconds of waiting in which a service has come round after a run, or is gone


class Gone(TandemError):
    """The service answers nothing any more."""


@dataclass(slots=True)
class Steps:
    """A service, and the runs that it has had.

    Attributes:
        url: of the service.
        options: see there.
        calls: what is sent; never the same twice, so that no cache answers.
        server: where it was started here.
        rows: one per run, in order.
    """

    url: str
    options: LoadOptions
    calls: Calls
    server: Server | None = None
    rows: list[Result] = field(default_factory=list)

    def warm_up(self) -> float:
        """Load it for a moment. Returns the requests a second that a few clients get who wait for their answers.

        Raises:
            ConfigError: nothing was answered.
        """
        calls = list(itertools.islice(self.calls, _BODIES))
        seconds = min(_WARM_UP, self.options.duration)
        run = closed_loop(self.url + PATH, [call.body for call in calls], _CLIENTS, seconds, self._headers)
        if not run.count("answered"):
            raise ConfigError(f"{self.options.where} answered none of {len(run.outcomes)} requests: {run.fault}")
        return max(run.requests_per_s, 1 / seconds)

    def run(self, rate: float, purpose: str) -> Result:
        """Load it with so many requests a second; the row is kept. Raises Gone where it answers nothing afterwards."""
        seconds = max(self.options.duration, _FEWEST / rate)
        schedule = arrivals(rate, seconds, self.options.seed or 0, self.options.arrivals) or [0.0]
        calls = list(itertools.islice(self.calls, len(schedule)))
        run, further = self._watched(
            lambda: open_loop(
                self.url + PATH,
                [call.body for call in calls],
                schedule,
                self._patience,
                self._headers,
                lambda number, reply: calls[number].fault(reply),
            )
        )
        row = {"purpose": purpose, "rate": round(rate, 3), **figures(run, calls, seconds, self.options), **further}
        self.rows.append(row)
        tell(row)
        self._settle()
        return row

    def highest(self, start: float) -> float:
        """The highest rate that is sustained, within 5%, by bisection from a first one; 0 where none is."""

        def sustains(rate: float) -> bool:
            return rate <= self.options.most and bool(self.run(rate, "search")["sustained"])

        return highest_rate(sustains, min(start, self.options.most), _STEP)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.options.api_key}"} if self.options.api_key else {}

    @property
    def _patience(self) -> float:
        return max(_PATIENCE, 1.5 * self.options.p99)

    def _watched(self, load: Callable[[], LoadRun]) -> tuple[LoadRun, dict[str, Any]]:
        """A run, and what its server did meanwhile where it was started here."""
        if self.server is None:
            return load(), {}
        from tandem.extras.loadtest.server import watched

        return watched(self.server, load)

    def _settle(self) -> None:
        """Wait until what the last run has left behind is done: until a request is answered."""
        waited = 0.0
        while True:
            run = open_loop(self.url + PATH, [next(self.calls).body], [0.0], self._patience, self._headers)
            (outcome,) = run.outcomes
            if outcome.ending == "answered":
                return
            if waited >= _COME_ROUND:
                break
            if outcome.ending == "unfinished":
                waited += self._patience
            else:
                pause = outcome.retry_after or 1
                time.sleep(pause)
                waited += pause
        if outcome.ending != "rejected":
            raise Gone(f"{self.options.where} answers nothing any more: {outcome.fault}")


def measure(options: LoadOptions) -> dict[str, Any]:
    """Load a service: warm up, look for the highest rate, and measure the curve.

    Returns:
        ``rows`` (one per run), ``highest`` (requests a second), ``met``, ``faults``, and what belongs to the figures.

    Raises:
        ConfigError: the service does not start or answer, or the pair or the texts cannot be had.
    """
    if options.seed is None:
        options = replace(options, seed=random.randrange(2**31))
    with opened(options) as steps:
        start = _START * steps.warm_up()
        try:
            return _result(steps, _highest(steps, start))
        except Gone as gone:  # what was measured before is kept
            return _result(steps, _sustained(steps), str(gone))


def _highest(steps: Steps, start: float) -> float:
    """All runs. Returns the highest rate that was sustained; ``start``: the first one to try."""
    options, rates = steps.options, parse_rates(steps.options.rates)
    for rate in rates:
        steps.run(rate, "curve")
    highest = _sustained(steps)
    if not options.no_search:
        highest = steps.highest(highest or start)
    if not rates:
        for share in SHARES:
            steps.run(min(share * (highest or start), options.most), "curve")
    return highest


def _sustained(steps: Steps) -> float:
    return max((float(row["rate"]) for row in steps.rows if row["sustained"]), default=0.0)


def _result(steps: Steps, highest: float, gone: str = "") -> dict[str, Any]:
    options, rows = steps.options, sorted(steps.rows, key=lambda row: float(row["rate"]))
    return {
        "loadtest": 1,
        "label": options.label or options.where,
        "service": options.where,
        "pair": str(steps.calls.pair),
        "scenario": options.scenario,
        "texts": options.texts.name if options.texts else "made",
        "seed": options.seed,
        "arrivals": options.arrivals,
        "duration": options.duration,
        "p99_bound_ms": 1e3 * options.p99,
        "client": environment(threads=1),
        "rows": rows,
        "highest": round(highest, 3),
        "at_least": options.at_least,
        "faults": sorted({row["fault"] for row in rows if row["failed"] and "fault" in row} | ({gone} - {""})),
        "met": bool(highest) and highest >= options.at_least and not gone and not any(row["failed"] for row in rows),
    }


@contextmanager
def opened(options: LoadOptions) -> Iterator[Steps]:
    """A service that is ready to be loaded, started where there is none.

    Raises:
        ConfigError: see :func:`measure`.
    """
    with ExitStack() as stack:
        server, url = None, options.url.rstrip("/")
        if options.bundle is not None:
            from tandem.extras.loadtest.server import tandem_server

            server = stack.enter_context(tandem_server(options.bundle, options.workers))
            url = server.url
        lines = read_lines(options.texts) if options.texts else []
        pair = choose_pair(served_pairs(url), options.pair, LANGUAGES)
        calls = Calls.of(options.scenario, pair, str(options.seed), lines)
        yield Steps(url, options, calls, server)


def figures(run: LoadRun, calls: list[Call], seconds: float, options: LoadOptions) -> dict[str, Any]:
    """What a run amounts to.

    Args:
        run: that has ended.
        calls: what was sent, one for each outcome.
        seconds: for which requests were due.
        options: with the bound, within which a good answer comes.
    """
    length = max(run.seconds, seconds)
    pairs = zip(run.outcomes, calls, strict=True)
    record, p99 = run.record(), run.latency(99)
    lag = percentile([outcome.lag for outcome in run.outcomes], 99)
    row = {
        **record,
        "seconds": round(seconds, 3),
        "offered_per_s": round(len(calls) / seconds, 3),
        "requests_per_s": round(run.completed / length, 3),
        "goodput_per_s": round(run.within(options.p99) / length, 3),
        "characters_per_s": round(sum(c.characters for o, c in pairs if o.ending == "answered") / length, 1),
        "client_cores": round(run.cpu / run.seconds, 3),
        "client_late": lag > LATE_SHARE * options.p99 or run.cpu > BUSY * run.seconds,
        "sustained": math.isfinite(p99) and p99 <= options.p99 and not not_answered(record),
    }
    waits = [outcome.retry_after for outcome in run.outcomes if outcome.retry_after is not None]
    return row | ({"retry_after_s": percentile(waits, 50)} if waits else {})


def highest_rate(sustains: Callable[[float], bool], start: float, step: float) -> float:
    """The highest rate that a service sustains, within 5%, by bisection.

    Rates below one that was sustained are taken to be sustained too. Where the noise of short runs makes an answer
    wrong, the result is off by as much.

    Args:
        sustains: loads the service with a rate, and says whether it kept up.
        start: first rate to try, in requests a second, above 0.
        step: factor from one rate to the next until one is sustained and one is not.

    Returns:
        The highest rate that was sustained; 0 where none was in twelve runs.
    """
    low, high, rate = 0.0, math.inf, start
    for _ in range(_MOST_RUNS):
        low, high = (rate, high) if sustains(rate) else (low, rate)
        if high <= low * _PRECISION:
            break
        outside = low * step or high / step
        rate = (low + high) / 2 if low and high < math.inf else outside
    return low


def tell(row: Result) -> None:
    """A run in one line, on standard error."""
    state = "sustained" if row["sustained"] else "not sustained"
    times = f"{row['goodput_per_s']:g}/s good, p50 {row['p50_ms']} ms, p99 {row['p99_ms']} ms"
    say(f"{row['purpose']}, {row['rate']:g}/s: {times}, not answered: {not_answered(row)}: {state}", error=True)
