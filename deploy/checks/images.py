"""Dockerfiles, with hadolint: ShellCheck on what they run, and what they do that is known to go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from deploy.checks.outcome import Check
from deploy.checks.tools import Toolbox


def checks(root: Path, tools: Toolbox) -> Iterator[Check]:
    """One for each Dockerfile; the main one must be there."""
    others = (path.relative_to(root).as_posix() for path in sorted((root / "deploy").rglob("Dockerfile*")))
    for name in ("Dockerfile", *others):
        yield Check(f"{name}: hadolint", partial(faults, root, tools, name))


def faults(root: Path, tools: Toolbox, name: str) -> list[str]:
    """Hadolint's words, a line each. Raises MissingTool."""
    answer = tools.run("hadolint", ["--no-color", "--failure-threshold", "info", name], root)
    return answer.words.splitlines() or ["hadolint failed without a word"] if answer.status else []
