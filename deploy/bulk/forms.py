"""What a line is to the model: one segment here, a text of several sentences in ``texts``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from deploy.bulk.records import Field, LineFinding
from models.bundle import Bundle
from models.rendering import Renderer
from models.search import Array, Hypothesis, SearchOptions
from models.search.offline import Sources
from models.translator import encode_lines
from models.vocabulary import EOS

_WHOLE = 1 << 40  # tokens: more than a line has


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
        texts = tuple(field if isinstance(field, str) else "" for field in fields)
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
