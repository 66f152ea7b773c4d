"""Which bundles' graphs are in memory: those of bundles that nobody asks for are let go of, above a bound."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, runtime_checkable


@runtime_checkable
class Resident(Protocol):
    """Graphs that can be let go of, and open again by themselves as soon as they run.

    Attributes:
        footprint: bytes that they take while they are open, about.
        resting: whether they are let go of.
    """

    footprint: int

    @property
    def resting(self) -> bool: ...
    def rest(self) -> None:
        """Let go of them. What runs just now ends first; safe from any thread."""
        ...


class Residency:
    """Open graphs of all bundles, least recently used first. Thread-safe.

    Args:
        bound: bytes that open graphs may take together; None = any. Of a bundle that is at work none are let go of,
            though the bound be passed.
        busy: whether sentences of a bundle, by its name, wait or run.
    """

    def __init__(self, bound: int | None, busy: Callable[[str], bool]) -> None:
        self._bound, self._busy = bound, busy
        self._residents: dict[str, Resident] = {}
        self._lock = threading.Lock()

    def add(self, name: str, graphs: object) -> None:
        """Take note of a bundle's graphs; of some that cannot rest nothing is known."""
        with self._lock:
            self._residents.pop(name, None)
            if isinstance(graphs, Resident):
                self._residents[name] = graphs
        self.use(name)

    def forget(self, name: str) -> None:
        with self._lock:
            self._residents.pop(name, None)

    def use(self, name: str) -> None:
        """Be told that a bundle is about to decode; others are let go of where there is no room for it."""
        if self._bound is None:
            return
        with self._lock:
            if name in self._residents:
                self._residents[name] = self._residents.pop(name)  # the last one: used most recently
            residents = self._residents.items()
            taken = sum(graphs.footprint for one, graphs in residents if one == name or not graphs.resting)
            for other, graphs in residents:
                if taken <= self._bound or other == name:
                    return
                if not graphs.resting and not self._busy(other):
                    graphs.rest()
                    taken -= graphs.footprint

    def resting(self, name: str) -> bool:
        """Whether a bundle's graphs are let go of; their next sentence opens them."""
        graphs = self._residents.get(name)
        return graphs is not None and graphs.resting
