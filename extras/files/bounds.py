"""What a file may amount to, and how a file that breaks a bound is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.service.errors import ServiceError


class FileRefused(ServiceError):
    """A file cannot be translated, and why: another type than its name says, broken, or over a bound.

    Attributes:
        code: for machines.
    """

    def __init__(self, code: str, message: str, detail: Any = None) -> None:
        self.code = code
        super().__init__(message, detail)

    @classmethod
    def too_large(cls, what: str, bound: int, value: int, remedy: str) -> FileRefused:
        """Over a bound of size."""
        message = f"a file may have at most {bound} {what}, but this one has {value}; {remedy}"
        return cls("file_too_large", message, {"bound": bound, "value": value})

    @classmethod
    def wrong_type(cls, name: str, holds: str) -> FileRefused:
        """Its content is not what its name says."""
        message = f"the file is named .{name}, but holds {holds}; give it the name of its type, or send another file"
        return cls("unsupported_file", message)

    @classmethod
    def broken(cls, message: str) -> FileRefused:
        """Of its type, but it cannot be read."""
        return cls("broken_file", message)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one file may amount to.

    Attributes:
        characters: to translate.
        slice_characters: of a slice, at most, unless one text with markup is longer.
        markup_characters: of one text with markup, which cannot be cut.
        slice_texts: of a slice.
        unpacked_bytes: of an archive's members together.
        ratio: unpacked bytes per packed one, of each member and of the archive.
        members: of an archive.
        markup_bytes: of the XML that is parsed, together.
    """

    characters: int
    slice_characters: int
    markup_characters: int
    slice_texts: int = 100
    unpacked_bytes: int = 100 << 20
    ratio: int = 200
    members: int = 2_000
    markup_bytes: int = 32 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that is read, and written again with its texts replaced.

    Attributes:
        path: of the file.
        ending: of its name, which says its type.
        target: language that it is translated into.
        bounds: that it must keep.
    """

    path: Path
    ending: str
    target: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Segment:
    """One text of a file: a line, a subtitle, a paragraph.

    Attributes:
        text: without the white space around it.
        markup: whether it is HTML: inline elements around formatted words.
    """

    text: str
    markup: bool = False
