"""How commands decode a test set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from tandem.extras.shared.runtime import RuntimeOptions
from tandem.models.bundle import Bundle
from tandem.models.command import BeamSize, KeepUnknown, Limit, WrittenLanguage
from tandem.models.search import Graphs, OfflineDecoder, SearchOptions
from tandem.models.search.shortlist import Shortlist
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import Column, translate_lines
from tandem.service.bundles.loading import OpenBundle
from tandem.service.translation.requests import TranslateTask

_FIRST = 4  # segments, whose decoding is not timed
_BLOCK = 512  # texts


@dataclass(frozen=True, slots=True)
class Decoding(RuntimeOptions):
    """How to decode a test set."""

    beam_size: BeamSize = None
    limit: Limit = None
    target: WrittenLanguage = ""
    keep_unknown: KeepUnknown = None
    segments: Annotated[
        bool,
        typer.Option(
            "--segments",
            help="Decode each line as a whole, by the model alone. [as `POST /translate` answers, where a bundle"
            " translates one text]",
        ),
    ] = False

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


def translate_texts(
    bundle: Bundle,
    graphs: Graphs,
    decoding: Decoding,
    texts: Sequence[str],
    source: str,
    *,
    shortlist: bool = False,
    channel: Bundle | None = None,
) -> tuple[list[str], float]:
    """Texts as ``POST /translate`` answers them, and how many a second; what only the first cost is not counted.

    Args:
        bundle: translates one text, or its view for one direction, loaded with what text stages read.
        graphs: its graphs, opened.
        decoding: how.
        texts: what is translated.
        source: their language.
        shortlist: whether it uses its shortlist.
        channel: translates back, and chooses among the hypotheses; None = none does.
    """
    opened = [OpenBundle(bundle, graphs, decoding.backend)]
    if channel is not None:  # under a name of its own: it may be the same bundle's other direction
        channel = replace(channel, manifest=replace(channel.manifest, name=f"{bundle.manifest.name}-back"))
        opened.append(OpenBundle(channel, decoding.open_graphs(channel), decoding.backend))
    name, target = bundle.manifest.name, bundle.manifest.target_language
    beam_size, rerank = decoding.beam_size, channel is not None
    with decoding.local_service(opened, shortlist=shortlist) as service, _bar(len(texts)) as advance:

        def answer(some: Sequence[str]) -> list[str]:
            task = TranslateTask(q=some, source=source, target=target, model=name, beam_size=beam_size, rerank=rerank)
            answers = service.translate(task)
            advance(len(some))
            return [one.text for one in answers.texts]

        answer(texts[:_FIRST])
        started = time.perf_counter()
        written = [one for start in range(0, len(texts), _BLOCK) for one in answer(texts[start : start + _BLOCK])]
        return written, round(len(texts) / (time.perf_counter() - started), 2)


def decode_lines(
    bundle: Bundle,
    graphs: Graphs,
    options: SearchOptions,
    columns: Sequence[Column],
    shortlist: Shortlist | None = None,
) -> list[str]:
    """All lines, each as one segment, by the model alone, with a progress bar on the terminal."""
    limit = bundle.manifest.limits.max_source_tokens + 1  # and EOS
    with _bar(len(columns[0])) as advance:
        decoder = OfflineDecoder(graphs, options, shortlist, progress=advance)
        vocabularies, renderer = (bundle.sources, bundle.target_vocabulary), Renderer.of(bundle)
        return translate_lines(decoder, vocabularies, columns, max_source_tokens=limit, renderer=renderer)


def timed_lines(
    bundle: Bundle,
    graphs: Graphs,
    options: SearchOptions,
    columns: Sequence[Column],
    shortlist: Shortlist | None = None,
) -> tuple[list[str], float]:
    """The same, and how many a second; what only the first sentences cost is not counted."""
    decode_lines(bundle, graphs, options, [column[:_FIRST] for column in columns], shortlist)
    started = time.perf_counter()
    texts = decode_lines(bundle, graphs, options, columns, shortlist)
    return texts, round(len(texts) / (time.perf_counter() - started), 2)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal, and what moves it."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("decoding", total=total)
        yield lambda count: bar.advance(task, count)
