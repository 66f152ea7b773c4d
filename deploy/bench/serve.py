"""`tandem bench serve`: the service under load, beside a naive one, in one run.

The naive service is loaded in a closed loop: its rate N and its p99 are the measure. Tandem then gets Poisson arrivals
at 1.3 N and 2 N of the same texts, with the same beam and target lengths. Its capacity is found by bisection, and its
tail looked at below that. Each service runs in a process of its own; this one is the client.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.bench import verdicts
from deploy.bench.options import RANDOM_TRANSFORMER
from deploy.bench.report import Output, console, draw_curves, show_environment, table
from deploy.bench.requests import forced_bodies, forced_texts, naive_bodies, tandem_path
from deploy.bench.servers import Server, settings_in_force, tandem_server
from deploy.bench.statistics import environment
from deploy.bench.trial import Load, Trial
from deploy.bench.verdicts import Row, Verdict, not_answered
from models.bundle import Bundle
from models.errors import ConfigError
from service.telemetry.cgroups import usable_cores

PEERS = ("naive",)
_TEXTS = 8_192  # distinct; a run that needs more begins again
_GIVE_UP = 1.5  # seconds after its last arrival at which a run that looks for the capacity has failed
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


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What to measure.

    Attributes:
        bundle: folder.
        clients: requests in flight in closed loops.
        duration: seconds of a run.
        rates: further rates of arrivals, requests a second.
        beam_size: of every request.
        workers: decode workers of Tandem and sentences in work of the naive service; 0 = one per core.
        passes: of the runs that decide about the targets.
        peers: of ``PEERS``.
        texts: file of lines; None = pseudo-text.
        peer_vocabulary: types of the peers' random model.
        seed: of texts and arrivals.
    """

    bundle: Path
    clients: int = 64
    duration: float = 20.0
    rates: tuple[float, ...] = ()
    beam_size: int = 5
    workers: int = 0
    passes: int = 3
    peers: tuple[str, ...] = ()
    texts: Path | None = None
    peer_vocabulary: int = 10_000
    seed: int = 0

    def check(self) -> None:
        """Raises ConfigError for what cannot be measured."""
        if "naive" in self.peers and importlib.util.find_spec("ctranslate2") is None:
            raise ConfigError("the naive service needs the package ctranslate2: pip install ctranslate2")
        bad = [rate for rate in self.rates if not 0 < rate < float("inf")]
        if bad:
            raise ConfigError(f"--rate must be above 0 requests a second, but is {bad[0]:g}")

    def load(self, bodies: list[bytes]) -> Load:
        """The part that every run shares."""
        return Load(bodies, self.clients, self.duration, self.seed)


def serve_command(options: ServeOptions, output: Output) -> None:
    """Measure, judge, and print a table or JSON.

    Raises:
        ConfigError: an option is out of bounds, a peer is not installed, or a service does not start.
        BundleError, CorpusError: the bundle or the file of texts cannot be used.
    """
    options.check()
    output.check()
    result = run_serve(options)
    output.write(result)
    if output.plot is not None:
        path = draw(result["rows"], output.plot / "serve.png")
        console(error=True).print(str(path), highlight=False, soft_wrap=True)
    if not output.as_json:
        shown = console()
        shown.print(show_environment(result["environment"]), highlight=False, soft_wrap=True)
        rows = [{**row, "offered": _offered(row), "not_answered": not_answered(row)} for row in result["rows"]]
        shown.print(table(f"{result['bundle']}, beam {options.beam_size}", _COLUMNS, rows))
        for verdict in result["targets"].values():
            shown.print(verdicts.say(verdict), highlight=False, soft_wrap=True)
        if warning := verdicts.disturbance(result["rows"]):
            shown.print(warning, highlight=False, soft_wrap=True)


def run_serve(options: ServeOptions) -> dict[str, Any]:
    """Start the services, load them, and judge.

    Returns:
        ``bundle``, ``environment``, ``rows`` (one per run) and ``targets`` by name.
    """
    bundle = Bundle.load(options.bundle)
    forced = forced_texts(bundle, options.texts, _TEXTS, options.seed)
    workers = options.workers or usable_cores()
    rows: list[Row] = []
    with ExitStack() as stack:
        peer = None
        if "naive" in options.peers:
            server = stack.enter_context(naive_server(options, stack, workers))
            bodies = naive_bodies(forced, options.beam_size)
            peer = Trial("naive", server, "/translate", options.load(bodies), rows)
        server = stack.enter_context(tandem_server(options.bundle, workers))
        targets = {
            "memory_after_load": verdicts.memory_verdict(server.memory()),
            "cold_start": verdicts.ready_verdict(server.ready_seconds),
        }
        bodies = forced_bodies(bundle, forced, options.beam_size)
        ours = Trial("tandem", server, tandem_path(bundle), options.load(bodies), rows)
        targets |= _measure(ours, peer, options)
    return {
        "bundle": bundle.manifest.name,
        "environment": {**environment(workers), "settings": settings_in_force()},
        "rows": rows,
        "targets": {name: verdict.mapping() for name, verdict in targets.items()},
    }


def naive_server(options: ServeOptions, stack: ExitStack, workers: int) -> Server:
    """The naive service, with a random model in a folder that goes when ``stack`` does."""
    from deploy.bench.peers.conversion import write_random

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-bench-"))) / "model"
    folder.mkdir()
    write_random(folder, vocabulary=options.peer_vocabulary, precision="int8", **RANDOM_TRANSFORMER)
    arguments = ("-m", "deploy.bench.naive", "--model", str(folder), "--bundle", str(options.bundle))
    return Server((*arguments, "--port", "{port}", "--workers", str(workers)), "/healthz")


def _measure(ours: Trial, peer: Trial | None, options: ServeOptions) -> dict[str, Verdict]:
    """All runs, and the verdicts on them."""
    for trial in (ours, peer):
        if trial is not None:
            trial.warm_up()
    targets = _beside(ours, peer, options.passes) if peer is not None else {}
    closed = ours.closed("closed loop")
    for rate in options.rates:
        ours.open(rate, "given rate")
    best = find_capacity(ours, closed["requests_per_s"])
    share = f"{verdicts.LOAD:g} capacity"
    tail = [ours.open(verdicts.LOAD * best, share, number) for number in range(options.passes) if best]
    return {**targets, "tail": verdicts.tail_verdict(best, tail)}


def _beside(ours: Trial, peer: Trial, passes: int) -> dict[str, Verdict]:
    """The peer's closed loop, and ours under multiples of its rate, side by side in every pass."""
    names = {verdicts.TARGET: "service", verdicts.AIM: "service_aim"}
    theirs: list[Row] = []
    answers: dict[float, list[Row]] = {factor: [] for factor in names}
    for number in range(passes):
        theirs.append(peer.closed("N", number))
        rate = theirs[-1]["requests_per_s"]
        if not rate:
            raise ConfigError(f"the naive service answered nothing: {theirs[-1].get('fault', 'in this time')}")
        for factor, found in answers.items():
            found.append(ours.open(factor * rate, f"{factor:g} N", number))
    return {names[factor]: verdicts.service_verdict(theirs, found, factor) for factor, found in answers.items()}


def find_capacity(trial: Trial, closed_rate: float) -> float:
    """The highest rate with a p99 of at most a second; ``closed_rate`` says where to begin."""

    def sustains(rate: float) -> bool:
        row = trial.open(rate, "capacity", patience=_GIVE_UP)
        late = row["p99_ms"] is None or row["p99_ms"] > 1e3 * verdicts.CAPACITY_P99
        return not (late or not_answered(row))

    return verdicts.capacity(sustains, 0.9 * closed_rate) if closed_rate else 0.0


def draw(rows: Sequence[Row], path: Path) -> Path:
    """Latency over the rate of arrivals; the naive service is a point, at the rate of its closed loop."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        closed = row["mode"] == "closed"
        if row["unfinished"] or (closed and row["system"] == "tandem"):
            continue
        for percent in ("p50", "p99"):
            if row[f"{percent}_ms"] is not None:
                name = f"{row['system']} {percent}" + (f", {row['clients']} clients" if closed else "")
                point = (row["requests_per_s"] if closed else row["rate"], row[f"{percent}_ms"])
                curves.setdefault(name, []).append(point)
    return draw_curves(path, curves, x="requests per second", y="latency in ms", title="Under Poisson arrivals")


def _offered(row: Row) -> str:
    return f"{row['rate']:g}/s" if row["mode"] == "open" else f"{row['clients']} clients"
