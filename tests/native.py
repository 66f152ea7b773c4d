"""The native operators, built once for the tests that need them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tandem.models.errors import ConfigError
from tandem.models.native.building import build, find_include

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def build_operators(folder: Path) -> Path:
    """The operators as they stand, or the test is skipped where they cannot be built."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    try:
        include = find_include()
    except ConfigError as error:
        pytest.skip(str(error))
    return build(folder / "libtandem.so", include)
