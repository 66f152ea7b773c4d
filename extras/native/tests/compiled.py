"""The native operators, built once for the tests that need them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tandem.extras.native import building
from tandem.extras.native.building import SOURCES, build, compile_kernels, find_include
from tandem.models.errors import ConfigError

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def build_operators() -> Path:
    """The operators as they stand, or the test is skipped where they cannot be built."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    try:
        include = find_include()
    except ConfigError as error:
        pytest.skip(str(error))
    kernels = build_kernels()
    built = kernels[0].with_name("libtandem.so")
    if not built.is_file():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(building, "compile_kernels", lambda *_: kernels)
            build(built, include)
    return built


def build_kernels() -> list[Path]:
    """The object files of what the operators compute, without a warning.

    Processes that run tests share what one has built of the same sources.
    """
    files = [Path(building.__file__), *sorted(SOURCES.iterdir())]
    content = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"tandem-native-{os.getuid()}-{content[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    kernels = folder / "kernels"
    if not kernels.is_dir():
        own = Path(tempfile.mkdtemp(dir=folder))
        compile_kernels(own, "g++", ["-Werror"])
        with contextlib.suppress(OSError):  # another process was sooner
            own.rename(kernels)
    return sorted(kernels.glob("*.o"))
