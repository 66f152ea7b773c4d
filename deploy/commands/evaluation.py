"""`tandem evaluate` and `tandem translate`."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

from deploy.commands.outputs import check_file
from models.bundle import Bundle, Score, extend_bundle
from models.errors import ConfigError, CorpusError
from models.rendering import Renderer
from models.search import Graphs, SearchOptions
from models.shortlist import WITH_SHORTLIST, Shortlist
from models.translator import Column, encode_columns, translate_lines
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
    with_shortlist: bool = False,
) -> None:
    """Decode a test set, print its scores, and store them where asked; with the bundle's shortlist too where asked."""
    from training.data.features import read_columns
    from training.metrics import SCORERS

    check_file(out, "--out")
    bundle, graphs, options = decoding.open(path)
    check_count(bundle, sources)
    listing = check_shortlist(bundle, graphs) if with_shortlist else None
    read = read_columns([*sources, references], bundle.feature_widths)
    *columns, gold = (column[: decoding.limit] for column in read)
    texts, speed = _timed(bundle, graphs, options, columns)
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
    listed: list[MeasuredScore] = []
    speeds = {"segments_per_s": speed}
    measured = {record: systems[bundle.manifest.name]}
    if listing is not None:
        short, speeds["segments_per_s_with_shortlist"] = _timed(bundle, graphs, options, columns, listing)
        found = scorer(short, gold)
        systems[f"{bundle.manifest.name}{WITH_SHORTLIST}"] = found
        listed = _coverage(bundle, listing, columns, gold)
        measured[f"{record}{WITH_SHORTLIST}"] = [*found, *listed]
    if record:
        _record(bundle, measured)
    if as_json:
        scores = {system: [asdict(score) for score in found] for system, found in systems.items()}
        settings = {"runtime": decoding.runtime, "precision": decoding.precision, "beam_size": options.beam_size}
        further = {"shortlist": [asdict(score) for score in listed]} if with_shortlist else {}
        print(json.dumps({"scores": scores, **settings, "segments": len(texts), **speeds, **further}))
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
    for score in listed:
        console.print(f"{score.metric}: {score.value:g}", highlight=False)
    for name, speed in speeds.items():
        console.print(f"{speed:.1f} {name.replace('_per_', '/').replace('_', ' ')}", highlight=False)


def _timed(
    bundle: Bundle,
    graphs: Graphs,
    options: SearchOptions,
    columns: Sequence[Column],
    shortlist: Shortlist | None = None,
) -> tuple[list[str], float]:
    """All lines decoded, and how many a second."""
    started = time.perf_counter()
    texts = decode_lines(bundle, graphs, options, columns, shortlist)
    return texts, round(len(texts) / (time.perf_counter() - started), 1)


def check_shortlist(bundle: Bundle, graphs: Graphs) -> Shortlist:
    """The bundle's shortlist. Raises ConfigError where it has none, or no graph that reads one."""
    if bundle.shortlist is None:
        raise ConfigError(f"{bundle.path} has no shortlist: build one with `tandem shortlist`")
    if "step_shortlist" not in graphs.specs:
        raise ConfigError(f"{bundle.path} has a shortlist, but these graphs read none: export them again")
    return bundle.shortlist


def _coverage(
    bundle: Bundle, shortlist: Shortlist, columns: Sequence[Column], gold: Sequence[str]
) -> list[MeasuredScore]:
    """How much of the references the lists hold, and how long they are."""
    from training.metrics import Score as MeasuredScore
    from training.shortlist import coverage, encode

    sources = encode_columns(bundle.sources, columns, bundle.manifest.limits.max_source_tokens + 1)
    found = coverage(shortlist, list(zip(*sources, strict=True)), encode(bundle.target_vocabulary, gold))
    return [
        MeasuredScore("% of reference tokens listed", round(100 * found.tokens, 2), ""),
        MeasuredScore("% of references listed whole", round(100 * found.sentences, 2), ""),
        MeasuredScore("tokens of a list", round(found.listed, 1), ""),
    ]


def _record(bundle: Bundle, measured: Mapping[str, Sequence[MeasuredScore]]) -> None:
    """Store scores in the manifest with this very command, in place of older ones on the same test sets."""
    command = shlex.join(["tandem", *sys.argv[1:]])
    new = [Score(s.metric, s.value, name, s.signature, command) for name, found in measured.items() for s in found]
    kept = [score for score in bundle.manifest.scores if score.test_set not in measured]
    extend_bundle(bundle.path, {}, replace(bundle.manifest, scores=(*kept, *new)))


def translate_command(
    path: Path, sources: Sequence[Path], out: Path | None, decoding: Decoding, *, with_shortlist: bool = False
) -> None:
    """Decode text and write it, one line for each line."""
    check_file(out, "--out")
    bundle, graphs, options = decoding.open(path)
    check_count(bundle, sources)
    listing = check_shortlist(bundle, graphs) if with_shortlist else None
    columns = [_read(source, width) for source, width in zip(sources, bundle.feature_widths, strict=True)]
    if len({len(column) for column in columns}) > 1:
        raise CorpusError(f"the sources must have equally many lines, but have {[len(c) for c in columns]}")
    text = "".join(f"{line}\n" for line in decode_lines(bundle, graphs, options, columns, listing))
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


def decode_lines(
    bundle: Bundle,
    graphs: Graphs,
    options: SearchOptions,
    columns: Sequence[Column],
    shortlist: Shortlist | None = None,
) -> list[str]:
    """All lines, with a progress bar on the terminal."""
    console = Console(stderr=True)
    chunk = 256
    texts: list[str] = []
    starts = range(0, len(columns[0]), chunk)
    vocabularies, renderer = (bundle.sources, bundle.target_vocabulary), Renderer.of(bundle)
    limit = bundle.manifest.limits.max_source_tokens + 1  # and EOS
    for start in track(starts, "decoding", console=console, disable=not console.is_terminal, transient=True):
        part = [column[start : start + chunk] for column in columns]
        texts += translate_lines(
            graphs, vocabularies, part, options, max_source_tokens=limit, renderer=renderer, shortlist=shortlist
        )
    return texts
