"""Makes a corpus of the papers from the files that it is distributed as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from models.errors import ConfigError, CorpusError
from training.corpora.features import feature_files, write_features
from training.corpora.page import BuildReport, made_by, readme, show_bounds
from training.corpora.raw import RawFile, RawFolder
from training.corpora.rows import Row, read_rows
from training.corpora.specs import CorpusSpec, FeatureSet, Part, Split
from training.corpora.text import is_clean, process_rows
from training.corpora.writer import RowWriter
from training.data.prefetch import in_order
from training.folders import is_vacant, whole_folder

CHUNK = 2000  # rows that a worker gets at once
Progress = Callable[[str, int], None]  # split, pairs written


def build_corpus(
    corpus: CorpusSpec,
    raw: Path,
    root: Path,
    *,
    force: bool = False,
    workers: int = 1,
    progress: Progress = lambda split, pairs: None,
) -> BuildReport:
    """Make the folder ``root / corpus.name``. It appears whole or not at all; the same files give the same bytes.

    Args:
        corpus: what to make.
        raw: the folder of fetched files; files may lie below it, compressed or in archives.
        root: the folder of corpora.
        force: replace the corpus that is there.
        workers: processes that tokenise.
        progress: called with (split, pairs written so far).

    Raises:
        ConfigError: the corpus is there and ``force`` was not given, or something else is in its place.
        CorpusError: files are missing (all are named), damaged, malformed or not parallel.
    """
    out = root / corpus.name
    _check_place(out, corpus, force)
    folder = RawFolder(raw)
    report = BuildReport()
    plan = find_files(corpus, folder, report)
    read = [file for _, parts in plan for _, files in parts for file in files]

    with whole_folder(out) as partial_folder:
        with ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else ThreadPoolExecutor(1) as executor:
            work = _Build(corpus, partial_folder, report, executor, workers, progress)
            for split, parts in plan:
                work.write(split, parts)
        if corpus.features:
            read += _write_features(corpus.features, folder, partial_folder, report)
        report.files = sorted({_relative(file, raw) for file in read})
        _check_counts(corpus, report)
        text = readme(corpus, report)
        (partial_folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
    return report


def _check_place(out: Path, corpus: CorpusSpec, force: bool) -> None:
    """Whether the corpus may be written; what this command has not made is never replaced."""
    if is_vacant(out):
        return
    page = out / "README.md"
    if not (page.is_file() and made_by(corpus) in page.read_text(encoding="utf-8", errors="replace")):
        raise ConfigError(f"{out} exists and was not prepared by this command; take another folder with --out")
    if not force:
        raise ConfigError(f"{out} is there already: add --force to replace it")


FoundPart = tuple[Part, tuple[RawFile, ...]]


def find_files(corpus: CorpusSpec, folder: RawFolder, report: BuildReport) -> list[tuple[Split, list[FoundPart]]]:
    """The files of every split; an optional split of which nothing is there is left out, and noted.

    Raises:
        CorpusError: files are missing or ambiguous; every one is named, with where to get it.
    """
    plan, faults = [], []
    for split in corpus.splits:
        parts: list[FoundPart] = []
        missing: list[str] = []
        for part in split.parts:
            found = []
            for names in part.files:
                try:
                    file = folder.find(names)
                except CorpusError as error:
                    faults.append(str(error))
                    continue
                if file:
                    found.append(file)
                else:
                    missing.append(f"{' or '.join(names)}: {part.download.name}, {part.download.url}")
            parts.append((part, tuple(found)))
        if missing and split.optional and not any(files for _, files in parts):
            report.notes.append(f"{split.name} is left out: its files are not there")
        else:
            faults += missing
            plan.append((split, parts))
    if faults:
        listed = "".join(f"\n  {fault}" for fault in dict.fromkeys(faults))
        raise CorpusError(f"{corpus.name}: files are missing from {folder.path} or there more than once:{listed}")
    return plan


@dataclass(slots=True)
class _Build:
    """One run: rows come in by split, files go out."""

    corpus: CorpusSpec
    folder: Path
    report: BuildReport
    executor: Executor
    workers: int
    progress: Progress

    def write(self, split: Split, parts: list[FoundPart]) -> None:
        corpus, hold_out = self.corpus, self.corpus.hold_out if split.is_training else None
        process = partial(process_rows, corpus.form, corpus.languages, not split.is_training)
        with ExitStack() as stack:
            writer = stack.enter_context(self._writer(split.name))
            held = stack.enter_context(self._writer(hold_out.name)) if hold_out else None
            plain = stack.enter_context(self._writer(f"{split.name}_raw")) if split.plain_copy else None
            rows = _copied(self._rows(split, parts), plain)
            kept = 0
            for chunk in in_order(self.executor, process, _chunks(rows), 2 * self.workers):
                for row in chunk:
                    if split.is_training and not is_clean(row, corpus.cleaning):
                        self.report.dropped += 1
                        continue
                    kept += 1
                    (held if held and hold_out and kept % hold_out.every == 0 else writer).add(row)
                self.progress(split.name, kept)

    @contextmanager
    def _writer(self, name: str) -> Iterator[RowWriter]:
        writer = RowWriter(self.folder, name, self.corpus)
        with writer:
            yield writer
        self.report.warnings += writer.finish()
        self.report.pairs[name] = writer.rows

    def _rows(self, split: Split, parts: list[FoundPart]) -> Iterator[Row]:
        for part, files in parts:
            number = 0
            for number, row in enumerate(read_rows(files), 1):  # noqa: B007 (the count is used)
                yield row
            if part.segments and number != part.segments:
                name = files[0].name.rpartition("/")[2]
                fault = f"{name} should have {part.segments:,} segments, but has {number:,}"
                if fault not in self.report.warnings:  # a file may be part of several splits
                    self.report.warnings.append(fault)


def _copied(rows: Iterable[Row], writer: RowWriter | None) -> Iterator[Row]:
    for row in rows:
        if writer:
            writer.add(row)
        yield row


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _write_features(features: FeatureSet, folder: RawFolder, out: Path, report: BuildReport) -> list[RawFile]:
    """The matrices that are there; the files that they came from."""
    matrices = feature_files(features, folder)
    for name, files in matrices.items():
        write_features(features, files, out / f"{name}.{features.name}.npy", report.pairs[name])
        report.features.append(name)
    without = [name for name, _ in features.splits if name not in matrices]
    if without:
        report.notes.append(f"{features.name} features of {', '.join(without)}: their files are not there")
    return [file for files in matrices.values() for file in files]


def _check_counts(corpus: CorpusSpec, report: BuildReport) -> None:
    for name, bounds in corpus.outputs:
        if bounds and name in report.pairs and not bounds[0] <= report.pairs[name] <= bounds[1]:
            report.warnings.append(f"{name} should have {show_bounds(bounds)} pairs, but has {report.pairs[name]:,}")


def _relative(file: RawFile, raw: Path) -> str:
    path = file.path.relative_to(raw).as_posix()
    return f"{path}, {file.member}" if file.member else path
