"""nginx' configuration, with ``nginx -t`` in a folder of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.checks.outcome import Check
from deploy.checks.tools import Toolbox

FOLDER = Path("deploy/nginx")
_MOUNTED = "/etc/nginx/"  # where the container has that folder's files, beside those of the image
# What the image has there and a configuration may include; their content does not matter here.
_OF_THE_IMAGE = {"mime.types": "types { text/html html; }\n"}
# Only root may become somebody else, or write where the image does.
_USER = re.compile(r"^\s*user\s[^;]*;", re.MULTILINE)
_REFUSED = re.compile(r"\[(?:emerg|alert|crit|error|warn)\]")


def checks(root: Path, tools: Toolbox) -> Iterator[Check]:
    """One for each configuration."""
    files = sorted((root / FOLDER).glob("*.conf"))
    if not files:
        yield Check("nginx", lambda: [f"{FOLDER}: no configuration"])
    for file in files:
        yield Check(f"nginx: {file.name}", partial(faults, file, tools))


def faults(file: Path, tools: Toolbox) -> list[str]:
    """nginx' words, warnings included. Raises MissingTool."""
    with TemporaryDirectory(prefix="tandem-check-") as temporary:
        place = Path(temporary)
        for name, content in _OF_THE_IMAGE.items():
            (place / name).write_text(content, encoding="utf-8")
        for other in sorted(file.parent.iterdir()):
            if other.is_file():
                shutil.copy(other, place)
        config = place / file.name
        text = config.read_text(encoding="utf-8").replace(_MOUNTED, f"{place}/").replace("/tmp/", f"{place}/")
        config.write_text(_USER.sub("", text), encoding="utf-8")
        answer = tools.run("nginx", ["-t", "-e", "stderr", "-p", place, "-c", config], place)
        said = [line for line in answer.words.replace(f"{place}/", "").splitlines() if _REFUSED.search(line)]
        return said or ([answer.words] if answer.status else [])
