"""What every test shares: how Hypothesis searches here, and where tests that need a GPU are skipped."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Time limits an example depend on the machine's load, and CI has to give the same answer twice.
settings.register_profile(
    "tandem",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tandem")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``gpu`` where there is no CUDA device; torch is asked only if there is such a test."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
