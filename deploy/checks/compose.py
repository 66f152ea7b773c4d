"""Compose files: each alone with the base, and each combination that the documents show, with and without settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from deploy.checks.outcome import Check
from deploy.checks.tools import Toolbox

BASE = "docker-compose.yml"
EXAMPLE = ".env.example"
_COMMAND = re.compile(r"docker compose((?: +(?:-f|--file|--profile|--env-file|-p)[ =]\S+)+)")


def checks(root: Path, tools: Toolbox) -> Iterator[Check]:
    """One for each combination of files."""
    for files in combinations(root):
        yield Check(f"Compose: {' + '.join(files)}", partial(faults, root, tools, files))


def combinations(root: Path) -> list[tuple[str, ...]]:
    """The base, each further file on top of it, and what the documents combine; each once."""
    others = sorted(path.name for path in root.glob("docker-compose.*.yml"))
    found = [(BASE,), *((BASE, other) for other in others)]
    for document in sorted([*root.glob("*.md"), *root.glob("docs/*.md")]):
        found += documented(document.read_text(encoding="utf-8"))
    return list(dict.fromkeys(found))


def documented(text: str) -> list[tuple[str, ...]]:
    """The files of each ``docker compose -f … -f …`` in a text, lines that go on with a backslash joined."""
    joined = text.replace("\\\n", " ")
    found = [tuple(re.findall(r"(?:-f|--file)[ =](\S+)", options)) for options in _COMMAND.findall(joined)]
    return [files for files in found if files]


def faults(root: Path, tools: Toolbox, files: tuple[str, ...]) -> list[str]:
    """What Compose says, and which files of this project it would look for in vain. Raises MissingTool."""
    if missing := [name for name in files if not (root / name).is_file()]:
        return [f"{', '.join(missing)}: no such file"]
    options = [word for name in files for word in ("--file", name)]
    found: dict[str, None] = {}
    # A .env of the person who runs this must not decide; and every profile's services count.
    for settings in ("/dev/null", EXAMPLE) if (root / EXAMPLE).is_file() else ("/dev/null",):
        arguments = ["--env-file", settings, *options, "--profile", "*", "config", "--format", "json"]
        answer = tools.run("compose", arguments, root)
        if answer.status:
            found[answer.words or f"exit status {answer.status} without a word"] = None
        else:
            found |= dict.fromkeys(missing_sources(json.loads(answer.output), root))
    return list(found)


def missing_sources(config: Mapping[str, Any], root: Path) -> list[str]:
    """Files and folders of this project that services mount or read, and that are not there; engines make empty folders
    of such mounts without a word."""
    sources = {
        volume["source"]: f"service {name} mounts it at {volume['target']}"
        for name, service in config.get("services", {}).items()
        for volume in service.get("volumes") or ()
        if volume["type"] == "bind"
    }
    for kind in ("configs", "secrets"):
        sources |= {one["file"]: f"{kind[:-1]} {name}" for name, one in config.get(kind, {}).items() if "file" in one}
    return [
        f"{Path(source).relative_to(root)} does not exist, but {use}"
        for source, use in sources.items()
        if Path(source).is_relative_to(root) and not Path(source).exists()
    ]
