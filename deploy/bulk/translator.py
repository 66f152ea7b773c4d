"""Lines to lines, in the calling process and thread: the piece that a process pool and Ray Data multiply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from deploy.bulk.decoding import Decoder, Failed
from deploy.bulk.forms import Draft, Form, SegmentForm
from deploy.bulk.options import BulkOptions
from deploy.bulk.records import Field, Finding, Line, Record, fault_of, fields_of, text_of
from models.bundle import Bundle
from models.errors import ConfigError
from models.search import Graphs, Hypothesis
from models.shortlist import Shortlist
from service.runtimes import open_graphs

Opener = Callable[[Bundle, str, str, int], Graphs]


def check_shortlist(bundle: Bundle, graphs: Graphs) -> Shortlist:
    """The bundle's shortlist. Raises ConfigError where it has none, or no graph that reads one."""
    if bundle.shortlist is None:
        raise ConfigError(f"{bundle.path} has no shortlist: build one with `tandem shortlist`")
    if "step_shortlist" not in graphs.specs:
        raise ConfigError(f"{bundle.path} has a shortlist, but these graphs read none: export them again")
    return bundle.shortlist


class _Opened(NamedTuple):
    bundle: Bundle
    options: BulkOptions
    form: Form
    decoder: Decoder
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
    def kept(self) -> int:
        """The source whose line stands in the place of one that cannot be translated. Raises as ``open``."""
        return self._open().kept

    @property
    def widths(self) -> tuple[int, ...]:
        """Per field of a line the width of its feature vectors, 0 for text. Raises as ``open``."""
        return self._open().bundle.feature_widths

    def close(self) -> None:
        """Let go of what was opened; the next call opens it again."""
        self._opened = None

    def translate_block(self, lines: Sequence[Line]) -> list[Record]:
        """The translations of lines, as many and in the same order.

        Lines are sorted by length inside: blocks of a thousand leave little padding. A line that is no text, or that
        fails, costs itself only, and its record says why.

        Args:
            lines: bytes in UTF-8 or text, without line end; a carriage return at the end comes back. Of bundles with
                several sources one field per source, feature matrices as arrays.

        Raises:
            BundleError, ConfigError: see ``open``.
        """
        opened = self._open()
        rows = [fields_of(line) for line in lines]
        drafts = [fault_of(row) or opened.form.read([text_of(_unended(field)) for field in row]) for row in rows]
        sentences = [one for draft in drafts if not isinstance(draft, Finding) for one in draft.sentences]
        found = iter(opened.decoder.decode(sentences))
        records = []
        for row, draft in zip(rows, drafts, strict=True):
            line = row[opened.kept]
            if isinstance(draft, Finding):
                records.append(Record.untranslated(line, draft, self.options.bad))
            else:
                records.append(self._record(line, draft, [next(found) for _ in draft.sentences]))
        return records

    def _record(self, line: Field, draft: Draft, found: Sequence[Hypothesis | Failed]) -> Record:
        hypotheses = [one for one in found if isinstance(one, Hypothesis)]
        failures = [one.why for one in found if isinstance(one, Failed)]
        if failures:
            finding = Finding("decoding_failed", f"the model failed: {failures[0]}")
            return Record.untranslated(line, finding, self.options.bad)
        text = draft.write(hypotheses).replace("\n", " ")
        return Record(text.encode("utf-8", "replace") + _end(line), draft.findings)

    def _open(self) -> _Opened:
        if self._opened is None:
            bundle = self.options.directed(Bundle.load(self.path))
            options = self.options.settled(bundle)
            graphs = self.opener(bundle, options.runtime, options.precision, options.threads)
            form = _form(bundle, options)
            shortlist = check_shortlist(bundle, graphs) if options.shortlist else None
            edits = bundle.manifest.target_form == "edits"
            texts = [index for index, vocabulary in enumerate(bundle.sources) if vocabulary is not None]
            kept = texts[-1 if edits else 0] if texts else 0
            self._opened = _Opened(bundle, options, form, Decoder(graphs, form.options, shortlist), kept)
        return self._opened


def _form(bundle: Bundle, options: BulkOptions) -> Form:
    """How lines are read; ``options`` are settled."""
    search = replace(bundle.manifest.decoding, beam_size=options.beam_size or bundle.manifest.decoding.beam_size)
    if options.sentences:
        from deploy.bulk.texts import TextForm  # the service's text handling, which segments do not need

        return TextForm(bundle, options.language, search)
    return SegmentForm(bundle, search)


def _unended(field: Field) -> Field:
    if isinstance(field, bytes):
        return field.removesuffix(b"\r")
    return field.removesuffix("\r") if isinstance(field, str) else field


def _end(line: Field) -> bytes:
    ended = line.endswith(b"\r") if isinstance(line, bytes) else isinstance(line, str) and line.endswith("\r")
    return b"\r" if ended else b""
