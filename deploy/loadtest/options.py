"""What `tandem loadtest` is asked to do."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deploy.bench.options import names
from deploy.loadtest.scenarios import SCENARIOS
from models.errors import ConfigError

ARRIVALS = ("poisson", "constant")
FORMAT = 1  # of the JSON that a measurement leaves


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The measurement's settings; see the options of the command.

    Attributes:
        url: of a running service; empty = none.
        bundle: folder of the bundle to start a service with; None = none.
        workers: decode workers of the service that is started; 0 = as it chooses.
        scenario: of ``SCENARIOS``.
        pair: such as "de-en"; empty = the first that is served and that texts can be made in.
        texts: file of real sentences, one a line; None = made ones.
        seed: of texts and arrivals.
        api_key: sent as ``Authorization: Bearer``; empty = none.
        arrivals: of ``ARRIVALS``.
        rates: of the curve, in requests a second; empty = shares of the highest rate.
        duration: seconds of a run.
        p99: seconds that the 99th percentile may take.
        search: whether the highest rate is looked for.
        most: highest rate to try, in requests a second.
        at_least: rate that must be sustained.
        label: name of the run in tables and pictures; empty = where it was measured.
    """

    url: str = ""
    bundle: Path | None = None
    workers: int = 0
    scenario: str = "interactive"
    pair: str = ""
    texts: Path | None = None
    seed: int = 0
    api_key: str = ""
    arrivals: str = "poisson"
    rates: tuple[float, ...] = ()
    duration: float = 20.0
    p99: float = 1.0
    search: bool = True
    most: float = 1000.0
    at_least: float = 0.0
    label: str = ""

    def check(self) -> None:
        """Raises ConfigError for what cannot be measured."""
        if bool(self.url) == (self.bundle is not None):
            raise ConfigError("give either --url of a running service, or --bundle to start one")
        if self.url and not _is_base(self.url):
            raise ConfigError(f"--url must be like http://host:8000, but is {self.url}")
        names(self.scenario, "--scenario", tuple(SCENARIOS))
        names(self.arrivals, "--arrivals", ARRIVALS)
        if bad := [rate for rate in self.rates if rate > self.most]:
            raise ConfigError(f"--rates must be at most --most, {self.most:g} a second, but are up to {max(bad):g}")
        if not self.search and not self.rates:
            raise ConfigError("with --no-search there must be --rates to measure")
        require("aiohttp")

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


def require(package: str) -> None:
    """Raises ConfigError where a package of the extra is not installed."""
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"load tests need the package {package}: install tandem with its extra [loadtest]")


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
