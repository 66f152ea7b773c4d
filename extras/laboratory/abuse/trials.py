"""What the trials share: how they are set up, and what they find."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from tandem.extras.laboratory.options import ReliabilityOptions
from tandem.extras.laboratory.service.verdicts import Verdict
from tandem.extras.laboratory.workload import ForcedText, forced_bodies, forced_texts, tandem_path
from tandem.extras.loadtest.server import Server, tandem_server
from tandem.models.bundle import Bundle

BEAM = 5  # of every request
_TEXTS = 4_096  # distinct; a trial that needs more begins again


@dataclass(frozen=True)
class Setting:
    """What every trial is run with, from the options of the command."""

    options: ReliabilityOptions

    @cached_property
    def bundle(self) -> Bundle:
        """Loaded."""
        return Bundle.load(self.options.bundle)

    @property
    def path(self) -> str:
        """The route that answers for the bundle."""
        return tandem_path(self.bundle)

    def server(self, settings: Mapping[str, str] | None = None) -> Server:
        """The service in a process of its own, without its result cache."""
        return tandem_server(self.options.bundle, self.options.workers, settings)

    @cached_property
    def texts(self) -> list[ForcedText]:
        """Distinct texts with the lengths of the benchmarks."""
        return forced_texts(self.bundle, _TEXTS)

    @cached_property
    def bodies(self) -> list[bytes]:
        """Requests with those texts."""
        return forced_bodies(self.bundle, self.texts, BEAM)

    def long_bodies(self, count: int, length: int) -> list[bytes]:
        """Requests whose translations all get the same number of tokens."""
        forced = {"min_length": length, "max_length": length}
        return [json.dumps(json.loads(body) | forced).encode() for body in self.bodies[:count]]


@dataclass(frozen=True, slots=True)
class TrialFinding:
    """What a trial has shown.

    Attributes:
        question: that it asks.
        method: how, in a sentence or two.
        verdicts: the answers.
        figures: what else was measured.
        fault: what came most often where something else was expected.
    """

    question: str
    method: str
    verdicts: Sequence[Verdict]
    figures: dict[str, Any] = field(default_factory=dict)
    fault: str = ""

    @property
    def met(self) -> bool:
        return all(verdict.met for verdict in self.verdicts)

    def mapping(self) -> dict[str, Any]:
        """Its plain form."""
        return {**asdict(self), "met": self.met, "verdicts": [verdict.mapping() for verdict in self.verdicts]}


def wait_for(condition: Callable[[], bool], seconds: float, pause: float = 0.02) -> float | None:
    """Seconds until a condition holds; None where it does not within so many."""
    started = time.perf_counter()
    while not condition():
        if time.perf_counter() - started > seconds:
            return None
        time.sleep(pause)
    return time.perf_counter() - started
