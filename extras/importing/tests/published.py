"""A registry as Mozilla publishes it, with small students in it, and a server for it."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tandem.extras.importing.tests.students import write_student
from tests.deploy.listening import answering, send_rest

_NAMES = {
    "model": "model.ende.intgemm.alphas.bin",
    "lexicalShortlist": "lex.50.50.ende.s2t.bin",
    "vocab": "vocab.ende.spm",
}


def write_registry(root: Path, base: str = "https://models.example.org") -> None:
    """The tree of a registry that has a student of two sizes for en-de, and one for en-pt that is not released."""
    student = root.parent / "student"
    write_student(student)
    models = {
        "en-de": [
            _entry(root, student, "en-de", "tiny", "Release Android"),
            _entry(root, student, "en-de", "base-memory", "Release Desktop"),
            _entry(root, student, "en-de", "base", "Nightly"),
        ],
        "en-pt": [_entry(root, student, "en-pt", "tiny", "Nightly")],
    }
    (root / "db").mkdir()
    index = {"generated": "2026-11-01T00:00:00Z", "baseUrl": base, "models": models}
    (root / "db" / "models.json").write_text(json.dumps(index), encoding="utf-8")


def _entry(root: Path, student: Path, pair: str, architecture: str, status: str) -> dict[str, Any]:
    files: dict[str, dict[str, Any]] = {}
    for kind, name in _NAMES.items():
        content = (student / name).read_bytes()
        path = f"models/{pair}/{architecture}/{name}.gz"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(gzip.compress(content, mtime=0))
        files[kind] = {"path": path}
        if kind == "model":
            digest = hashlib.sha256(content).hexdigest()
            files[kind] |= {"uncompressedSize": len(content), "uncompressedHash": digest}
    source, target = pair.split("-")
    scores = {"flores200-plus": {"bleu": 31.5, "chrf": 60.25, "comet22": 0.875}}
    return {
        "architecture": architecture,
        "releaseStatus": status,
        "sourceLanguage": source,
        "targetLanguage": target,
        "files": files,
        "modelStatistics": {},
        "metrics": scores,
    }


def change_index(root: Path, **changes: Any) -> None:
    """Change the file ``kind`` of the first model of en-de that is released for desktops."""
    path = root / "db" / "models.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    for kind, fields in changes.items():
        table["models"]["en-de"][1]["files"][kind] |= fields
    path.write_text(json.dumps(table), encoding="utf-8")


@dataclass
class Served:
    """A server of a folder.

    Attributes:
        root: the folder.
        stops: after so many bytes of an answer, by the end of its path.
        asked: what was asked for, as it stood in the request: as a proxy it is a whole URL.
    """

    root: Path
    stops: Mapping[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    ranges: list[str | None] = field(default_factory=list)
    address: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        self.ranges.append(request.headers["Range"])
        path = self.root / request.path.partition("//")[2].partition("/")[2] if "//" in request.path else None
        path = path or self.root / request.path.lstrip("/")
        if not path.is_file():
            request.send_error(404)
            return
        content = path.read_bytes()
        first = int((request.headers["Range"] or "bytes=0-")[6:-1])
        stop = next((stop for end, stop in self.stops.items() if request.path.endswith(end)), None)
        send_rest(request, content, first, tag='"1"', stop=stop)


@contextmanager
def serving(root: Path) -> Iterator[Served]:
    """A server of a folder until the block ends."""
    served = Served(root)
    with answering(served.answer) as url:
        served.address = url
        yield served
