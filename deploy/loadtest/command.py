"""`tandem loadtest`: what it is asked, and what it leaves: table, JSON, picture, exit status."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from typer import Option

from deploy.loadtest.scenarios import Scenario
from deploy.outputs import check_folder
from deploy.report import Out, cell, console, run_measurement, say, show_environment, table
from models.command import AsJson
from models.errors import ConfigError

Arrivals: TypeAlias = Literal["poisson", "constant"]
PICTURE = "loadtest.png"
Result = dict[str, Any]
QUIET_CORES = 0.2  # that others may keep busy
_FEW = 300  # requests of which a p99 is three or fewer
_COLUMNS = {
    "purpose": "for",
    "offered_per_s": "offered/s",
    "requests": "requests",
    "requests_per_s": "answered/s",
    "goodput_per_s": "good/s",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "rejected": "rejected",
    "lost": "lost",
    "sustained": "kept p99",
    "client_lag_ms": "client lag ms",
    "client_cores": "client cores",
    "server_cpu_ms": "CPU ms",
    "others_cores": "others' cores",
    "rss_mb": "MB",
}


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """What is loaded, and how."""

    url: Annotated[str, Option(help="A service that runs, such as http://host:8000.")] = ""
    bundle: Annotated[Path | None, Option(help="Or a bundle folder: a service is started with it.")] = None
    rates: Annotated[
        str, Option(help="Requests a second to measure, such as 5,10,20. [shares of the highest rate]")
    ] = ""
    p99: Annotated[float, Option(min=0.001, max=60, help="Seconds that the 99th percentile may take.")] = 1.0
    no_search: Annotated[
        bool, Option("--no-search", help="Only measure --rates, do not look for the highest that keeps the p99.")
    ] = False
    at_least: Annotated[float, Option(min=0, help="Exit status 1 where the highest rate is below this.")] = 0.0
    most: Annotated[float, Option(min=0.1, max=100_000, help="Never send more requests a second.")] = 1000.0
    duration: Annotated[float, Option(min=0.1, max=3600, help="Seconds of each run.")] = 20.0
    arrivals: Annotated[Arrivals, Option(help="poisson (as of many people), or constant: at even gaps.")] = "poisson"
    scenario: Annotated[Scenario, Option(help="What is sent: sentences, or a mixture.")] = "interactive"
    pair: Annotated[str, Option(help="Pair of languages, such as de-en. [the first that is served]")] = ""
    texts: Annotated[Path | None, Option(help="Real sentences, one a line. [made ones]")] = None
    workers: Annotated[int, Option(min=0, help="With --bundle: decode workers; 0 = as the service chooses.")] = 0
    api_key: Annotated[
        str, Option(envvar="LOADTEST_API_KEY", help="Key; give it in the variable, where nobody sees it.")
    ] = ""
    seed: Annotated[int | None, Option(min=0, help="Of texts and arrivals. [another one every time]")] = None
    label: Annotated[str, Option(help="Name of this run in tables and pictures. [where it was measured]")] = ""
    as_json: AsJson = False
    out: Out = None
    plot: Annotated[Path | None, Option(metavar="FOLDER", help="Draw curves into this folder, as PNG.")] = None

    def check(self) -> None:
        """Raises ConfigError for what cannot be measured."""
        if bool(self.url) == (self.bundle is not None):
            raise ConfigError("give either --url of a running service, or --bundle to start one")
        if self.url and not _is_base(self.url):
            raise ConfigError(f"--url must be like http://host:8000, but is {self.url}")
        if bad := [rate for rate in parse_rates(self.rates) if rate > self.most]:
            raise ConfigError(f"--rates must be at most --most, {self.most:g} a second, but are up to {max(bad):g}")
        if self.no_search and not self.rates:
            raise ConfigError("with --no-search there must be --rates to measure")
        for package in (*(["matplotlib"] if self.plot is not None else []), "aiohttp"):
            if importlib.util.find_spec(package) is None:
                raise ConfigError(f"load tests need the package {package}: install tandem with its extra [loadtest]")

    @property
    def where(self) -> str:
        """What is loaded, in words, without a password of its address."""
        if self.bundle is not None:
            return self.bundle.resolve().name
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def loadtest(options: LoadOptions) -> None:
    """Find out what load a service bears: latency over load, and the highest rate that keeps a p99.

    Requests are sent when they are due, whatever the service does; latency counts from then. It is loaded beyond what
    it can bear: ask before you do this to a service that others use. The exit status is 1 where no rate kept the p99 or
    a request failed; rejections (429, 503) are no failures. docs/load-tests.md explains the figures.

    Example: tandem loadtest --url http://localhost:8000 --p99 0.5 --out today.json --plot curves
    """
    check_folder(options.plot, "--plot")
    options.check()
    from deploy.loadtest.measure import measure  # its packages are the extra's, which the check has looked for

    def draw(result: dict[str, Any]) -> None:
        if options.plot is not None:
            from deploy.loadtest.pictures import draw_curves

            say(str(draw_curves(result, options.plot / PICTURE)), error=True)

    run_measurement(options, measure, _show, draw)


def _show(result: dict[str, Any]) -> None:
    say(f"client: {show_environment(result['client'])}")
    rows = [{**row, "lost": row["failed"] + row["unfinished"]} for row in result["rows"]]
    console().print(table(title(result), _COLUMNS, rows))
    say(*verdict(result), *warnings(result))


def _is_base(url: str) -> bool:
    """Whether paths can be added to an address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # brackets of IPv6 that are not closed, a port that there is not
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and not parts.query + parts.fragment


def parse_rates(text: str) -> tuple[float, ...]:
    """Rates from ``5,10,20``, rising, each once. Raises ConfigError for anything else; empty text has none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        rates = sorted({float(part) for part in parts})
    except ValueError:
        rates = [math.nan]
    if not all(0 < rate < math.inf for rate in rates):
        raise ConfigError(f"--rates must be requests a second above 0, such as 5,10,20, but is {text!r}")
    return tuple(rates)


def title(result: Result) -> str:
    """A run in words."""
    return f"{result['label']}: {result['pair']}, {result['scenario']}, {result['arrivals']} arrivals"


def not_answered(row: Result) -> int:
    """Requests of a run that were rejected, failed, or unfinished when it ended."""
    return int(row["rejected"] + row["failed"] + row["unfinished"])


def disturbance(rows: Sequence[Result]) -> str:
    """A warning where others used the cores during the runs; empty where they hardly did, or nobody can tell."""
    most = max((row.get("others_cores", 0.0) for row in rows), default=0.0)
    if most <= QUIET_CORES:
        return ""
    return (
        f"others kept up to {most:.2g} cores busy during a run: its figures say little, measure again when it is quiet"
    )


def at_highest(result: Result) -> list[dict[str, Any]]:
    """The runs at the highest rate, those of the curve first; none where there is no such rate."""
    rows = [row for row in result["rows"] if abs(row["rate"] - result["highest"]) < 1e-2]
    return sorted(rows, key=lambda row: str(row["purpose"]))


def verdict(result: Result) -> list[str]:
    """What was found, and what of it ends the command with status 1."""
    bound = f"p99 <= {cell(float(result['p99_bound_ms']))} ms and nothing rejected"
    highest = f"highest rate with {bound}: {result['highest']:.4g} requests a second"
    lines = [highest if result["highest"] else f"no rate that was tried kept {bound}"]
    if result["at_least"]:
        state = "reached" if result["highest"] >= result["at_least"] else "NOT reached"
        lines.append(f"{state}: at least {result['at_least']:g} requests a second")
    return [*lines, *(f"FAILED: {fault}" for fault in result["faults"])]


def warnings(result: Result) -> list[str]:
    """What makes the figures worth less."""
    late = [row["rate"] for row in result["rows"] if row["client_late"]]
    there = at_highest(result)
    found = []
    if late:
        found.append(
            f"the client was busy or late at {', '.join(f'{rate:g}' for rate in late)}/s: these figures hold its own"
            " delay; give it a machine, or a core, of its own"
        )
    if busy := disturbance(result["rows"]):
        found.append(busy)
    above = [row["rate"] for row in result["rows"] if row["sustained"] and row["rate"] > result["highest"] + 1e-2]
    if above or not all(row["sustained"] for row in there):
        what = f"{max(above):g}/s was kept as well" if above else "the highest rate was measured twice, and kept once"
        found.append(f"{what}: the service or its machine is not steady; a longer --duration says more")
    if there and there[0]["requests"] < _FEW:
        found.append(
            f"the p99 at the highest rate is of {there[0]['requests']} requests: a longer --duration says more"
        )
    return found
