"""Word documents to translate, made by python-docx where it can, and by hand where it cannot."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import docx

from tandem.extras.files.bounds import Bounds, Segment, SourceFile
from tandem.extras.files.formats import FORMATS

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
    return with_members(blank(), {"word/document.xml": f"{xml}<w:body>{body}</w:body></w:document>".encode()})


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*parts: str) -> str:
    return f"<w:p>{''.join(parts)}</w:p>"


def with_members(document: bytes, members: Mapping[str, bytes | str | None]) -> bytes:
    """An archive with some members in place of others; nothing else of it changes."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(document)) as old, zipfile.ZipFile(written, "w") as new:
        names = [member.filename for member in old.infolist()]
        for member in old.infolist():
            content = members.get(member.filename, old.read(member))
            if content is not None:
                new.writestr(member, content)
        for name in members.keys() - set(names):
            new.writestr(name, members[name] or b"", zipfile.ZIP_DEFLATED)
    return written.getvalue()


def members(document: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def body_of(document: bytes) -> str:
    """What stands between the tags of the body."""
    xml = members(document)["word/document.xml"].decode()
    return xml[xml.index("<w:body>") + len("<w:body>") : xml.index("</w:body>")]


def source_file(path: Path, bounds: Bounds = BOUNDS) -> SourceFile:
    return SourceFile(path, path.suffix[1:], "en", bounds)


def segments(folder: Path, ending: str, content: bytes, bounds: Bounds = BOUNDS) -> list[Segment]:
    path = folder / f"read.{ending}"
    path.write_bytes(content)
    return list(FORMATS[ending].read(source_file(path, bounds)))


def translated(
    folder: Path, ending: str, content: bytes, translations: Sequence[str] | None = None, bounds: Bounds = BOUNDS
) -> bytes:
    """The file with those translations; None = every text as it was."""
    texts = [one.text for one in segments(folder, ending, content, bounds)] if translations is None else translations
    path, result = folder / f"source.{ending}", folder / f"result.{ending}"
    path.write_bytes(content)
    FORMATS[ending].write(source_file(path, bounds), texts, result)
    return result.read_bytes()
