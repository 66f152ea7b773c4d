"""How commands decode a test set, and what a model attended to while it did."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

from deploy.runtime import RuntimeOptions
from models.bundle import Bundle
from models.command import BeamSize, Limit, WrittenLanguage
from models.search import Graphs, OfflineDecoder, SearchOptions, translate_batch
from models.search.shortlist import Shortlist
from models.translation.rendering import Renderer
from models.translation.reranking import Reranker
from models.translation.translator import Column, encode_columns, translate_lines, written_lines

if TYPE_CHECKING:
    from training.quality.attention import SentenceAttention


@dataclass(frozen=True, slots=True)
class Decoding(RuntimeOptions):
    """How to decode a test set."""

    beam_size: BeamSize = None
    limit: Limit = None
    target: WrittenLanguage = ""

    def open(self, path: Path) -> tuple[Bundle, Graphs, SearchOptions]:
        """The bundle, its graphs and the search options."""
        bundle = Bundle.load(path)
        return bundle, *self.prepare(bundle)

    def prepare(self, bundle: Bundle) -> tuple[Graphs, SearchOptions]:
        """The graphs and the search options of a bundle that is loaded."""
        options = bundle.manifest.decoding
        if self.beam_size is not None:
            options = replace(options, beam_size=self.beam_size)
        return self.open_graphs(bundle), options

    def setting(self, segments: int, beam_size: int | None) -> str:
        """How so many segments were decoded, in words; beam size None: that of each bundle."""
        beam = "the bundles' own beam sizes" if beam_size is None else f"beam {beam_size}"
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{segments:,} segments, {self}, {beam}, {threads}"


def decode_lines(
    bundle: Bundle,
    graphs: Graphs,
    options: SearchOptions,
    columns: Sequence[Column],
    shortlist: Shortlist | None = None,
    reranker: Reranker | None = None,
) -> list[str]:
    """All lines, with a progress bar on the terminal."""
    options = options if reranker is None else replace(options, n_best=options.beam_size)
    console = Console(stderr=True)
    limit = bundle.manifest.limits.max_source_tokens + 1  # and EOS
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("decoding", total=len(columns[0]))
        decoder = OfflineDecoder(graphs, options, shortlist, progress=lambda count: bar.advance(task, count))
        vocabularies, renderer = (bundle.sources, bundle.target_vocabulary), Renderer.of(bundle)
        return translate_lines(
            decoder, vocabularies, columns, max_source_tokens=limit, renderer=renderer, reranker=reranker
        )


def timed_lines(
    bundle: Bundle,
    graphs: Graphs,
    options: SearchOptions,
    columns: Sequence[Column],
    shortlist: Shortlist | None = None,
    reranker: Reranker | None = None,
) -> tuple[list[str], float]:
    """All lines decoded, and how many a second; what only the first sentences cost is not counted."""
    decode_lines(bundle, graphs, options, [column[:4] for column in columns], shortlist, reranker)
    started = time.perf_counter()
    texts = decode_lines(bundle, graphs, options, columns, shortlist, reranker)
    return texts, round(len(texts) / (time.perf_counter() - started), 2)


def attended_lines(
    bundle: Bundle, graphs: Graphs, options: SearchOptions, columns: Sequence[Column]
) -> list[tuple[int, SentenceAttention]]:
    """What the model attends to as it writes its own best output of each line, with the line's number (from 0); lines
    without text in some source are left out. Needs torch, whatever the graphs run on.
    """
    from models.steps.loading import load_bundle_model
    from training.quality.attention import attended

    vocabularies, most = bundle.sources, bundle.manifest.limits.max_source_tokens + 1
    written = written_lines(vocabularies, columns)
    kept = [
        index
        for index, texts in enumerate(written)
        if all(text.strip() or not one for text, one in zip(texts, vocabularies, strict=True))
    ]
    if not kept:
        return []
    encoded = encode_columns(vocabularies, columns, most)
    sources = [tuple(column[index] for column in encoded) for index in kept]
    hypotheses = translate_batch(graphs, sources, replace(options, n_best=1))
    targets = [one[0].tokens for one in hypotheses]
    both = (vocabularies, bundle.target_vocabulary)
    return list(zip(kept, attended(load_bundle_model(bundle), both, sources, targets), strict=True))
