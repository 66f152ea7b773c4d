"""Whether the service can answer: every bundle has decoded a sentence lately, or decodes a probe now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tandem.models.bundle import Bundle
from tandem.models.errors import TandemError
from tandem.service.engine import Draining, Engine, Job, Overloaded

_PROBE = "1"  # one token or two in any vocabulary
_PROBE_LENGTH = 4


@dataclass(frozen=True, slots=True)
class Absent:
    """A bundle that is not served, and why: it is being loaded, or could not be."""

    name: str
    state: Literal["loading", "failed"]
    reason: str = ""


class Readiness:
    """Answers ``/readyz`` for the bundles that aliases stand for.

    A finished sentence of one proves it ready for a while, so a busy service needs no probes, and one whose decoding
    hangs is found out.

    Attributes:
        absent: by their names bundles that are being loaded, or could not be, as those note who load them.
    """

    def __init__(self, engine: Engine, timeout: float, interval: float) -> None:
        """
        Args:
            engine: decodes the probes.
            timeout: seconds that a probe may take.
            interval: seconds for which a finished sentence proves a bundle ready.
        """
        self._engine, self._timeout, self._interval = engine, timeout, interval
        self._probing = asyncio.Lock()
        self._ready = False
        self.absent: dict[str, Absent] = {}
        self._awaited: list[Callable[[], Sequence[str]]] = []

    def add(self, reasons: Callable[[], Sequence[str]]) -> None:
        """Have the service be not ready while something else gives reasons, one sentence each."""
        self._awaited.append(reasons)

    @property
    def ready(self) -> bool:
        """Whether the last answer was without faults, and nothing that needs no probe has become one since."""
        return self._ready and not self._plain_faults()

    async def faults(self) -> list[str]:
        """Why the service is not ready, one sentence each; empty where it is."""
        found = await self._look()
        self._ready = not found
        return found

    async def _look(self) -> list[str]:
        plain = self._plain_faults()
        if plain:
            return plain
        async with self._probing:
            faults = [await self._probe(name) for name in self._engine.aliases.values()]
        return [fault for fault in faults if fault]

    def _plain_faults(self) -> list[str]:
        """Faults that are seen without decoding anything."""
        own = self._plain_fault()
        return [*([own] if own else []), *(reason for reasons in self._awaited for reason in reasons())]

    def _plain_fault(self) -> str | None:
        if self._engine.dispatcher.lost is not None:
            return str(self._engine.dispatcher.lost)
        if self._engine.dispatcher.draining:
            return "the service is shutting down"
        if not self._engine.alive:
            return "a decode worker has ended"
        return None if self._engine.bundles else "no bundle is loaded"

    async def _probe(self, name: str) -> str | None:
        engine, bound = self._engine, self._timeout
        bundle = engine.bundles.get(name)
        if bundle is None:  # unloaded while others were probed
            return None
        last = engine.dispatcher.last_finished(name)
        if last is not None and engine.clock() - last < self._interval:
            return None
        if engine.residency.resting(name):  # it has been proven, and a probe would take the place of one that is used
            return None
        try:
            async with asyncio.timeout(bound):
                await engine.decode([probe_job(bundle, engine.clock() + bound)])
        except Overloaded:
            return f"the queue is full and {name} has not finished a sentence lately"
        except (Draining, TimeoutError):
            return f"{name} did not decode a probe sentence within {bound:g} s"
        except TandemError as error:
            return f"{name} cannot decode a probe sentence: {error}" if name in engine.bundles else None
        return None


def probe_job(bundle: Bundle, deadline: float | None = None) -> Job:
    """A sentence that every model can read, not searched for far, and never answered from the cache.

    The beam is the bundle's own: on a GPU another one would have buffers of its own.
    """
    tokens = tuple((*vocabulary.encode(_PROBE), vocabulary.eos) for vocabulary in bundle.source_vocabularies)
    options = replace(bundle.manifest.decoding, n_best=1, min_length=0, max_length=_PROBE_LENGTH, coverage_penalty=0.0)
    return Job(bundle.manifest.name, tokens, options, deadline=deadline, cache=False, tag="probe")
