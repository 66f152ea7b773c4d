"""The native operators, built once for the tests that need them."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tandem.extras.native import building
from tandem.extras.native.building import SOURCES, build, find_include
from tandem.models.errors import ConfigError

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def build_operators() -> Path:
    """The operators as they stand, or the test is skipped where they cannot be built.

    Processes that run tests share what one has built of the same sources.
    """
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    try:
        include = find_include()
    except ConfigError as error:
        pytest.skip(str(error))
    files = [Path(building.__file__), *sorted(SOURCES.iterdir())]
    content = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"tandem-native-{os.getuid()}-{content[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    built = folder / "libtandem.so"
    return built if built.is_file() else build(built, include)
