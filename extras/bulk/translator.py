"""Lines to lines, in the calling process and thread: the piece that a process pool and a Ray cluster multiply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tandem.deploy.runtime import Opener, check_shortlist, directed
from tandem.extras.bulk.lines import (
    Field,
    Line,
    LineFinding,
    LineReader,
    LineReading,
    LineResult,
    SegmentReader,
    fault_of,
    fields_of,
    text_of,
)
from tandem.extras.bulk.options import BulkOptions
from tandem.models.bundle import Bundle
from tandem.models.search import Failed, Hypothesis, OfflineDecoder
from tandem.models.search.offline import NBest
from tandem.models.search.start import slots_of
from tandem.service.runtimes import open_graphs

MOST_SENTENCES = 64  # of a batch, on one core


class _Opened(NamedTuple):
    bundle: Bundle
    options: BulkOptions
    form: LineReader
    decoder: OfflineDecoder
    kept: int


@dataclass(eq=False)
class BulkTranslator:
    """Translates blocks of lines with one bundle. Can be pickled: what it opens stays behind, and is opened again.

    Where ``options.candidates`` is more than one, a line has its reference as one more field, and of so many hypotheses
    the one nearest to that is taken: Kim & Rush (2016), "Sequence-Level Knowledge Distillation", section 3.3's
    interpolation, which stays nearer to what people wrote than the best hypothesis (3.2). They measure likeness by
    smoothed sentence BLEU; chrF (Popović 2015, as sacreBLEU counts it) needs no smoothing and is used here.

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
        return (*self._open().bundle.feature_widths, *((0,) if self._teaches else ()))

    def close(self) -> None:
        """Let go of what was opened; the next call opens it again."""
        self._opened = None

    def translate_block(self, lines: Sequence[Line]) -> list[LineResult]:
        """The translations of lines, as many and in the same order.

        Lines are sorted by length inside. A line that is no text, or that fails, costs itself only, and its record says
        why.

        Args:
            lines: bytes in UTF-8 or text, without line end; a carriage return at the end comes back. Of bundles with
                several sources one field per source, feature matrices as arrays.

        Raises:
            BundleError, ConfigError: see ``open``.
        """
        opened = self._open()
        rows = [fields_of(line) for line in lines]
        readings = [fault_of(row, self.options.max_line_bytes) or self._read(opened.form, row) for row in rows]
        sentences = [one for reading in readings if isinstance(reading, LineReading) for one in reading.sentences]
        outcomes = opened.decoder.decode(sentences)
        return [self._record(row, reading, outcomes) for row, reading in zip(rows, readings, strict=True)]

    @property
    def _teaches(self) -> bool:
        return self.options.candidates > 1

    def _read(self, form: LineReader, row: Sequence[Field]) -> LineReading:
        return form.read([text_of(_unended(field)) for field in (row[:-1] if self._teaches else row)])

    def _record(
        self, row: Sequence[Field], reading: LineReading | LineFinding, outcomes: Iterator[NBest]
    ) -> LineResult:
        line = row[self._open().kept]
        if isinstance(reading, LineFinding):
            return LineResult.untranslated(line, reading, self.options.bad)
        hypotheses: list[Sequence[Hypothesis]] = []
        failures: list[Failed] = []
        for _, outcome in zip(reading.sentences, outcomes, strict=False):
            failures.append(outcome) if isinstance(outcome, Failed) else hypotheses.append(outcome)
        if failures:
            finding = LineFinding("decoding_failed", f"the model failed: {failures[0].why}")
            return LineResult.untranslated(line, finding, self.options.bad)
        if self._teaches and hypotheses:
            from tandem.extras.bulk.synthetic import nearest  # its metric, which translating alone does not need

            text = nearest([reading.write([one]) for one in hypotheses[0]], str(text_of(row[-1])))
        else:
            text = reading.write([n_best[0] for n_best in hypotheses])
        return LineResult(text.replace("\n", " ").encode("utf-8", "replace") + _end(line), reading.findings)

    def _open(self) -> _Opened:
        if self._opened is None:
            bundle = directed(Bundle.load(self.path), self.options.language, self.options.target)
            options = self.options.settled(bundle)
            graphs = options.open_graphs(bundle, self.opener)
            form = _form(bundle, options)
            shortlist = check_shortlist(bundle, graphs) if options.shortlist else None
            count = max(1, options.candidates)
            search = replace(form.options, beam_size=max(form.options.beam_size, count), n_best=count)
            most = None if slots_of(graphs) else MOST_SENTENCES
            decoder = OfflineDecoder(graphs, search, shortlist, most=most, isolate=True)
            edits = bundle.manifest.target_form == "edits"
            texts = [index for index, vocabulary in enumerate(bundle.sources) if vocabulary is not None]
            kept = texts[-1 if edits else 0] if texts else 0
            self._opened = _Opened(bundle, options, form, decoder, kept)
        return self._opened


def _form(bundle: Bundle, options: BulkOptions) -> LineReader:
    """How lines are read; ``options`` are settled."""
    search = replace(bundle.manifest.decoding, beam_size=options.beam_size or bundle.manifest.decoding.beam_size)
    if options.sentences:
        from tandem.extras.bulk.texts import TextReader  # the service's text handling, which segments do not need

        return TextReader(bundle, options.language, search)
    return SegmentReader(bundle, search)


def _unended(field: Field) -> Field:
    if isinstance(field, bytes):
        return field.removesuffix(b"\r")
    return field.removesuffix("\r") if isinstance(field, str) else field


def _end(line: Field) -> bytes:
    ended = line.endswith(b"\r") if isinstance(line, bytes) else isinstance(line, str) and line.endswith("\r")
    return b"\r" if ended else b""
