"""Two trainings in one folder, and what a killed one leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.models.errors import CheckpointError
from tandem.training.loop.locking import LOCK, only_one, remove_unfinished

HOLDER = """
import sys
from pathlib import Path
from tandem.training.loop.locking import only_one
with only_one(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    return process


def test_a_folder_is_trained_in_by_one_process(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        with (
            pytest.raises(CheckpointError, match=rf"trained in by another process \(pid {other.pid}\): .* --run"),
            only_one(tmp_path),
        ):
            pass
        assert (tmp_path / LOCK).exists(), "it is the other's"
        other.communicate()
    with only_one(tmp_path):
        assert (tmp_path / LOCK).read_text(encoding="utf-8") == f"{os.getpid()}\n"
    assert not list(tmp_path.iterdir())


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        other.kill()
        other.wait()
    assert (tmp_path / LOCK).exists()
    with only_one(tmp_path):
        pass
    assert not (tmp_path / LOCK).exists()


def test_where_there_is_no_folder_there_is_nothing_to_hold(tmp_path: Path) -> None:
    with only_one(tmp_path / "none"):
        pass
    assert not (tmp_path / "none").exists()


def test_what_was_being_written_goes(tmp_path: Path) -> None:
    for name in ("checkpoint-2.safetensors", "best.safetensors", "checkpoint-3.partial", ".tmpAb12cd"):
        (tmp_path / name).write_bytes(b"x")
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.safetensors", "checkpoint-2.safetensors"]
    remove_unfinished(tmp_path / "none")
