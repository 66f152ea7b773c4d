"""`tandem bench serve`: the service under load, beside a naive one, in one run.

The naive service is loaded in a closed loop: its rate N and its p99 are the measure. Tandem then gets Poisson arrivals
at 1.3 N and 2 N of the same texts, with the same beam and target lengths. Its capacity is found by bisection, and its
tail looked at below that. Each service runs in a process of its own; this one is the client.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tandem.extras.laboratory.options import SERVICE_PEERS, ServeOptions
from tandem.extras.laboratory.runner import take_turns
from tandem.extras.laboratory.service import verdicts
from tandem.extras.laboratory.service.loaded import LoadedService, offered
from tandem.extras.laboratory.service.verdicts import Verdict
from tandem.extras.laboratory.workload import forced_bodies, forced_texts, naive_bodies, tandem_path
from tandem.extras.loadtest.command import disturbance
from tandem.extras.loadtest.options import not_answered
from tandem.extras.loadtest.server import Server, settings_in_force, tandem_server
from tandem.extras.shared.report import console, environment, names, say, show_environment, table
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.telemetry.cgroups import usable_cores

_TEXTS = 8_192  # distinct; a run that needs more begins again
_COLUMNS = {
    "system": "system",
    "purpose": "for",
    "pass": "pass",
    "offered": "offered",
    "requests_per_s": "answered/s",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "not_answered": "not answered",
    "sentences_per_step": "sentences a step",
    "source_padding": "padding",
    "slot_padding": "unseen slots",
    "server_cpu_ms": "CPU ms",
    "client_cpu_ms": "client's",
    "others_cores": "others' cores",
    "rss_mb": "MB",
}


def measure(options: ServeOptions) -> dict[str, Any]:
    """Start the services, load them, and judge.

    Returns:
        ``bundle``, ``environment``, ``rows`` (one per run) and ``targets`` by name.

    Raises:
        ConfigError: an option is out of bounds, a peer is not installed, or a service does not start.
        BundleError: the bundle cannot be used.
    """
    peers = names(options.peers, "--peers", SERVICE_PEERS)
    if peers and importlib.util.find_spec("ctranslate2") is None:
        raise ConfigError("the naive service needs the package ctranslate2: pip install ctranslate2")
    if bad := [rate for rate in options.rates or () if not 0 < rate < float("inf")]:
        raise ConfigError(f"--rate must be above 0 requests a second, but is {bad[0]:g}")
    bundle = Bundle.load(options.bundle)
    forced = forced_texts(bundle, _TEXTS)
    workers = options.workers or usable_cores()
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        naive = None
        if peers:
            server = stack.enter_context(naive_server(options.bundle, options.peer_vocabulary, workers, stack))
            bodies = naive_bodies(forced, options.beam_size)
            naive = LoadedService("naive", server, "/translate", bodies, options.clients, options.duration, rows)
        server = stack.enter_context(tandem_server(options.bundle, workers))
        targets = {
            "memory_after_load": verdicts.memory_verdict(server.memory()),
            "cold_start": verdicts.ready_verdict(server.ready_seconds),
        }
        bodies = forced_bodies(bundle, forced, options.beam_size)
        path = tandem_path(bundle)
        ours = LoadedService("tandem", server, path, bodies, options.clients, options.duration, rows)
        targets |= _load(ours, naive, options)
    return {
        "bundle": bundle.manifest.name,
        "environment": {**environment(workers), "settings": settings_in_force()},
        "settings": {"beam": options.beam_size},
        "rows": rows,
        "targets": {name: verdict.mapping() for name, verdict in targets.items()},
    }


def naive_server(bundle: Path, types: int, workers: int, stack: ExitStack, device: str = "cpu") -> Server:
    """The naive service, with a random model of so many types in a folder that goes when ``stack`` does."""
    from tandem.extras.laboratory.decoding.conversion import write_random
    from tandem.extras.laboratory.workload import TransformerSize

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-bench-"))) / "model"
    folder.mkdir()
    kind = "int8" if device == "cpu" else "float16"
    write_random(folder, TransformerSize(), types, kind)
    arguments = ("-m", "tandem.extras.laboratory.service.naive", "--model", str(folder), "--bundle", str(bundle))
    how = ("--port", "{port}", "--workers", str(workers), "--device", device, "--compute-type", kind)
    return Server((*arguments, *how), "/healthz")


def _load(ours: LoadedService, naive: LoadedService | None, options: ServeOptions) -> dict[str, Verdict]:
    """All runs, and the verdicts on them."""
    for service in (ours, naive):
        if service is not None:
            service.warm_up()
    targets = _beside(ours, naive, options.passes) if naive is not None else {}
    closed = ours.closed("closed loop")
    for rate in options.rates or ():
        ours.open(rate, "given rate")
    best = ours.capacity(closed["requests_per_s"])
    share = f"{verdicts.LOAD:g} capacity"
    tail = [ours.open(verdicts.LOAD * best, share, number) for number in range(options.passes) if best]
    return {**targets, "tail": verdicts.tail_verdict(best, tail)}


def _beside(ours: LoadedService, naive: LoadedService, passes: int) -> dict[str, Verdict]:
    """The naive service's closed loop, and ours under multiples of its rate, side by side in every pass."""
    factors = {"service": verdicts.TARGET, "service_aim": verdicts.AIM}

    def run(factor: float | None, number: int) -> dict[str, Any]:
        if factor is None:
            row = naive.closed("N", number)
            if not row["requests_per_s"]:
                raise ConfigError(f"the naive service answered nothing: {row.get('fault', 'in this time')}")
            return row
        rate = next(row for row in reversed(naive.rows) if row["system"] == "naive")["requests_per_s"]
        return ours.open(factor * rate, f"{factor:g} N", number)

    theirs, *answers = take_turns([None, *factors.values()], passes, run)
    return {
        name: verdicts.service_verdict(theirs, own, factor)
        for (name, factor), own in zip(factors.items(), answers, strict=True)
    }


def show(result: Mapping[str, Any]) -> None:
    say(show_environment(result["environment"]))
    rows = [{**row, "offered": offered(row), "not_answered": not_answered(row)} for row in result["rows"]]
    console().print(table(f"{result['bundle']}, beam {result['settings']['beam']}", _COLUMNS, rows))
    say(*map(verdicts.in_words, result["targets"].values()))
    if warning := disturbance(result["rows"]):
        say(warning)
