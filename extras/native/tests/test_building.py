"""`tandem native`: what it builds, and what it says where it cannot."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tandem.extras.native import building
from tandem.extras.native.building import HEADER, build, find_include, kernels_of
from tandem.extras.native.tests.compiled import build_operators, needs_compiler
from tandem.models.errors import ConfigError
from tests.command import fails, succeeds


def header(folder: Path, content: str = "") -> Path:
    (folder / HEADER).write_text(content, encoding="utf-8")
    return folder


def test_the_command_builds_and_says_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build_operators()
    monkeypatch.setattr(building, "build", lambda out, include, compiler: built)
    monkeypatch.setattr(building, "find_include", lambda: tmp_path)
    assert succeeds("native").split() == [f"{built}:", kernels_of(built)]
    assert kernels_of(built) in ("avx512", "avx2", "plain")


def test_a_library_that_does_not_load_is_told(tmp_path: Path) -> None:
    (tmp_path / "libtandem.so").write_bytes(b"no library")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        kernels_of(tmp_path / "libtandem.so")


@needs_compiler
def test_code_that_does_not_compile_is_told_with_the_compilers_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no header of theirs"):
        build(tmp_path / "out.so", header(tmp_path, "#error no header of theirs\n"), flags=["-O0"])
    assert not (tmp_path / "out.so").exists()


def test_a_compiler_that_is_missing_is_named(tmp_path: Path) -> None:
    said = fails("native", "--include", header(tmp_path), "--compiler", "no-such")
    assert "no compiler 'no-such': install g++" in said


def test_a_header_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = fails("native", "--include", tmp_path)
    assert f"has no {HEADER}: name the folder that has it with --include" in said
    monkeypatch.setattr(building, "_INCLUDES", (tmp_path,))
    with pytest.raises(ConfigError, match="Debian 13: libonnxruntime-dev"):
        find_include()
    (tmp_path / "onnxruntime").mkdir()
    assert header(tmp_path / "onnxruntime") == find_include()


def test_another_processor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(ConfigError, match="x86_64 and aarch64, but this is riscv64"):
        build(tmp_path / "out.so", header(tmp_path))
