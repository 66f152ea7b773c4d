"""Evaluation sets in the SGML of NIST and WMT and the XML of IWSLT: documents of numbered segments.

The files are no XML that a strict parser takes (bare ampersands, unquoted attributes, upper-case tags), hence the
standard library's HTML parser, which forgives all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

from models.errors import CorpusError
from training.corpora.raw import RawFile

Key = tuple[str, str]  # document, segment
ENDINGS = (".sgm", ".sgml", ".xml")
# NIST's older Chinese sets come in the second. It would also decode most of Latin-1, to nonsense: sources only.
ENCODINGS = ("utf-8-sig", "gb18030")


class _Segments(HTMLParser):
    """Collects the segments by system (reference translators have an id each; a source has none)."""

    def __init__(self, where: RawFile) -> None:
        super().__init__(convert_charrefs=True)
        self.systems: dict[str, dict[Key, str]] = {}
        self._where = where
        self._system = self._document = ""
        self._segment: str | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in ("srcset", "refset", "tstset", "doc"):
            self._system = values.get("sysid", self._system)
            self._document = values.get("docid", "").strip().lower() if tag == "doc" else ""
        elif tag == "seg":
            self.end_segment()
            self._segment = values.get("id", "").strip()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("seg", "doc"):
            self.end_segment()

    def handle_data(self, data: str) -> None:
        if self._segment is not None:
            self._text.append(data)

    def end_segment(self) -> None:
        """Keep what was read since the segment began."""
        if self._segment is None:
            return
        key = (self._document, self._segment)
        found = self.systems.setdefault(self._system, {})
        if key in found:
            raise CorpusError(f"{self._where}: document {key[0]!r} has two segments {key[1]!r}")
        found[key] = " ".join("".join(self._text).split())
        self._segment, self._text = None, []


def read_segments(file: RawFile, encodings: Sequence[str] = ENCODINGS[:1]) -> list[dict[Key, str]]:
    """The segments by document and number, in order; one record for each system (reference) in the file.

    Raises:
        CorpusError: no segment is in it, a number occurs twice, or it is in none of the encodings.
    """
    data = file.content()
    for encoding in encodings:
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise CorpusError(f"{file}: not {' or '.join(encodings)}; convert it to UTF-8 first")
    parser = _Segments(file)
    parser.feed(text)
    parser.close()
    parser.end_segment()
    if not parser.systems:
        raise CorpusError(f"{file}: no <seg> is in it; is it the file that the corpus is distributed with?")
    return list(parser.systems.values())


def align_segments(files: Sequence[RawFile]) -> list[list[str]]:
    """The text of parallel files, one column for each file and for each further reference, in the first file's order.

    Raises:
        CorpusError: as `read_segments`; the files hold different segments; or a source has several versions.
    """
    read = [read_segments(file, ENCODINGS) for file in files[:-1]] + [read_segments(files[-1])]
    keys = list(read[0][0])
    columns = []
    for index, (file, systems) in enumerate(zip(files, read, strict=True)):
        if len(systems) > 1 and index + 1 < len(files):
            raise CorpusError(f"{file}: {len(systems)} systems in a source file")
        for segments in systems:
            if segments.keys() != set(keys):
                odd = sorted(segments.keys() ^ set(keys))
                some = ", ".join(f"{document} {number}".strip() for document, number in odd[:3])
                raise CorpusError(
                    f"{file}: holds {len(segments)} segments where {files[0]} holds {len(keys)};"
                    f" {len(odd)} are in one only, such as {some}"
                )
            columns.append([segments[key] for key in keys])
    return columns
