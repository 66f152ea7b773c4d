"""Lines: what goes into their translation, and what comes out of it. To the model a line is a text (``texts``) or one
segment (``segments``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.extras.bulk.options import Bad

Field: TypeAlias = bytes | str | NDArray[np.floating[Any]]
"""A line in one source: text, or a matrix of feature vectors."""
Line: TypeAlias = Field | Sequence[Field]
"""A line; of bundles with several sources one field per source."""


@dataclass(frozen=True, slots=True)
class LineFinding:
    """Something about a line that its reader should know.

    Attributes:
        reason: for machines, such as ``invalid_utf8``.
        detail: for people.
        bad: whether the translation is missing, or not all of it is there.
    """

    reason: str
    detail: str
    bad: bool = True


@dataclass(frozen=True, slots=True)
class LineResult:
    """What became of a line.

    Attributes:
        data: what stands in its place, without line end; of a line that is kept as it was, its own bytes.
        findings: what is worth telling; nearly always nothing.
    """

    data: bytes
    findings: tuple[LineFinding, ...] = ()

    @property
    def text(self) -> str:
        """The same as text; bytes that are none are U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @property
    def bad(self) -> bool:
        """Whether the translation is missing, or not all of it is there."""
        return any(finding.bad for finding in self.findings)

    @classmethod
    def untranslated(cls, line: Field, finding: LineFinding, bad: Bad) -> LineResult:
        """That of a line which cannot be translated."""
        if bad == "empty" or not isinstance(line, bytes | str):
            return cls(b"", (finding,))
        return cls(line if isinstance(line, bytes) else line.encode("utf-8", "replace"), (finding,))


def fields_of(line: Line) -> tuple[Field, ...]:
    """A line's fields, one per source."""
    return (line,) if isinstance(line, bytes | str | np.ndarray) else tuple(line)


def fault_of(fields: Sequence[Field], longest: int) -> LineFinding | None:
    """Why a line cannot be translated at all; None where it can. ``longest``: bytes that a field may have."""
    for field in fields:
        if isinstance(field, bytes) and len(field) > longest:
            return LineFinding("too_long", f"has {len(field)} bytes, more than --max-line-bytes allows")
        try:
            text = field.decode("utf-8") if isinstance(field, bytes) else field
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            return LineFinding("invalid_utf8", f"not UTF-8: {error.reason} (0x{byte:02x}, byte {error.start + 1})")
        if isinstance(text, str) and "\0" in text:
            place = text.index("\0") + 1
            return LineFinding("nul", f"holds a NUL (character {place}): no text, or text that is not UTF-8")
    return None


def text_of(field: Field) -> Field:
    """A sound field as the model's side reads it; what would begin a new line becomes a space."""
    if not isinstance(field, bytes | str):
        return field
    text = field.decode("utf-8") if isinstance(field, bytes) else field
    return text.replace("\r", " ").replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Written:
    """What was made of a line: its translation, None where the model failed at it, and what is worth telling."""

    text: str | None
    findings: tuple[LineFinding, ...] = ()


class LineTranslator(Protocol):
    """Translates lines, given as one field per source, text without line breaks."""

    def translate(self, rows: Sequence[Sequence[Field]]) -> list[Written]:
        """What becomes of each. One that fails costs itself only. Raises DeviceLost."""
        ...

    def close(self) -> None: ...
