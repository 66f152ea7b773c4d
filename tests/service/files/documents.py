"""Word documents to translate, made by python-docx where it can, and by hand where it cannot."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import docx

from service.files.bounds import Bounds, Segment
from service.files.formats import FORMATS

BOUNDS = Bounds(characters=100_000, slice_characters=1_000, markup_characters=4_000)
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def blank() -> bytes:
    """A document without paragraphs."""
    kept = io.BytesIO()
    docx.Document().save(kept)
    return kept.getvalue()


def with_body(body: str) -> bytes:
    """A document with that XML as its body; the prefix ``w`` is Word's."""
    xml = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:document xmlns:w="{WORD}" xmlns:r="urn:r">'
    return changed(blank(), {"word/document.xml": f"{xml}<w:body>{body}</w:body></w:document>".encode()})


def changed(document: bytes, members: Mapping[str, bytes | None]) -> bytes:
    """A document with some members of its archive replaced, added, or (None) left out."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(document)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        kept = [name for name in old.namelist() if name not in members]
        for name in kept:
            new.writestr(name, old.read(name))
        for name, content in members.items():
            if content is not None:
                new.writestr(name, content)
    return written.getvalue()


def members(document: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def body_of(document: bytes) -> str:
    """What stands between the tags of the body."""
    xml = members(document)["word/document.xml"].decode()
    return xml[xml.index("<w:body>") + len("<w:body>") : xml.index("</w:body>")]


def segments(folder: Path, ending: str, content: bytes, bounds: Bounds = BOUNDS) -> list[Segment]:
    path = folder / f"read.{ending}"
    path.write_bytes(content)
    return list(FORMATS[ending].read(path, bounds))


def translated(
    folder: Path, ending: str, content: bytes, translations: Sequence[str] | None = None, bounds: Bounds = BOUNDS
) -> bytes:
    """The file with those translations; None = every text as it was."""
    texts = [one.text for one in segments(folder, ending, content, bounds)] if translations is None else translations
    path, result = folder / f"source.{ending}", folder / f"result.{ending}"
    path.write_bytes(content)
    FORMATS[ending].write(path, texts, result, bounds)
    return result.read_bytes()
