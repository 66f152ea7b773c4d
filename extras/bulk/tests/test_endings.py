"""Sudden ends of a whole process, its workers, and the memory that files of very different sizes take."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.bulk.pool import LINES_OF_A_BLOCK
from tandem.extras.bulk.tests.support import numbered, shout, write_lines
from tests.shipped import ROOT

PATIENCE = 60.0  # seconds after which a test that waits for something has failed
LINES = 30_000
pytestmark = pytest.mark.slow


def started(
    bundle: Path, folder: Path, pause: float = 0.0, workers: int = 1, save_every: float = 0.0
) -> subprocess.Popen[str]:
    (folder / "pids").mkdir(exist_ok=True)
    files = (str(folder / "in"), str(folder / "out"), str(folder / "pids"))
    numbers = (str(pause), str(workers), str(save_every))
    command = [sys.executable, "-m", "tandem.extras.bulk.tests.support", str(bundle), *files, *numbers]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    result: dict[str, Any] = json.loads(out)
    return result


def wait_for(what: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def workers_of(process: subprocess.Popen[str], folder: Path) -> list[str]:
    """Process ids of the workers that have begun."""
    return [path.name for path in (folder / "pids").iterdir() if path.name != str(process.pid)]


def lines_done(folder: Path) -> int:
    """Lines that are written whole."""
    try:
        return (folder / "out.part").read_bytes().count(b"\n")
    except FileNotFoundError:
        return -1


def whole() -> bytes:
    return b"".join(shout(line) + b"\n" for line in numbered(LINES))


def test_killed_at_any_moment_it_goes_on_without_a_line_twice_or_lost(bundle: Path, tmp_path: Path) -> None:
    """Killed after some progress, and a random moment more, until it is finished; one that ended is run once more."""
    write_lines(tmp_path / "in", numbered(LINES))
    chance, kills, before = random.Random(7), 0, -1
    while not (tmp_path / "out").exists():
        process = started(bundle, tmp_path, pause=2e-5)
        wait_for(lambda: lines_done(tmp_path) > before or process.poll() is not None)  # noqa: B023
        time.sleep(chance.uniform(0, 0.15))
        process.kill()
        process.communicate()
        kills += 1
        before = lines_done(tmp_path)
    assert kills > 3
    last = finished(started(bundle, tmp_path))
    assert last["lines"] == LINES
    assert (tmp_path / "out").read_bytes() == whole()


def test_workers_end_with_a_killed_parent(bundle: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", numbered(LINES))
    process = started(bundle, tmp_path, pause=1e-4, workers=2)
    # The first lines may be there before the second worker is.
    wait_for(lambda: lines_done(tmp_path) > 0 and len(workers_of(process, tmp_path)) == 2)
    workers = [Path("/proc") / name for name in workers_of(process, tmp_path)]
    process.kill()
    process.communicate(timeout=PATIENCE)
    wait_for(lambda: not any(path.exists() for path in workers))
    assert finished(started(bundle, tmp_path, workers=2))["before"] >= LINES_OF_A_BLOCK
    assert (tmp_path / "out").read_bytes() == whole()


def test_a_worker_that_is_killed_ends_the_run_and_loses_nothing(bundle: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", numbered(LINES))
    process = started(bundle, tmp_path, pause=1e-4, workers=2)
    wait_for(lambda: lines_done(tmp_path) > 0)
    os.kill(int(workers_of(process, tmp_path)[0]), signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "a process that translates has ended" in err
    assert finished(started(bundle, tmp_path, workers=2))["before"] >= LINES_OF_A_BLOCK
    assert (tmp_path / "out").read_bytes() == whole()


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGTERM, 2)])
def test_a_signal_ends_it_with_everything_kept(bundle: Path, tmp_path: Path, number: int, workers: int) -> None:
    write_lines(tmp_path / "in", numbered(LINES))
    process = started(bundle, tmp_path, pause=1e-4, workers=workers)
    wait_for(lambda: lines_done(tmp_path) > 0)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (128 + number, "")
    done = lines_done(tmp_path)
    assert 0 < done < LINES
    assert finished(started(bundle, tmp_path))["before"] == done
    assert (tmp_path / "out").read_bytes() == whole()


def test_memory_does_not_grow_with_the_file(bundle: Path, tmp_path: Path) -> None:
    """Ten times as many lines take no more, but for what varies from run to run."""
    peaks = []
    for count in (40_000, 400_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        write_lines(folder / "in", numbered(count))
        result = finished(started(bundle, folder, save_every=1.0))
        assert result["lines"] == count
        peaks.append(result["peak"])
        (folder / "out").unlink()
        (folder / "in").unlink()
    assert peaks[1] < peaks[0] + 10, peaks
