"""Runs programs, and holds what they said."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 600.0
"""That a tool may take for one file; the tests of the rules take the longest."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said; ``words`` are its two streams together."""

    status: int
    output: str
    words: str


def call(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> Answer:
    """Run a program, without input and with further variables.

    It is stopped, with status 124, after so many seconds, else after ``SECONDS``.
    """
    bound = SECONDS if seconds is None else seconds
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=bound,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(124, "", f"{command[0]} took longer than {bound:g} s")
    return Answer(done.returncode, done.stdout, (done.stdout + done.stderr).strip())
