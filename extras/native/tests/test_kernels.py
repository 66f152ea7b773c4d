"""What the operators compute, for every instruction set that this processor runs, against plain loops."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tandem.extras.native.building import SOURCES, compile_kernels, run
from tandem.extras.native.tests.compiled import build_kernels, needs_compiler

SANITIZED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@needs_compiler
@pytest.mark.parametrize("flags", [(), pytest.param(SANITIZED, marks=pytest.mark.slow)], ids=["built", "sanitized"])
def test_kernels_are_what_plain_loops_give(tmp_path: Path, flags: tuple[str, ...]) -> None:
    objects = compile_kernels(tmp_path, "g++", flags) if flags else build_kernels()
    check = Path(__file__).with_name("check.cpp")
    run(["g++", "-std=c++17", *(flags or ["-O1"]), f"-I{SOURCES}", check, *objects, "-o", "check"], tmp_path)
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "kernels_plain" in done.stdout
