"""Lines that do what a line should not do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tandem.extras.laboratory.gpu.lines import Found, Missing


def fine(*, number: int) -> Found:
    return Found(f"found {number}", {"number": number, "nothing": float("nan")})


def raising() -> Found:
    raise ValueError("no such thing")


def missing() -> Found:
    raise Missing("is not installed")


def hanging(*, file: str) -> Found:
    """Waits for a process of its own, which must not outlive it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(file).write_text(str(child.pid))
    time.sleep(600)
    return Found("never")


def dying() -> Found:
    os._exit(7)


def unmet() -> Found:
    return Found("too far apart", met=False)
