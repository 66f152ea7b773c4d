"""Reads or writes one file in a process of its own: ``python -m tandem.extras.files.child`` with an order on its input.

What people upload is parsed here and not in the server: a file that makes a parser slow, hungry or crash costs this
process, whose time, memory and output are limited by the operating system.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tandem.extras.files.bounds import SourceFile

CPU_SECONDS = 30
MEMORY = 2 << 30
OUTPUT = 1 << 30


def main() -> int:
    """Do what the order says; the report goes to the standard output as JSON."""
    _limit()
    order = json.load(sys.stdin)
    from tandem.extras.files.bounds import FileRefused
    from tandem.models.errors import FULL  # behind the limits, like everything that it imports

    try:
        report = read(order) if order["action"] == "read" else write(order)
    except FileRefused as error:
        report = {"refused": {"code": error.code, "message": str(error), "detail": error.detail}}
    except (MemoryError, RecursionError):
        report = {"too_much": True}
    except OSError as error:
        if error.errno not in FULL:
            raise
        report = {"full": [error.errno, error.strerror]}
    json.dump(report, sys.stdout)
    return 0


def read(order: dict[str, Any]) -> dict[str, Any]:
    """Cut a file into slices, into a file of JSON lines. Raises FileRefused."""
    from tandem.extras.files.formats import FORMATS
    from tandem.extras.files.slices import slices_of

    source = _source(order)
    characters = slices = 0
    with Path(order["slices"]).open("w", encoding="utf-8") as lines:
        for one in slices_of(FORMATS[source.ending].read(source), source.bounds):
            lines.write(json.dumps(asdict(one)) + "\n")
            characters += one.characters
            slices += 1
    return {"characters": characters, "slices": slices}


def write(order: dict[str, Any]) -> dict[str, Any]:
    """Write a file with its texts replaced by those of a JSON list. Raises FileRefused."""
    from tandem.extras.files.formats import FORMATS

    source = _source(order)
    translations = json.loads(Path(order["translations"]).read_text(encoding="utf-8"))
    FORMATS[source.ending].write(source, translations, Path(order["result"]))
    return {}


def _source(order: dict[str, Any]) -> SourceFile:
    from tandem.extras.files.bounds import Bounds, SourceFile

    return SourceFile(Path(order["source"]), order["format"], order["target"], Bounds(**order["bounds"]))


def _limit() -> None:
    """Bound this process, as far as the system can; the parent bounds its time in any case."""
    try:
        import resource
    except ImportError:  # not on every system
        return
    limits = ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, OUTPUT))
    for kind, bound in (*limits, (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a lower limit is set already, or the system knows no such limit
            resource.setrlimit(kind, (bound, bound))


if __name__ == "__main__":
    sys.exit(main())
