"""A line as one segment, decoded as a whole, in as many sources as the bundle has: what corpora hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tandem.extras.bulk.lines import Field, LineFinding, Written
from tandem.extras.bulk.options import BulkOptions
from tandem.models.bundle import Bundle
from tandem.models.search import Array, Failed, Graphs, Hypothesis, OfflineDecoder
from tandem.models.search.offline import NBest, Sources
from tandem.models.search.shortlist import Shortlist
from tandem.models.search.start import slots_of
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import encode_lines, written_lines
from tandem.models.vocabulary import EOS

_WHOLE = 1 << 40  # tokens: more than a line has
_SENTENCES = 64  # of a batch, on one core


@dataclass(frozen=True, slots=True)
class _Segment:
    """A line as the model reads it; ``sources`` None: it is blank, and stays so."""

    sources: Sources | None
    texts: tuple[str, ...]
    findings: tuple[LineFinding, ...] = ()


class SegmentTranslator:
    """Where ``options.candidates`` is more than one, a line has its reference as one more field, and of so many
    hypotheses the one nearest to that is taken: Kim & Rush (2016), "Sequence-Level Knowledge Distillation", section
    3.3's interpolation, which stays nearer to what people wrote than the best hypothesis (3.2). They measure likeness
    by smoothed sentence BLEU; chrF (Popović 2015, as sacreBLEU counts it) needs no smoothing and is used here.
    """

    def __init__(self, bundle: Bundle, graphs: Graphs, options: BulkOptions, shortlist: Shortlist | None) -> None:
        """``options``: settled."""
        self._bundle, self._renderer, self._candidates = bundle, Renderer.of(bundle), options.candidates
        search = self._renderer.options(bundle.manifest.decoding)
        beam_size = max(options.beam_size or search.beam_size, self._candidates)
        search = replace(search, beam_size=beam_size, n_best=self._candidates)
        most = None if slots_of(graphs) else _SENTENCES
        self._decoder = OfflineDecoder(graphs, search, shortlist, most=most, isolate=True)

    def translate(self, rows: Sequence[Sequence[Field]]) -> list[Written]:
        """Lines; what is blank in every source stays blank."""
        teaches = self._candidates > 1
        segments = [self._read(row[:-1] if teaches else row) for row in rows]
        outcomes = self._decoder.decode(segment.sources for segment in segments if segment.sources is not None)
        return [
            Written("", segment.findings)
            if segment.sources is None
            else self._written(segment, next(outcomes), str(row[-1]) if teaches else None)
            for row, segment in zip(rows, segments, strict=True)
        ]

    def close(self) -> None:
        """Nothing runs."""

    def _read(self, fields: Sequence[Field]) -> _Segment:
        sources, limit = self._bundle.sources, self._bundle.manifest.limits.max_source_tokens
        (texts,) = written_lines(sources, [[field] for field in fields])
        if not any(map(str.strip, texts)) and any(vocabulary is not None for vocabulary in sources):
            return _Segment(None, texts)
        longest, read = 0, list[Array]()
        for vocabulary, field in zip(sources, fields, strict=True):
            if vocabulary is None:
                read.append(np.asarray(field))
                continue
            (ids,) = encode_lines(vocabulary, [str(field)], _WHOLE)
            longest = max(longest, len(ids) - 1)
            read.append(ids if len(ids) <= limit + 1 else np.append(ids[:limit], EOS))
        if longest <= limit:
            return _Segment(tuple(read), texts)
        bad = self._bundle.manifest.task != "summarize"  # a summary reads the beginning, and has to say so only
        detail = f"has {longest} tokens, of which the model reads the first {limit}"
        return _Segment(tuple(read), texts, (LineFinding("cut", detail, bad),))

    def _written(self, segment: _Segment, outcome: NBest, reference: str | None) -> Written:
        if isinstance(outcome, Failed):
            return Written(None, (LineFinding("decoding_failed", f"the model failed: {outcome.why}"),))
        if reference is None:
            return Written(self._text(outcome[0], segment), segment.findings)
        from tandem.extras.bulk.synthetic import nearest  # its metric, which translating alone does not need

        return Written(nearest([self._text(one, segment) for one in outcome], reference), segment.findings)

    def _text(self, hypothesis: Hypothesis, segment: _Segment) -> str:
        return self._renderer.text(hypothesis, (), segment.texts)
