"""A client that loads a service over HTTP: closed loop (so many clients, each waits for its answer) and open loop
(arrivals of a Poisson process or at even gaps, whatever the service does).

An open loop counts latency from the moment at which a request was *due*, not from when it was sent: neither a slow
service nor a late client can slow the clock down (Tene's "coordinated omission").

The client shares the machine's cores with the service, so its own cost matters, and is reported. aiohttp is used for
that reason: with 64 requests in flight it costs about 0.16 ms of processor time a request, httpx and httpcore 4 ms
(their connection pool looks at every request whenever one ends).
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import aiohttp
import numpy as np

from tandem.extras.loadtest.options import Arrivals
from tandem.models.errors import ConfigError

Ending = Literal["answered", "rejected", "failed", "unfinished"]

_REJECTED = (429, 503)
_TIMEOUT = 120.0  # seconds after which a request has failed
_HEADERS = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request.

    Attributes:
        latency: seconds from when it was due until it was answered; of an unfinished one, until nobody waited any more.
        ending: ``answered``, ``rejected`` (429 or 503), ``failed`` (any other status, no connection, or an answer that
            is wrong), or ``unfinished`` when the run ended.
        lag: seconds from when it was due until it was sent.
        fault: what came instead of an answer.
        retry_after: seconds after which a rejection asks to try again; None where it does not say.
    """

    latency: float
    ending: Ending
    lag: float = 0.0
    fault: str = ""
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class LoadRun:
    """A load that has ended.

    Attributes:
        outcomes: of every request that was due.
        seconds: that the rate is over: the duration of a closed loop; of an open one, until the last answer.
        completed: requests answered within these seconds.
        cpu: processor seconds of the client.
    """

    outcomes: tuple[RequestOutcome, ...]
    seconds: float
    completed: int
    cpu: float

    @property
    def requests_per_s(self) -> float:
        """Answers a second."""
        return self.completed / self.seconds

    def count(self, ending: Ending) -> int:
        """Requests that ended so."""
        return sum(outcome.ending == ending for outcome in self.outcomes)

    def latency(self, percent: float) -> float:
        """A percentile of the latencies in seconds; infinite where nothing was answered.

        Unfinished requests count with the seconds that they have waited, which is less than their latency will be.
        What was rejected or failed has no latency.
        """
        known = [one.latency for one in self.outcomes if one.ending in ("answered", "unfinished")]
        return percentile(known, percent) if self.count("answered") else float("inf")

    def within(self, seconds: float) -> int:
        """Requests that were answered within so many seconds."""
        return sum(outcome.ending == "answered" and outcome.latency <= seconds for outcome in self.outcomes)

    @property
    def fault(self) -> str:
        """The most frequent thing that came instead of an answer; empty where nothing did."""
        faults = Counter(outcome.fault for outcome in self.outcomes if outcome.fault)
        return faults.most_common(1)[0][0] if faults else ""

    def record(self) -> dict[str, Any]:
        """Its figures, for a row of a table: times in ms, per request where a unit says so."""
        lags = [outcome.lag for outcome in self.outcomes]
        percents = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99, "max_ms": 100}
        times = {name: _milliseconds(self.latency(percent)) for name, percent in percents.items()}
        return {
            "requests": len(self.outcomes),
            "requests_per_s": round(self.requests_per_s, 2),
            **times,
            **{ending: self.count(ending) for ending in ("rejected", "failed", "unfinished")},
            "client_cpu_ms": round(1e3 * self.cpu / max(1, len(self.outcomes)), 3),
            "client_lag_ms": round(1e3 * percentile(lags, 99), 3) if lags else 0.0,
            **({"fault": self.fault} if self.fault else {}),
        }


def arrivals(rate: float, seconds: float, seed: int = 0, kind: Arrivals = "poisson") -> list[float]:
    """When requests are due, in seconds from the start; rising, all below ``seconds``.

    Args:
        rate: requests a second, on average.
        seconds: for which they come.
        seed: of a Poisson process; the same one gives the same moments, those of one rate stretched those of another.
        kind: moments of a Poisson process, or at even gaps, the first one at 0.

    Raises:
        ConfigError: rate or length is not above zero.
    """
    if not (rate > 0 and seconds > 0):
        raise ConfigError(f"rate and duration must be above 0, but are {rate:g} and {seconds:g}")
    if kind == "constant":
        return [number / rate for number in range(math.ceil(round(rate * seconds, 9)))]
    rng = np.random.default_rng(seed)
    moments = np.empty(0, np.float64)
    while not moments.size or moments[-1] < seconds:
        gaps = rng.standard_exponential(256) / rate
        moments = np.concatenate([moments, gaps.cumsum() + (moments[-1] if moments.size else 0.0)])
    return [float(moment) for moment in moments if moment < seconds]


def closed_loop(
    url: str, bodies: Sequence[bytes], clients: int, seconds: float, headers: Mapping[str, str] | None = None
) -> LoadRun:
    """Load a service with clients of which each sends its next request when the last one was answered.

    Args:
        url: that the requests are posted to.
        bodies: JSON, sent in this order, and again from the first one when they are used up.
        clients: requests in flight.
        seconds: for which new requests are sent; those in flight then are waited for.
        headers: besides the content type, such as a key.
    """
    return asyncio.run(_closed(url, itertools.cycle(bodies), clients, seconds, headers))


def send_all(url: str, bodies: Sequence[bytes], clients: int) -> LoadRun:
    """Send every body once, with so many clients as :func:`closed_loop` has them."""
    return asyncio.run(_closed(url, iter(bodies), clients, None, None))


def open_loop(
    url: str,
    bodies: Sequence[bytes],
    schedule: Sequence[float],
    patience: float = _TIMEOUT,
    headers: Mapping[str, str] | None = None,
    fault: Callable[[int, bytes], str] = lambda number, content: "",
) -> LoadRun:
    """Load a service with requests that are sent when they are due, however many are in flight.

    Args:
        url: that the requests are posted to.
        bodies: JSON, sent in this order, and again from the first one when they are used up.
        schedule: when each request is due, in seconds from the start, rising.
        patience: seconds after the last request was due for which answers are waited for.
        headers: besides the content type, such as a key.
        fault: from the number of a request, counted from 0, and the body of its answer: what is wrong with it, empty
            where nothing is.
    """
    return asyncio.run(_open(url, bodies, schedule, patience, headers, fault))


def connect(headers: Mapping[str, str] | None = None, *, keep: bool = True) -> aiohttp.ClientSession:
    """A session with a connection for each request in flight, which is kept for the next one, or is not."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=not keep),
        timeout=aiohttp.ClientTimeout(total=_TIMEOUT),
        headers={**_HEADERS, **(headers or {})},
    )


async def send(
    session: aiohttp.ClientSession,
    url: str,
    body: bytes,
    due: float | None = None,
    check: Callable[[bytes], str] = lambda content: "",
) -> RequestOutcome:
    """Post one request.

    Args:
        session: of :func:`connect`.
        url: that it is posted to.
        body: JSON.
        due: moment of ``time.perf_counter`` from which latency counts; None = now.
        check: what is wrong with an answer of status 200, empty where nothing is.
    """
    sent = time.perf_counter()
    due = sent if due is None else due
    ending: Ending = "answered"
    fault, again = "", None
    try:
        async with session.post(url, data=body) as response:
            content = await response.read()
        latency = time.perf_counter() - due  # before the answer is looked at
        if response.status != 200:
            ending = "rejected" if response.status in _REJECTED else "failed"
            fault = f"{response.status} {content[:200].decode(errors='replace')}"
            seconds = response.headers.get("Retry-After", "")
            again = int(seconds) if seconds.isdecimal() else None
        elif fault := check(content):
            ending = "failed"
    except (aiohttp.ClientError, TimeoutError) as error:
        latency = time.perf_counter() - due
        ending, fault = "failed", f"{type(error).__name__}: {error}"
    return RequestOutcome(latency, ending, sent - due, fault, again)


async def _closed(
    url: str, bodies: Iterator[bytes], clients: int, seconds: float | None, headers: Mapping[str, str] | None
) -> LoadRun:
    outcomes: list[tuple[float, RequestOutcome]] = []  # with when it ended, in seconds from the start
    started, cpu = time.perf_counter(), time.process_time()

    async def client(session: aiohttp.ClientSession) -> None:
        while seconds is None or time.perf_counter() - started < seconds:
            body = next(bodies, None)
            if body is None:
                return
            outcome = await send(session, url, body)
            outcomes.append((time.perf_counter() - started, outcome))

    async with connect(headers) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    length = time.perf_counter() - started if seconds is None else seconds
    completed = sum(outcome.ending == "answered" and ended <= length for ended, outcome in outcomes)
    return LoadRun(tuple(outcome for _, outcome in outcomes), length, completed, time.process_time() - cpu)


async def _open(
    url: str,
    bodies: Sequence[bytes],
    schedule: Sequence[float],
    patience: float,
    headers: Mapping[str, str] | None,
    fault: Callable[[int, bytes], str],
) -> LoadRun:
    cpu = time.process_time()
    async with connect(headers) as session:
        started = time.perf_counter()
        due = [started + moment for moment in schedule]
        tasks = []
        for number, (moment, body) in enumerate(zip(due, itertools.cycle(bodies), strict=False)):
            delay = moment - time.perf_counter()
            if delay > 0:
                await asyncio.sleep(delay)
            tasks.append(asyncio.create_task(send(session, url, body, moment, partial(fault, number))))
        pending = (await asyncio.wait(tasks, timeout=patience))[1] if tasks else set()
        for task in pending:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        outcomes = [_ended(result, moment) for result, moment in zip(ended, due, strict=True)]
    completed = sum(outcome.ending == "answered" for outcome in outcomes)
    last = max((moment + one.latency for moment, one in zip(due, outcomes, strict=True)), default=started)
    return LoadRun(tuple(outcomes), max(last - started, 1e-9), completed, time.process_time() - cpu)


def _ended(result: RequestOutcome | BaseException, due: float) -> RequestOutcome:
    """The outcome of a request that was sent, or given up when the run ended."""
    if isinstance(result, asyncio.CancelledError):
        return RequestOutcome(time.perf_counter() - due, "unfinished", fault="no answer before the run ended")
    if isinstance(result, BaseException):
        raise result
    return result


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that ``percent`` of 100 are at most (linear between neighbours)."""
    return float(np.percentile(np.asarray(values, np.float64), percent))


def _milliseconds(seconds: float) -> float | None:
    """None where it is infinite, which JSON does not know."""
    return round(1e3 * seconds, 2) if np.isfinite(seconds) else None
