"""Lines of the proof: none of them can take the others with it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.laboratory.gpu.lines import Line, attempt, plain, run_lines


def line(name: str, limit: float = 60.0, **arguments: Any) -> Line:
    return Line(name, f"tandem.extras.laboratory.tests.gpu.probes:{name.split()[0]}", arguments, limit=limit)


@pytest.mark.slow
def test_lines_that_fail_hang_or_die_leave_the_others(tmp_path: Path) -> None:
    lines = [
        line("fine", number=3),
        line("raising"),
        line("missing"),
        line("hanging", 2.0, file=str(tmp_path / "child")),
        line("dying"),
        line("unmet"),
        line("fine again", number=4),
    ]
    outcomes = list(run_lines(lines, 120))
    assert [one["line"] for one in outcomes] == [one.name for one in lines]
    statuses = ["ok", "failed", "skipped", "failed", "failed", "failed", "ok"]
    assert [one["status"] for one in outcomes] == statuses
    fine, raising, missing, hanging, dying, unmet, again = outcomes
    assert (fine["summary"], fine["figures"]) == ("found 3", {"number": 3, "nothing": None})
    assert again["figures"]["number"] == 4
    assert raising["summary"] == "ValueError: no such thing" and "in raising" in raising["traceback"]
    assert missing["summary"] == "is not installed"
    assert hanging["summary"] == "was ended after 2 s"
    assert dying["summary"] == "its process ended with status 7"
    assert unmet["summary"] == "too far apart"
    child = int((tmp_path / "child").read_text())
    assert gone(child)


def gone(process: int) -> bool:
    """Whether a process has ended, if it was given a moment."""
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_what_would_begin_too_late_is_left_out() -> None:
    outcomes = list(run_lines([line("fine", number=1), line("fine again", number=2)], 1.0))
    assert [(one["status"], one["summary"]) for one in outcomes] == [("skipped", "no time was left")] * 2


@pytest.mark.slow
def test_what_the_time_of_all_lines_cuts_off_has_not_failed(tmp_path: Path) -> None:
    cut = replace(line("hanging", file=str(tmp_path / "child")), planned=0.1)
    (outcome,) = run_lines([cut], 4.0)
    assert (outcome["status"], outcome["summary"]) == ("skipped", "no time was left after 4 s")


def test_figures_are_json() -> None:
    assert plain({"a": float("nan"), "b": (1, float("inf"), 2.5), 3: {"c": True}}) == {
        "a": None,
        "b": [1, None, 2.5],
        "3": {"c": True},
    }


def test_a_broken_device_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line does to the device shows up in that line, and the process is of no use any more."""
    probe = line("fine", number=1)
    assert attempt(probe)[1] is False

    def broken() -> None:
        raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setattr("tandem.extras.laboratory.gpu.lines._wait_for_device", broken)
    outcome, is_broken = attempt(probe)
    assert (outcome["status"], is_broken) == ("failed", True)
    assert outcome["summary"] == "RuntimeError: an illegal memory access was encountered"
