"""The variables of Locust's users, ``LOADTEST_*``; how many users there are and for how long is Locust's own business
(``LOCUST_USERS``, ``LOCUST_SPAWN_RATE``, ``LOCUST_RUN_TIME``, ``LOCUST_HOST``).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.loadtest.scenarios import BULK_TEXTS, SCENARIOS
from deploy.loadtest.texts import read_lines


@dataclass(frozen=True, slots=True)
class Variables:
    """What Locust's users do.

    Attributes:
        scenario: of ``SCENARIOS``.
        pair: such as "de-en"; empty = the first that is served and that texts can be made in.
        api_key: sent as ``Authorization: Bearer``; empty = none.
        lines: real sentences; empty = made ones.
        seed: of the texts; users have texts of their own. Where none is given it is drawn: a service that is asked the
            same twice answers from its cache.
        think: factor on the time between a user's requests; 0 = none.
        retries: how often a rejected request is sent again before it counts as failed.
        bulk_texts: texts of a request of many, and lines of a file.
    """

    scenario: str = "mixed"
    pair: str = ""
    api_key: str = ""
    lines: tuple[str, ...] = ()
    seed: int = 0
    think: float = 1.0
    retries: int = 5
    bulk_texts: int = BULK_TEXTS

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Variables:
        """Read them; what is not set, or empty, has its default.

        Raises:
            ValueError: with every variable that is out of bounds, a line each.
        """
        given = {name: environment.get(f"LOADTEST_{name}", "").strip() for name in _NAMES}
        faults: list[str] = []
        scenario, lines = given["SCENARIO"] or cls().scenario, list[str]()
        if scenario not in SCENARIOS:
            faults.append(f"LOADTEST_SCENARIO must be one of {', '.join(SCENARIOS)}, but is {scenario}")
        try:
            lines = read_lines(Path(given["TEXTS"])) if given["TEXTS"] else []
        except ValueError as error:
            faults.append(f"LOADTEST_TEXTS: {error}")
        numbers = {name: _number(name, given[name], *bounds, faults) for name, bounds in _NUMBERS.items()}
        if faults:
            raise ValueError("\n".join(faults))
        return cls(
            scenario,
            given["PAIR"],
            given["API_KEY"],
            tuple(lines),
            seed=int(numbers["SEED"]) if given["SEED"] else random.randrange(_MOST_SEED),
            think=numbers["THINK"],
            retries=int(numbers["RETRIES"]),
            bulk_texts=int(numbers["BULK_TEXTS"]),
        )


_MOST_SEED = 2**31
# Default and bounds; where the default is a whole number, the value must be one too.
_NUMBERS: Mapping[str, tuple[float, float, float]] = {
    "SEED": (0, 0, _MOST_SEED),
    "THINK": (1.0, 0, 1000),
    "RETRIES": (5, 0, 1000),
    "BULK_TEXTS": (BULK_TEXTS, 1, 100_000),
}
_NAMES = ("SCENARIO", "PAIR", "API_KEY", "TEXTS", *_NUMBERS)


def _number(name: str, text: str, default: float, least: float, most: float, faults: list[str]) -> float:
    """A number within its bounds, or the default and a fault."""
    try:
        value = (int if isinstance(default, int) else float)(text) if text else default
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        what = "a whole number" if isinstance(default, int) else "a number"
        faults.append(f"LOADTEST_{name} must be {what} from {least:g} to {most:g}, but is {text}")
        return default
    return value
