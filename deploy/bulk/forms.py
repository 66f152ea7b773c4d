"""What a line is to the model: a text of several sentences, or one segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from deploy.bulk.records import Field, Finding
from models.bundle import Bundle
from models.rendering import Renderer
from models.search import Array, Hypothesis, SearchOptions
from models.text import normalise
from models.translator import encode_lines
from models.vocabulary import EOS, Vocabulary

Sources: TypeAlias = tuple[Array, ...]
_WHOLE = 1 << 40  # tokens: more than a line has


class Draft(Protocol):
    """A line on its way.

    Attributes:
        sentences: what is decoded, each in all of the model's sources.
        findings: what reading the line found.
    """

    @property
    def sentences(self) -> Sequence[Sources]: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    def write(self, hypotheses: Sequence[Hypothesis]) -> str:
        """The translation; ``hypotheses``: one per sentence."""
        ...


class Form(Protocol):
    """Reads lines; ``options`` are those of the search."""

    @property
    def options(self) -> SearchOptions: ...
    def read(self, fields: Sequence[Field]) -> Draft:
        """A line, given as one field per source, text without line breaks."""
        ...


class SegmentForm:
    """A line is one segment, in as many sources as the bundle has: what corpora hold, and `tandem evaluate` decodes."""

    def __init__(self, bundle: Bundle, search: SearchOptions) -> None:
        self.renderer = Renderer.of(bundle)
        self.options = self.renderer.options(search)
        self._sources: tuple[Vocabulary | None, ...] = bundle.sources
        self._limit = bundle.manifest.limits.max_source_tokens
        self._cut_is_bad = bundle.manifest.task != "summarize"  # a summary reads the beginning, and has to say so only

    def read(self, fields: Sequence[Field]) -> SegmentDraft:
        """A line; what is blank in every source stays blank."""
        texts = tuple(field if isinstance(field, str) else "" for field in fields)
        if not any(map(str.strip, texts)) and any(vocabulary is not None for vocabulary in self._sources):
            return SegmentDraft(self.renderer, texts)
        ids = [
            np.asarray(field) if vocabulary is None else encode_lines(vocabulary, [str(field)], _WHOLE)[0]
            for vocabulary, field in zip(self._sources, fields, strict=True)
        ]
        pairs = list(zip(self._sources, ids, strict=True))
        longest = max((len(one) - 1 for vocabulary, one in pairs if vocabulary is not None), default=0)
        read = tuple(one if vocabulary is None else self._cut(one) for vocabulary, one in pairs)
        findings = () if longest <= self._limit else (self._finding(longest),)
        return SegmentDraft(self.renderer, texts, (read,), findings)

    def _cut(self, ids: Array) -> Array:
        return ids if len(ids) <= self._limit + 1 else np.append(ids[: self._limit], EOS)

    def _finding(self, tokens: int) -> Finding:
        detail = f"has {tokens} tokens, of which the model reads the first {self._limit}"
        return Finding("cut", detail, self._cut_is_bad)


@dataclass(frozen=True, slots=True, eq=False)
class SegmentDraft:
    """A segment."""

    renderer: Renderer
    texts: tuple[str, ...]
    sentences: tuple[Sources, ...] = ()
    findings: tuple[Finding, ...] = ()

    def write(self, hypotheses: Sequence[Hypothesis]) -> str:
        """The hypothesis as text."""
        return self.renderer.text(hypotheses[0], (), self.texts) if self.sentences else ""


def plain(text: str) -> str:
    """Normalised text on one line."""
    return normalise(text).replace("\n", " ")
