"""Five times more requests than the service can answer: what it answers, how it refuses, how soon it is well again."""

from __future__ import annotations

import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from tandem.extras.laboratory.abuse.trials import Setting, TrialFinding
from tandem.extras.laboratory.service.loaded import LoadedService
from tandem.extras.laboratory.service.verdicts import Verdict
from tandem.extras.loadtest.client import LoadRun, RequestOutcome, arrivals, open_loop, percentile
from tandem.extras.loadtest.scenarios import DIRECT
from tandem.extras.loadtest.server import Server

FACTOR = 5.0
_LOST = 0.1  # share of the capacity that overload may cost
_REFUSAL = 0.5  # seconds: p95 of a refusal
_RECOVERY = 5.0  # seconds from the last arrival until a request is answered as if nothing had been
_GROWTH_MB = 16.0  # between two overloads of one kind: the same work in flight, so the same memory
_SLOW = 1.0  # seconds: what a recovered service takes at most for a short text
_PATIENCE = 60.0
_PROBE = 0.2  # seconds between two looks at the service
_IN_A_ROW = 3


def overload(setting: Setting) -> TrialFinding:
    """Find the capacity, then offer five times as much, twice; the second time is judged."""
    bodies, given = setting.bodies, setting.options
    with setting.server() as server, ThreadPoolExecutor(1) as background:
        service = LoadedService("tandem", server, setting.path, bodies, given.clients, given.duration / 2)
        service.warm_up()
        capacity = service.capacity(service.closed("closed loop")["requests_per_s"])
        schedule = arrivals(FACTOR * max(capacity, 1.0), given.duration)
        load = background.submit(open_loop, service.url, bodies, schedule, _PATIENCE)
        before = _peak(server, given.duration)
        load.result()
        load = background.submit(open_loop, service.url, bodies, schedule, _PATIENCE)
        peak = _peak(server, given.duration)
        recovery = _recovery(service.url, bodies[0])
        run = load.result()
    refused, figures = [one for one in run.outcomes if one.ending == "rejected"], run.record()
    return TrialFinding(
        f"What happens at {FACTOR:g} times the capacity?",
        f"Poisson arrivals at {FACTOR:g} times the highest rate whose p99 is at most a second, found in the same run,"
        f" for {given.duration:g} s; then a short text again and again until it is answered within {_SLOW:g} s.",
        judge(run, capacity, given.duration, (peak - before, recovery)),
        {
            "capacity_per_s": round(capacity, 1),
            "offered_per_s": round(FACTOR * capacity, 1),
            "answered_per_s": round(answered_rate(run, given.duration), 1),
            "refused": len(refused),
            "answered_p50_ms": figures["p50_ms"],
            "answered_p99_ms": figures["p99_ms"],
            "refusal_p50_ms": _milliseconds(refused, 50),
            "refusal_p99_ms": _milliseconds(refused, 99),
            "first_peak_mb": round(before, 1),
            "second_peak_mb": round(peak, 1),
        },
        fault=next((one.fault for one in run.outcomes if one.ending in ("failed", "unfinished")), ""),
    )


def judge(run: LoadRun, capacity: float, seconds: float, after: tuple[float, float | None]) -> list[Verdict]:
    """What overload may cost.

    Args:
        run: the load.
        capacity: requests a second.
        seconds: for which requests arrived.
        after: MB by which the peak of memory grew, and seconds until the service was well again (None = it was not).
    """
    growth, recovery = after
    refused = [one for one in run.outcomes if one.ending == "rejected"]
    lost = 1 - answered_rate(run, seconds) / capacity if capacity else None
    unsaid = sum(one.retry_after is None for one in refused)
    broken = run.count("failed") + run.count("unfinished")
    slow = percentile([one.latency - one.lag for one in refused], 95) if refused else None
    return [
        Verdict("share of the capacity that is lost", lost, _LOST),
        Verdict("seconds until 95% of the refusals had come", slow, _REFUSAL),
        Verdict("refusals without Retry-After", float(unsaid), 0.0),
        Verdict("requests neither answered nor refused", float(broken), 0.0),
        Verdict("MB by which the peak of memory grew, first overload to second", growth, _GROWTH_MB),
        Verdict("seconds from the last arrival until a text is answered as usual", recovery, _RECOVERY),
    ]


def answered_rate(run: LoadRun, seconds: float) -> float:
    """Answers a second, over the time in which requests arrived or were still answered."""
    return run.count("answered") / max(run.seconds, seconds)


def _peak(server: Server, seconds: float) -> float:
    """The largest resident memory seen in so many seconds, in MB."""
    most, until = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        most = max(most, server.memory().get("rss_mb", 0.0))
        time.sleep(_PROBE)
    return most


def _recovery(url: str, body: bytes) -> float | None:
    """Seconds until the first of three texts in a row that are answered quickly; None where that takes too long."""
    content = json.loads(body) | {"q": "1 a", "min_length": 1, "max_length": 4}
    request = urllib.request.Request(url, json.dumps(content).encode(), {"content-type": "application/json"})
    started = time.perf_counter()
    quick: list[float] = []
    while time.perf_counter() - started < _PATIENCE:
        asked = time.perf_counter()
        well = _is_answered(request) and time.perf_counter() - asked <= _SLOW
        quick = [*quick, asked - started] if well else []
        if len(quick) == _IN_A_ROW:
            return quick[0]
        time.sleep(_PROBE / 2)
    return None


def _is_answered(request: urllib.request.Request) -> bool:
    try:
        with DIRECT.open(request, timeout=_PATIENCE) as response:
            response.read()
    except OSError:  # a refusal among them
        return False
    return True


def _milliseconds(outcomes: list[RequestOutcome], percent: float) -> float | None:
    times = [one.latency - one.lag for one in outcomes]
    if not times:
        return None
    return round(1e3 * percentile(times, percent), 1)
