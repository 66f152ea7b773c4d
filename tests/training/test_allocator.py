"""Training on a CPU takes a faster allocator than glibc's where one is installed; where none is, that is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import cli
from training import allocator, commands
from training.allocator import PRELOAD, faster_allocator, has_glibc_alone

GLIBC = "7f00-7f01 r-xp 00000000 08:01 17 /usr/lib/x86_64-linux-gnu/libc.so.6\n"
# Any library that glibc itself brings stands for an allocator here: what is tested is how it comes into the process.
SCRIPT = """
import os, sys
from training import allocator
allocator.faster_allocator = lambda: "libm.so.6"
allocator.restart_with_faster_allocator()
print(os.environ.get("LD_PRELOAD"), sys.argv[1:])
"""
needs_glibc = pytest.mark.skipif(not has_glibc_alone(), reason="this process has another allocator than glibc's")


@pytest.mark.parametrize(
    ("mapped", "alone"),
    [
        (GLIBC, True),
        (GLIBC + "7f02-7f03 r-xp 0 08:01 18 /usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4.5.10\n", False),
        ("7f02-7f03 r-xp 0 08:01 18 /usr/lib/libjemalloc.so.2\n" + GLIBC, False),
        ("7f02-7f03 r-xp 0 08:01 18 /lib/ld-musl-x86_64.so.1\n", False),
        (GLIBC + "7f02-7f03 r-xp 0 08:01 18 /opt/libtcmalloc/torch.so\n", True),
        ("7f02-7f03 r-xp 0 08:01 18 /lib/x86_64-linux-gnu/libc-2.31.so\n", True),
        (GLIBC + "7f02-7f03 r-xp 0 08:01 18 /opt/jos\xe9/torch.so\n", True),
    ],
)
def test_glibc_is_told_from_others(tmp_path: Path, mapped: str, alone: bool) -> None:
    (tmp_path / "maps").write_bytes(mapped.encode("latin-1"))  # paths are bytes, and not always UTF-8
    assert has_glibc_alone(tmp_path / "maps") is alone


def test_where_nothing_tells_nothing_is_done(tmp_path: Path) -> None:
    assert not has_glibc_alone(tmp_path / "maps")


def test_the_preferred_library_that_is_installed_is_taken() -> None:
    installed = {"tcmalloc": "libtcmalloc.so.4", "jemalloc": "libjemalloc.so.2"}
    assert faster_allocator(lambda name: installed.get(name)) == "libtcmalloc.so.4"
    del installed["tcmalloc"]
    assert faster_allocator(lambda name: installed.get(name)) is None, "jemalloc is no faster"
    assert faster_allocator(lambda name: None) is None


@needs_glibc
@pytest.mark.parametrize(("given", "found"), [(None, "libm.so.6"), ("", ""), ("libdl.so.2", "libdl.so.2")])
def test_a_command_is_started_once_more_with_it(tmp_path: Path, given: str | None, found: str) -> None:
    """With its arguments; not where ``LD_PRELOAD`` is set, not even to nothing."""
    environment = {name: value for name, value in os.environ.items() if name != PRELOAD}
    if given is not None:
        environment[PRELOAD] = given
    (tmp_path / "tandem").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "tandem"), "--threads", "1 2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{found} ['--threads', '1 2']\n"


@needs_glibc
@pytest.mark.parametrize("own", ["", "import sys; sys.argv = ['tandem', 'train', 'mine.toml']"])
def test_a_program_that_calls_the_command_is_not_replaced(own: str) -> None:
    """Whether it hands its arguments on or gives others."""
    environment = {name: value for name, value in os.environ.items() if name != PRELOAD}
    command = [sys.executable, "-c", own + SCRIPT, *([] if own else ["train", "mine.toml"])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "None ['train', 'mine.toml']\n"


@pytest.mark.parametrize(
    ("command", "restarts"),
    [
        (["train", "mine.toml"], 1),
        (["train", "mine.toml", "--device", "cpu"], 1),
        (["train", "mine.toml", "--device", "cuda"], 0),
        (["train", "mine.toml", "--device=cuda:1"], 0),
        (["train", "--help"], 0),
        (["export", "train"], 0),
        (["--help"], 0),
        ([], 0),
    ],
)
def test_only_training_on_a_cpu_asks_for_it(monkeypatch: pytest.MonkeyPatch, command: list[str], restarts: int) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(commands, "restart_with_faster_allocator", lambda: asked.append(True))
    monkeypatch.setattr(sys, "argv", ["tandem", *command])
    with pytest.raises(SystemExit):
        cli.main()
    assert len(asked) == restarts


def test_nothing_is_started_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: object) -> None:
        raise AssertionError(given)

    monkeypatch.setattr(os, "execve", never)
    monkeypatch.setattr(allocator, "faster_allocator", lambda: None)
    monkeypatch.setattr(sys, "argv", ["tandem"])
    monkeypatch.delenv(PRELOAD, raising=False)
    allocator.restart_with_faster_allocator()
