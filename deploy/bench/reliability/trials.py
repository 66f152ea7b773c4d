"""What the trials share: how they are set up, and what they find."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from deploy.bench.requests import Forced, forced_bodies, forced_texts
from deploy.bench.servers import Sample, Server, tandem_server
from deploy.bench.verdicts import Row, Verdict
from models.bundle import Bundle

_TEXTS = 4_096  # distinct; a trial that needs more begins again


@dataclass(frozen=True)
class Setting:
    """What every trial is run with.

    Attributes:
        path: of the bundle.
        duration: seconds of a load.
        clients: requests in flight in closed loops.
        workers: decode workers; 0 = as the service chooses.
        beam_size: of every request.
        fuzzing: seconds of generated requests.
        requests: of the soak.
        seed: of texts and arrivals.
    """

    path: Path
    duration: float = 20.0
    clients: int = 64
    workers: int = 0
    beam_size: int = 5
    fuzzing: int = 300
    requests: int = 12_000
    seed: int = 0

    @cached_property
    def bundle(self) -> Bundle:
        """Loaded."""
        return Bundle.load(self.path)

    def server(self, settings: Mapping[str, str] | None = None) -> Server:
        """The service in a process of its own, without its result cache."""
        return tandem_server(self.path, self.workers, settings)

    @cached_property
    def texts(self) -> list[Forced]:
        """Distinct texts with the lengths of the benchmarks."""
        return forced_texts(self.bundle, None, _TEXTS, self.seed)

    @cached_property
    def bodies(self) -> list[bytes]:
        """Requests with those texts."""
        return forced_bodies(self.bundle, self.texts, self.beam_size)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a trial has shown.

    Attributes:
        name: of the trial.
        question: that it asks.
        method: how, in a sentence or two.
        verdicts: the answers.
        figures: what else was measured.
        fault: what came most often where something else was expected.
    """

    name: str
    question: str
    method: str
    verdicts: Sequence[Verdict]
    figures: Row = field(default_factory=dict)
    fault: str = ""

    @property
    def met(self) -> bool:
        """Whether every verdict is good."""
        return all(verdict.met for verdict in self.verdicts)

    def mapping(self) -> dict[str, Any]:
        """Its plain form."""
        return {
            "name": self.name,
            "question": self.question,
            "method": self.method,
            "met": self.met,
            "verdicts": [verdict.mapping() for verdict in self.verdicts],
            "figures": dict(self.figures),
            "fault": self.fault,
        }


class Background:
    """Work in a thread while the trial does something else."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Background:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def result(self) -> Any:
        """What the work returned, once it has ended. Raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error


def wait_for(condition: Callable[[], bool], seconds: float, pause: float = 0.02) -> float | None:
    """Seconds until a condition holds; None where it does not within so many."""
    started = time.perf_counter()
    while not condition():
        if time.perf_counter() - started > seconds:
            return None
        time.sleep(pause)
    return time.perf_counter() - started


def busy(url: str) -> float:
    """Sentences that wait or run in a service."""
    values = Sample.fetch(url).values
    return values["tandem_queue_sentences"] + values["tandem_running_sentences"]
