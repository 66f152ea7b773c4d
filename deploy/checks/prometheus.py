"""Prometheus' configuration, its rules and their tests, with promtool."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.checks.outcome import Check
from deploy.checks.tools import Toolbox

FOLDER = Path("deploy/prometheus")
_MOUNTED = "/etc/prometheus/"  # where the container has that folder


def checks(root: Path, tools: Toolbox) -> Iterator[Check]:
    """Configuration with its rules; the rules more strictly; the rules' tests."""
    yield Check("Prometheus: configuration", partial(configuration_faults, root / FOLDER, tools))
    yield Check("Prometheus: rules", partial(rules_faults, root / FOLDER, tools))
    yield Check("Prometheus: tests of the rules", partial(tests_faults, root / FOLDER, tools))


def configuration_faults(folder: Path, tools: Toolbox) -> list[str]:
    """What promtool says of a copy whose absolute paths lead into the copy. Raises MissingTool."""
    with TemporaryDirectory(prefix="tandem-check-") as temporary:
        copy = Path(temporary) / "prometheus"
        shutil.copytree(folder, copy)
        config = copy / "prometheus.yml"
        config.write_text(config.read_text(encoding="utf-8").replace(_MOUNTED, f"{copy}/"), encoding="utf-8")
        answer = tools.run("promtool", ["check", "config", "--lint=all", "--lint-fatal", config], copy)
        return [answer.words.replace(f"{copy}/", "")] if answer.status else []


def rules_faults(folder: Path, tools: Toolbox) -> list[str]:
    """What promtool says of the rules, duplicates included. Raises MissingTool."""
    return _faults(tools, folder, "rules/*.yml", ["check", "rules", "--lint=all", "--lint-fatal"])


def tests_faults(folder: Path, tools: Toolbox) -> list[str]:
    """Tests that fail. Raises MissingTool."""
    return _faults(tools, folder, "tests/*.yml", ["test", "rules"])


def _faults(tools: Toolbox, folder: Path, pattern: str, arguments: list[str]) -> list[str]:
    files = sorted(folder.glob(pattern))
    if not files:
        return [f"{folder / pattern}: no such file"]
    answer = tools.run("promtool", [*arguments, *files], folder)
    return [answer.words] if answer.status else []
