"""One part of a corpus as rows of parallel text, whatever the form of its files.

- Lines: a segment each.
- IWSLT's training text, ``train.tags.*``: one sentence a line, between lines that describe the talk.
- Evaluation sets in the SGML of NIST and WMT and the XML of IWSLT: documents of numbered segments. They are no XML that
  a parser takes (bare ampersands and angles, unquoted attributes, upper-case tags, segments that are never closed):
  what counts is the text from the opening of a segment to the next tag of such a set.
- Records: an object of JSON a line, of which some keys are the fields.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from tandem.models.errors import CorpusError
from tandem.training.data.corpus import iterate_lines, unpacked

Row: TypeAlias = tuple[str, ...]  # the fields in order, then further references of the last
Key: TypeAlias = tuple[str, str]  # document, segment

PACKED = (".gz", ".xz", ".bz2")
_NUMBERED = (".sgm", ".sgml", ".xml")
# NIST's older Chinese sets come in the second. It would also decode most of Latin-1, to nonsense: sources only.
_ENCODINGS = ("utf-8-sig", "gb18030")
_TAGGED = "train.tags."
# A talk's title and description are translated like its sentences; the corpus has always been used with them.
_KEPT = ("title", "description")
_DROPPED = ("url", "talkid", "keywords", "speaker", "reviewer", "translator")
_ELEMENT = re.compile(rf"\s*<({'|'.join(_KEPT + _DROPPED)})(?: [^<>]*)?>(.*)</\1>\s*")
_SET = r"srcset|refset|tstset|doc|seg"
_OPENED = re.compile(rf"<({_SET})\b([^>]*)>((?:(?!</?(?:{_SET})\b).)*)", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|([^\s">]+))""")
_INLINE = re.compile(r"</?[A-Za-z][^<>]*>")
_FRAME = re.compile(r"\s*</?(doc|transcript)(?: [^<>]*)?>\s*")


def read_rows(files: Sequence[Path]) -> Iterator[Row]:
    """The rows of parallel files.

    Raises:
        CorpusError: a file cannot be read or is malformed, the files differ in length or in their segments, or one of
            them has numbered segments and another has not.
    """
    numbered = [plain_name(file).endswith(_NUMBERED) for file in files]
    if all(numbered):
        yield from zip(*_align(files), strict=True)
        return
    if any(numbered):
        raise CorpusError(f"{files[0]} and {files[-1]}: one has numbered segments, the other lines; take both alike")
    for number, row in enumerate(zip_longest(*map(_lines, files)), 1):
        if None in row:
            short = files[row.index(None)]
            long = next(file for file, text in zip(files, row, strict=True) if text is not None)
            raise CorpusError(f"{long}, segment {number}: no counterpart; {short} has {number - 1} segments")
        yield row


def read_records(file: Path, keys: Sequence[str], share: tuple[float, float]) -> Iterator[Row]:
    """The rows of a file of records, those that have a share of the hashes of their ``id``.

    Args:
        file: an object of JSON a line.
        keys: of the fields, which hold text; its white space is collapsed.
        share: from this number to below that, of 0 to 1.

    Raises:
        CorpusError: the file cannot be read, or a line is no such record.
    """
    for number, line in enumerate(iterate_lines(file), 1):
        try:
            record = json.loads(line)
            identity, texts = record["id"], [" ".join(record[key].split()) for key in keys]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorpusError(f"{file}, line {number}: no record with id, {', '.join(keys)}: {error!r}") from error
        if share[0] <= int(hashlib.sha256(str(identity).encode()).hexdigest()[:8], 16) / 0x1_0000_0000 < share[1]:
            yield tuple(texts)


def plain_name(path: Path) -> str:
    """A file's name without what says how it is packed."""
    return path.stem if path.suffix in PACKED else path.name


def _lines(file: Path) -> Iterator[str]:
    tagged = file.name.startswith(_TAGGED)
    for number, raw in enumerate(iterate_lines(file)):
        line = raw.removesuffix("\r") if number else raw.removesuffix("\r").removeprefix("\ufeff")
        element = _ELEMENT.fullmatch(line) if tagged else None
        if element and element[1] in _KEPT:
            yield element[2]
        elif not element and not (tagged and _FRAME.fullmatch(line)):  # any other mark-up is text
            yield line


def _read_segments(file: Path, encodings: Sequence[str]) -> list[dict[Key, str]]:
    """The segments by document and number, in order; one record for each system (reference translators have an id each,
    a source has none) in the file.
    """
    systems: dict[str, dict[Key, str]] = {}
    system = document = ""
    for tag, attributes, text in _OPENED.findall(_decoded(file, encodings)):
        values = {name.lower(): quoted or bare for name, quoted, bare in _ATTRIBUTE.findall(attributes)}
        if tag.lower() != "seg":
            system, document = values.get("sysid", system), values.get("docid", "").strip().lower()
            continue
        key, segments = (document, values.get("id", "").strip()), systems.setdefault(system, {})
        if key in segments:
            raise CorpusError(f"{file}: document {key[0]!r} has two segments {key[1]!r}")
        segments[key] = " ".join(unescape(_INLINE.sub("", text)).split())
    if not systems:
        raise CorpusError(f"{file}: no <seg> is in it; is it the file that the corpus is distributed with?")
    return list(systems.values())


def _decoded(file: Path, encodings: Sequence[str]) -> str:
    with unpacked(file) as stream:
        data = stream.read()
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise CorpusError(f"{file}: not {' or '.join(encodings)}; convert it to UTF-8 first")


def _align(files: Sequence[Path]) -> list[list[str]]:
    """One column for each file and for each further reference, in the first file's order."""
    *sources, target = files
    read = [_read_segments(file, _ENCODINGS) for file in sources] + [_read_segments(target, _ENCODINGS[:1])]
    keys = list(read[0][0])
    columns = []
    for file, systems in zip(files, read, strict=True):
        if len(systems) > 1 and file is not target:
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
