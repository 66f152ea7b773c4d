"""A translator that copies, one that only shouts, and a command that can be ended from outside."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.extras.bulk.lines import Line, LineResult, fault_of, fields_of
from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.run import Request, Stopped, translate_files
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.loadtest.server import memory_of
from tandem.models.bundle import Bundle
from tandem.models.search import Graphs
from tests.service.support import CopyGraphs, copying


def open_copying(bundle: Bundle, *_: object) -> Graphs:
    """Graphs that copy, as an opener."""
    return copying(bundle)


@dataclass
class Opener:
    """Opens copying graphs, and remembers them and the bundles that it opened them of."""

    bundles: list[Bundle] = field(default_factory=list)
    graphs: list[CopyGraphs] = field(default_factory=list)

    def __call__(self, bundle: Bundle, *_: object) -> Graphs:
        self.bundles.append(bundle)
        self.graphs.append(copying(bundle))
        return self.graphs[-1]


def copier(path: Path, **options: Any) -> BulkTranslator:
    return BulkTranslator(path, BulkOptions(**options), open_copying)


@dataclass(eq=False)
class Shouting(BulkTranslator):
    """Capitals instead of a translation, as fast as lines can be moved; otherwise like any other.

    Attributes:
        pause: seconds for each line.
        pids: a folder where each process that works leaves its number.
    """

    pause: float = 0.0
    pids: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"pause": self.pause, "pids": self.pids}

    def translate_block(self, lines: Sequence[Line]) -> list[LineResult]:
        if self.pids is not None:
            (self.pids / str(os.getpid())).touch()
        time.sleep(self.pause * len(lines))
        return [self._shout(fields_of(line)) for line in lines]

    def _shout(self, row: Sequence[Any]) -> LineResult:
        fault = fault_of(row, self.options.max_line_bytes)
        return LineResult.untranslated(row[0], fault, self.options.bad) if fault else LineResult(shout(row[0]))


def shout(line: bytes) -> bytes:
    return line.upper()


def shouter(path: Path, **options: Any) -> Shouting:
    return Shouting(path, BulkOptions(**options), open_copying)


def write_lines(path: Path, lines: Iterable[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(line + b"\n" for line in lines)
    return path


def numbered(count: int) -> Iterable[bytes]:
    """Lines of different lengths, each of its own."""
    return (b"line %d %s" % (number, b"x" * (number * 7 % 40)) for number in range(count))


def main(arguments: Sequence[str]) -> None:
    """`tandem translate --resume` and the memory it took: BUNDLE SOURCE OUT PIDS|- PAUSE WORKERS SAVE_EVERY."""
    bundle, source, out, pids, pause, workers, save_every = arguments
    translator = shouter(Path(bundle))
    translator.pause, translator.pids = float(pause), None if pids == "-" else Path(pids)
    request = Request((Path(source),), Path(out), resume=True, workers=int(workers), save_every=float(save_every))
    try:
        summary = translate_files(translator, request)
    except Stopped as stopped:
        sys.exit(128 + stopped.signal)
    print(
        json.dumps(
            {
                "lines": summary.counts.lines,
                "before": summary.before,
                "loaded": memory_of()["rss_mb"],
                "peak": memory_of()["peak_mb"],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
