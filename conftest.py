"""What every test leaves as it found it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

# Graphs run as every installation has them, whether or not this one has built the operators of extras/native.
os.environ["TANDEM_NATIVE"] = "false"


@pytest.fixture(autouse=True)
def own_log_settings() -> Iterator[None]:
    """Commands silence the process that they run in. (Nothing is imported: machines for tests of a GPU have little.)"""
    yield
    structlog = sys.modules.get("structlog")
    if structlog is not None and structlog.is_configured():
        structlog.reset_defaults()
