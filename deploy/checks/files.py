"""Files of other kinds: the example of settings, and the scenarios of the load test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from deploy.checks.outcome import Check, MissingTool
from deploy.checks.programs import call
from deploy.checks.tools import Toolbox
from deploy.env_example import env_example, passed_settings

EXAMPLE, PASSED = ".env.example", "deploy/docker/settings.env"
LOCUST_FILE = Path("deploy/loadtest/locustfile.py")


def checks(root: Path, tools: Toolbox) -> Iterator[Check]:
    """The example of settings, and the scenarios."""
    yield Check("Settings: .env.example, and what Compose passes on", partial(example_faults, root))
    yield Check("Locust: scenarios", partial(scenario_faults, root))


def example_faults(root: Path) -> list[str]:
    """Whether what ``python -m deploy.reference`` writes of the settings is as it would write it now."""
    made = {EXAMPLE: env_example(), PASSED: passed_settings()}
    return [
        f"{name} does not match the settings; run python -m deploy.reference"
        for name, text in made.items()
        if (root / name).read_text(encoding="utf-8") != text
    ]


def scenario_faults(root: Path) -> list[str]:
    """Whether Locust reads the file and finds scenarios in it. Raises MissingTool."""
    compile((root / LOCUST_FILE).read_text(encoding="utf-8"), str(LOCUST_FILE), "exec", dont_inherit=True)
    if find_spec("locust") is None:
        raise MissingTool("Locust is missing: pip install locust")
    # In a process of its own, since Locust changes how sockets and threads of the whole process work.
    answer = call([sys.executable, "-m", "locust", "--locustfile", str(root / LOCUST_FILE), "--list"], root)
    return [answer.words] if answer.status else []
