"""What `tandem loadtest` is asked, and its result in words."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from typer import Option

from tandem.extras.loadtest.scenarios import Scenario
from tandem.extras.shared.report import Out
from tandem.models.command import AsJson
from tandem.models.errors import ConfigError

Arrivals: TypeAlias = Literal["poisson", "constant"]
Result = dict[str, Any]


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
