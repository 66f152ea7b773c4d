"""Which text stages there are, by the names that bundles ask for them with: the one place where extras are found.

An extra is a folder of ``extras`` with a ``port``. It is found by looking, not by name: the core imports none, and runs
as well where they are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from service.translation.stages import StageMaker

_EXTRAS = "extras"


@cache
def stage_makers() -> Mapping[str, StageMaker]:
    """What makes each stage: the ``STAGES`` of every port that has some."""
    found: dict[str, StageMaker] = {}
    for port in _ports():
        found |= getattr(import_module(port), "STAGES", {})
    return found


def _ports() -> Iterator[str]:
    """The modules that say what an extra brings, by name."""
    spec = find_spec(_EXTRAS)
    folders = spec.submodule_search_locations if spec else None
    for module in iter_modules(folders or []):
        port = f"{_EXTRAS}.{module.name}.port"
        if module.ispkg and find_spec(port) is not None:
            yield port
