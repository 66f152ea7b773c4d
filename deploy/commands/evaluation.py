"""`tandem evaluate` and `tandem translate`."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

from deploy.commands.outputs import check_file
from models.bundle import Bundle, Score, extend_bundle
from models.errors import CorpusError
from models.rendering import Renderer
from models.search import Graphs, SearchOptions
from models.translator import Column, translate_lines
from service.runtimes import open_graphs

if TYPE_CHECKING:
    from training.metrics import Score as MeasuredScore


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to decode.

    Attributes:
        runtime: "onnx", "torchscript" or "torch".
        precision: of the graphs.
        beam_size: None for the bundle's.
        limit: segments, None for all.
        threads: of the runtime.
    """

    runtime: str
    precision: str
    beam_size: int | None
    limit: int | None
    threads: int

    def open(self, path: Path) -> tuple[Bundle, Graphs, SearchOptions]:
        """The bundle, its graphs and the search options."""
        bundle = Bundle.load(path)
        return bundle, *self.prepare(bundle)

    def prepare(self, bundle: Bundle) -> tuple[Graphs, SearchOptions]:
        """The graphs and the search options of a bundle that is loaded."""
        options = bundle.manifest.decoding
        if self.beam_size is not None:
            options = replace(options, beam_size=self.beam_size)
        return open_graphs(bundle, self.runtime, self.precision, self.threads), options


def evaluate_command(
    path: Path,
    sources: Sequence[Path],
    references: Path,
    decoding: Decoding,
    *,
    out: Path | None,
    record: str,
    as_json: bool,
) -> None:
    """Decode a test set, print its scores, and store them where asked."""
    from training.data.features import read_columns
    from training.metrics import SCORERS

    check_file(out, "--out")
    bundle, graphs, options = decoding.open(path)
    check_count(bundle, sources)
    read = read_columns([*sources, references], bundle.feature_widths)
    *columns, gold = (column[: decoding.limit] for column in read)
    started = time.perf_counter()
    texts = decode_lines(bundle, graphs, options, columns)
    seconds = time.perf_counter() - started
    if out is not None:
        out.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    scorer = SCORERS[bundle.manifest.task]
    systems = {bundle.manifest.name: scorer(texts, gold)}
    if bundle.manifest.task == "summarize":
        from training.metrics import first_sentence, first_words

        lines = next(column for column, width in zip(columns, bundle.feature_widths, strict=True) if not width)
        systems["first sentence"] = scorer([first_sentence(line) for line in lines], gold)
        systems["first 10 words"] = scorer([first_words(line) for line in lines], gold)
    if bundle.manifest.task == "postedit":
        systems["as it is"] = scorer(columns[-1], gold)  # the machine translation, left alone
    if record:
        _record(bundle, record, systems[bundle.manifest.name])
    speed = len(texts) / seconds
    if as_json:
        scores = {system: [asdict(score) for score in found] for system, found in systems.items()}
        settings = {"runtime": decoding.runtime, "precision": decoding.precision, "beam_size": options.beam_size}
        print(json.dumps({"scores": scores, **settings, "segments": len(texts), "segments_per_s": round(speed, 1)}))
        return
    table = Table(title=f"{len(texts):,} segments, {decoding.runtime} {decoding.precision}, beam {options.beam_size}")
    for column in ("system", *(score.metric for score in next(iter(systems.values())))):
        table.add_column(column)
    for system, found in systems.items():
        table.add_row(system, *(f"{score.value:.2f}" for score in found))
    console = Console()
    console.print(table)
    for score in systems[bundle.manifest.name]:
        console.print(f"{score.metric}: {score.signature}", highlight=False)
    console.print(f"{speed:.1f} segments/s", highlight=False)


def _record(bundle: Bundle, test_set: str, found: Sequence[MeasuredScore]) -> None:
    """Store scores in the manifest with this very command, in place of older ones on the same test set."""
    command = shlex.join(["tandem", *sys.argv[1:]])
    new = tuple(Score(s.metric, s.value, test_set, s.signature, command) for s in found)
    kept = tuple(score for score in bundle.manifest.scores if score.test_set != test_set)
    extend_bundle(bundle.path, {}, replace(bundle.manifest, scores=(*kept, *new)))


def translate_command(path: Path, sources: Sequence[Path], out: Path | None, decoding: Decoding) -> None:
    """Decode text and write it, one line for each line."""
    check_file(out, "--out")
    bundle, graphs, options = decoding.open(path)
    check_count(bundle, sources)
    columns = [_read(source, width) for source, width in zip(sources, bundle.feature_widths, strict=True)]
    if len({len(column) for column in columns}) > 1:
        raise CorpusError(f"the sources must have equally many lines, but have {[len(c) for c in columns]}")
    text = "".join(f"{line}\n" for line in decode_lines(bundle, graphs, options, columns))
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")


def check_count(bundle: Bundle, sources: Sequence[Path]) -> None:
    """Raises CorpusError where there is not one file for each of the bundle's sources."""
    if len(sources) != len(bundle.sources):
        raise CorpusError(f"{bundle.path} has {len(bundle.sources)} sources, but {len(sources)} are given")


def _read(source: Path, width: int) -> Column:
    """Lines of text, or matrices of feature vectors where they have a width."""
    from training.data.features import read_columns

    if str(source) == "-" and not width:
        return [line.rstrip("\n") for line in sys.stdin]
    return read_columns([source], [width])[0]


def decode_lines(bundle: Bundle, graphs: Graphs, options: SearchOptions, columns: Sequence[Column]) -> list[str]:
    """All lines, with a progress bar on the terminal."""
    console = Console(stderr=True)
    chunk = 256
    texts: list[str] = []
    starts = range(0, len(columns[0]), chunk)
    vocabularies, renderer = (bundle.sources, bundle.target_vocabulary), Renderer.of(bundle)
    limit = bundle.manifest.limits.max_source_tokens + 1  # and EOS
    for start in track(starts, "decoding", console=console, disable=not console.is_terminal, transient=True):
        part = [column[start : start + chunk] for column in columns]
        texts += translate_lines(graphs, vocabularies, part, options, max_source_tokens=limit, renderer=renderer)
    return texts
