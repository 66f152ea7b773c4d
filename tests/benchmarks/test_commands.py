"""The list of measurements: every command has its module, and both programs are the same."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.cli import COMMANDS
from benchmarks.options import TRIALS, PreparationOptions, StreamingOptions

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_module_that_measures_and_shows(name: str) -> None:
    options, path = COMMANDS[name]
    module = import_module(f"benchmarks.{path}")
    assert next(iter(inspect.signature(module.measure).parameters)) == "options"
    assert callable(module.show)
    assert not hasattr(options, "plot") or callable(module.draw)
    assert f"Example: tandem bench {name} " in (options.__doc__ or "")


def test_python_m_benchmarks_is_the_same_program() -> None:
    command = [sys.executable, "-m", "benchmarks", "training-ops", "--tokens", "50", "--threads", "1", "--repeats", "1"]
    done = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert [row["piece"] for row in result["rows"]] == ["dropout", "output layer and loss", "adam", "step"]
    assert all(row["plain_ms"] > 0 and row["ours_ms"] > 0 for row in result["rows"])
    wrong = subprocess.run([sys.executable, "-m", "benchmarks", "soak"], cwd=ROOT, capture_output=True, check=False)
    assert wrong.returncode == 2


def test_every_trial_is_run() -> None:
    from benchmarks.abuse import command

    assert len(TRIALS) == len(command._RUN)


def test_corpora_are_prepared_and_read(tmp_path: Path) -> None:
    from benchmarks.training import preparation, streaming

    (prepared,) = preparation.measure(PreparationOptions(pairs="2000", folder=tmp_path))["rows"]
    assert prepared["pairs"] == 1800  # one in ten was there twice
    (read,) = streaming.measure(StreamingOptions(pairs="3000", updates=5, folder=tmp_path))["rows"]
    assert read["pairs"] == 3000 and 0 <= read["padding"] < 1
    assert not list(tmp_path.iterdir())
