"""What every test leaves as it found it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

# Graphs run as every installation has them, whether or not this one has built the operators of extras/native.
os.environ["TANDEM_NATIVE"] = "false"

with suppress(ModuleNotFoundError):  # machines for tests of a GPU have little
    import structlog

    # Rich draws every variable of every frame: seconds for a traceback that nobody reads.
    structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback


@pytest.fixture(autouse=True)
def own_log_settings() -> Iterator[None]:
    """Commands silence the process that they run in."""
    yield
    used = sys.modules.get("structlog")
    if used is not None and used.is_configured():
        used.reset_defaults()
