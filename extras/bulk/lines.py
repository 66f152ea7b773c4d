"""Lines: what goes into their translation, what comes out of it, and what a line is to the model: one segment here, a
text of several sentences in ``texts``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.extras.bulk.options import Bad
from tandem.models.bundle import Bundle
from tandem.models.search import Array, Hypothesis, SearchOptions
from tandem.models.search.offline import Sources
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import encode_lines, written_lines
from tandem.models.vocabulary import EOS

_WHOLE = 1 << 40  # tokens: more than a line has
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


@dataclass(frozen=True, slots=True, eq=False)
class LineReading:
    """A line as the model's side reads it.

    Attributes:
        sentences: what is decoded.
        write: one hypothesis per sentence to the line's translation.
        findings: about the line.
    """

    sentences: Sequence[Sources]
    write: Callable[[Sequence[Hypothesis]], str]
    findings: tuple[LineFinding, ...] = ()


class LineReader(Protocol):
    """Reads lines; ``options`` are those of the search."""

    @property
    def options(self) -> SearchOptions: ...
    def read(self, fields: Sequence[Field]) -> LineReading:
        """A line, given as one field per source, text without line breaks."""
        ...


class SegmentReader:
    """A line is one segment, in as many sources as the bundle has: what corpora hold, and `tandem evaluate` decodes."""

    def __init__(self, bundle: Bundle, search: SearchOptions) -> None:
        self._renderer = Renderer.of(bundle)
        self.options = self._renderer.options(search)
        self._sources = bundle.sources
        self._limit = bundle.manifest.limits.max_source_tokens
        self._cut_is_bad = bundle.manifest.task != "summarize"  # a summary reads the beginning, and has to say so only

    def read(self, fields: Sequence[Field]) -> LineReading:
        """A line; what is blank in every source stays blank."""
        (texts,) = written_lines(self._sources, [[field] for field in fields])
        if not any(map(str.strip, texts)) and any(vocabulary is not None for vocabulary in self._sources):
            return LineReading((), lambda hypotheses: "")
        longest, sources = 0, list[Array]()
        for vocabulary, field in zip(self._sources, fields, strict=True):
            if vocabulary is None:
                sources.append(np.asarray(field))
                continue
            (ids,) = encode_lines(vocabulary, [str(field)], _WHOLE)
            longest = max(longest, len(ids) - 1)
            sources.append(ids if len(ids) <= self._limit + 1 else np.append(ids[: self._limit], EOS))
        detail = f"has {longest} tokens, of which the model reads the first {self._limit}"
        findings = () if longest <= self._limit else (LineFinding("cut", detail, self._cut_is_bad),)
        return LineReading([tuple(sources)], lambda found: self._renderer.text(found[0], (), texts), findings)
