"""Lines to lines, in the calling process: the piece that a process pool and a Ray cluster multiply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tandem.extras.bulk.lines import (
    Field,
    Line,
    LineFinding,
    LineResult,
    LineTranslator,
    Written,
    fault_of,
    fields_of,
    text_of,
)
from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.segments import SegmentTranslator
from tandem.extras.shared.runtime import Opener, check_shortlist, directed
from tandem.models.bundle import Bundle
from tandem.models.translation.rendering import with_unknown_words
from tandem.service.ports import stage_readers
from tandem.service.runtimes import open_graphs


class _Opened(NamedTuple):
    bundle: Bundle
    options: BulkOptions
    lines: LineTranslator
    kept: int


@dataclass(eq=False)
class BulkTranslator:
    """Translates blocks of lines with one bundle. Can be pickled: what it opens stays behind, and is opened again.

    Attributes:
        path: the bundle's folder.
        options: how to translate.
        opener: opens the graphs of a runtime and precision, as :func:`service.runtimes.open_graphs` does.
    """

    path: Path | str
    options: BulkOptions = BulkOptions()
    opener: Opener = open_graphs

    def __post_init__(self) -> None:
        self._opened: _Opened | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "options": self.options, "opener": self.opener, "_opened": None}

    def open(self) -> Bundle:
        """Load the bundle and its graphs, where that has not been done.

        Raises:
            BundleError: the bundle is refused, or lacks the graphs.
            ConfigError: options that do not fit it, or a runtime that is not there.
        """
        return self._open().bundle

    @property
    def settled(self) -> BulkOptions:
        """The options with what was left to the bundle. Raises as ``open``."""
        return self._open().options

    @property
    def widths(self) -> tuple[int, ...]:
        """Per field of a line the width of its feature vectors, 0 for text. Raises as ``open``."""
        return (*self._open().bundle.feature_widths, *((0,) if self.options.candidates > 1 else ()))

    def close(self) -> None:
        """Let go of what was opened; the next call opens it again."""
        if self._opened is not None:
            self._opened.lines.close()
        self._opened = None

    def translate_block(self, lines: Sequence[Line]) -> list[LineResult]:
        """The translations of lines, as many and in the same order.

        Lines are decoded in the order of their lengths. A line that is no text, or that fails, costs itself only, and
        its record says why.

        Args:
            lines: bytes in UTF-8 or text, without line end; a carriage return at the end comes back. Of bundles with
                several sources one field per source, feature matrices as arrays.

        Raises:
            BundleError, ConfigError: see ``open``.
            DeviceLost: no other line could be translated either.
        """
        opened = self._open()
        rows = [fields_of(line) for line in lines]
        faults = [fault_of(row, self.options.max_line_bytes) for row in rows]
        sound = [row for row, fault in zip(rows, faults, strict=True) if fault is None]
        written = iter(opened.lines.translate([[text_of(_unended(field)) for field in row] for row in sound]))
        pairs = zip(rows, faults, strict=True)
        return [self._record(row[opened.kept], next(written) if fault is None else fault) for row, fault in pairs]

    def _record(self, line: Field, outcome: Written | LineFinding) -> LineResult:
        if isinstance(outcome, LineFinding):
            return LineResult.untranslated(line, outcome, self.options.bad)
        if outcome.text is None:
            return LineResult.untranslated(line, outcome.findings[0], self.options.bad)
        return LineResult(outcome.text.replace("\n", " ").encode("utf-8", "replace") + _end(line), outcome.findings)

    def _open(self) -> _Opened:
        if self._opened is None:
            loaded = Bundle.load(self.path, readers=stage_readers())
            one = directed(loaded, self.options.language, self.options.target)
            bundle = with_unknown_words(one, self.options.keep_unknown)
            options = self.options.settled(bundle)
            graphs = options.open_graphs(bundle, self.opener)
            shortlist = check_shortlist(bundle, graphs) if self.options.shortlist else None
            lines: LineTranslator
            if options.sentences:
                from tandem.extras.bulk.texts import TextTranslator  # the text service, which segments do not need

                lines = TextTranslator(bundle, graphs, options)
            else:
                lines = SegmentTranslator(bundle, graphs, options, shortlist)
            edits = bundle.manifest.target_form == "edits"
            texts = [index for index, vocabulary in enumerate(bundle.sources) if vocabulary is not None]
            kept = texts[-1 if edits else 0] if texts else 0
            self._opened = _Opened(bundle, options, lines, kept)
        return self._opened


def _unended(field: Field) -> Field:
    if isinstance(field, bytes):
        return field.removesuffix(b"\r")
    return field.removesuffix("\r") if isinstance(field, str) else field


def _end(line: Field) -> bytes:
    ended = line.endswith(b"\r") if isinstance(line, bytes) else isinstance(line, str) and line.endswith("\r")
    return b"\r" if ended else b""
