"""What every test shares: how Hypothesis searches, what runs in one process, and what is skipped without a GPU."""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import Generator
from pathlib import Path

import pytest

try:
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:  # tests that need a GPU run where there is little besides pytest and torch
    PROFILES: tuple[tuple[str, int], ...] = ()
else:
    PROFILES = (("slow", 200), ("everyday", 25))

# Time limits an example depend on the machine's load, and CI has to give the same answer twice.
# `make test-slow` tries every property again, with --hypothesis-profile=slow.
for profile, examples in PROFILES:
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(profile)

EXPORTING = {"exports", "exported", "one", "members", "together"}
"""Fixtures of tests/training/export that stand on an exported architecture."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: Python is spared looking for garbage in it, now and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)  # a tenth less time in exports, which make many objects
        gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    """Tests of coroutines run on this loop alone."""
    return "asyncio"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist, which writes the groups into the tests' names
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep together what shares an expensive fixture, and skip what needs a GPU where there is none."""
    for item in items if config.pluginmanager.has_plugin("xdist") else ():
        own = item.get_closest_marker("xdist_group")  # pytest-xdist would take both for another group
        group = _group(item) if isinstance(item, pytest.Function) and not own else ""
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
    _skip_gpu(items)


def _group(item: pytest.Function) -> str:
    """Tests of one group run in one process, one after another; the empty name for tests that may run anywhere."""
    from tests.models.architectures.examples import LEARNERS

    if "browser" in item.path.parts:  # they share one server
        return "browser"
    if EXPORTING & set(item.fixturenames) and {"export", "proofs", "refining"} & set(item.path.parts):
        callspec = getattr(item, "callspec", None)
        architecture = callspec.params.get("exported", "") if callspec else ""
        if not architecture and "one" in item.fixturenames:
            architecture = "dpn"  # of which it is: else two processes would export it
        # An ensemble is made of its members' exports, which are made once.
        members = {member["architecture"] for learner in LEARNERS.values() for member in learner.get("members", ())}
        together = not architecture or architecture in members or "members" in LEARNERS[architecture]
        return "export" if together else f"export-{architecture}"
    definitions = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values() if found]
    for definition in definitions:
        if definition.scope == "module":
            written = Path(inspect.unwrap(definition.func).__code__.co_filename)
            # What another module of tests has, and this one imports, is made once (tests/sharing.py).
            return (written if written.name.startswith("test_") else item.path).name
    return ""


def _skip_gpu(items: list[pytest.Item]) -> None:
    """Skip tests marked ``gpu`` where there is no CUDA device; torch is asked only if there is such a test."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
