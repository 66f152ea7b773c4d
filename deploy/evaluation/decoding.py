"""How commands decode a test set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from tandem.deploy.runtime import RuntimeOptions
from tandem.models.bundle import Bundle
from tandem.models.command import BeamSize, Limit, WrittenLanguage
from tandem.models.search import Graphs, OfflineDecoder, SearchOptions
from tandem.models.search.shortlist import Shortlist
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.reranking import Reranker
from tandem.models.translation.translator import Column, translate_lines


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
