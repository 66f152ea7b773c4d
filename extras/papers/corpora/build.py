"""Makes a corpus of the papers from the files that it is distributed as."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import IO

from tandem.extras.papers.corpora.page import BuildReport, made_by, readme, show_bounds
from tandem.extras.papers.corpora.rows import PACKED, Row, plain_name, read_records, read_rows
from tandem.extras.papers.corpora.specs import CorpusSpec, FeatureSet, Part, Split
from tandem.extras.papers.corpora.text import process_rows
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.folders import is_vacant, whole_folder
from tandem.training.data.features import FeatureArray
from tandem.training.data.filters import PairFilter
from tandem.training.data.prefetch import in_order

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
        raw: the folder of fetched files; files may lie anywhere below it, also compressed.
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
    if not raw.is_dir():
        raise CorpusError(f"{raw} is not a folder: --raw names the one that the fetched files lie in")
    report = BuildReport()
    plan = find_files(corpus, raw, report)
    read = [file for _, parts in plan for _, files in parts for file in files]

    with whole_folder(out) as partial_folder:
        with ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else ThreadPoolExecutor(1) as executor:
            work = _Build(corpus, partial_folder, report, executor, workers, progress)
            for split, parts in plan:
                work.write(split, parts)
        if corpus.features:
            read += _copy_features(corpus.features, raw, partial_folder, report)
        report.files = sorted({file.relative_to(raw).as_posix() for file in read})
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


FoundPart = tuple[Part, tuple[Path, ...]]


def find_files(corpus: CorpusSpec, raw: Path, report: BuildReport) -> list[tuple[Split, list[FoundPart]]]:
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
                    file = _find(raw, names)
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
        raise CorpusError(f"{corpus.name}: files are missing from {raw} or there more than once:{listed}")
    return plan


def _find(raw: Path, names: Sequence[str]) -> Path | None:
    """The file below the folder that goes under one of the names: an earlier name first, an unpacked file first.

    Raises:
        CorpusError: several files fit one name equally well.
    """
    for name in names:
        fitting = [path for end in ("", *PACKED) for path in sorted(raw.rglob(f"{name}{end}")) if path.is_file()]
        best = [path for path in fitting if path.suffix not in PACKED] or fitting
        if len(best) > 1:
            raise CorpusError(f"{name} is there {len(best)} times, keep one: {'; '.join(map(str, best))}")
        if best:
            return best[0]
    return None


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
            rows = self._rows(parts, plain)
            kept, clean = 0, PairFilter(corpus.cleaning)
            for chunk in in_order(self.executor, process, _chunks(rows), 2 * self.workers):
                left = clean.keep(list(zip(*chunk, strict=True))) if split.is_training else range(len(chunk))
                for index in left:
                    kept += 1
                    (held if held and hold_out and kept % hold_out.every == 0 else writer).add(chunk[index])
                self.progress(split.name, kept)
            self.report.dropped += clean.dropped.total()

    @contextmanager
    def _writer(self, name: str) -> Iterator[_RowWriter]:
        with _RowWriter(self.folder, name, self.corpus) as writer:
            yield writer
        self.report.warnings += writer.finish()
        self.report.pairs[name] = writer.rows

    def _rows(self, parts: list[FoundPart], plain: _RowWriter | None) -> Iterator[Row]:
        """The rows of all parts, which are also written as they are where there is a writer for that."""
        for part, files in parts:
            number = 0
            rows = read_records(files[0], part.records, part.share) if part.records else read_rows(files)
            for number, row in enumerate(rows, 1):  # noqa: B007 (the count is used)
                if plain:
                    plain.add(row)
                yield row
            if part.segments and number != part.segments:
                fault = f"{plain_name(files[0])} should have {part.segments:,} segments, but has {number:,}"
                if fault not in self.report.warnings:  # a file may be part of several splits
                    self.report.warnings.append(fault)


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _copy_features(features: FeatureSet, raw: Path, out: Path, report: BuildReport) -> list[Path]:
    """The matrices that are there, copied beside the text; the files that they came from.

    Raises:
        CorpusError: a file is no matrix of finite numbers in the right form, or does not fit the text.
    """
    found = {split: file for split, name in features.splits if (file := _find(raw, [f"{name}.{features.name}.npy"]))}
    for split, file in found.items():
        matrices, segments = FeatureArray.open(file, features.width), report.pairs[split]
        if len(matrices) != segments or set(matrices.lengths.tolist()) != {features.regions}:
            shape, wanted = matrices.files[0].shape, (segments, features.regions, features.width)
            raise CorpusError(f"{file}: shape must be {wanted}, one matrix a line of the text, but is {shape}")
        shutil.copyfile(file, out / f"{split}.{features.name}.npy")
        report.features.append(split)
    if without := [split for split, _ in features.splits if split not in found]:
        report.notes.append(f"{features.name} features of {', '.join(without)}: their files are not there")
    return list(found.values())


def _check_counts(corpus: CorpusSpec, report: BuildReport) -> None:
    for name, bounds in corpus.outputs:
        if bounds and name in report.pairs and not bounds[0] <= report.pairs[name] <= bounds[1]:
            report.warnings.append(f"{name} should have {show_bounds(bounds)} pairs, but has {report.pairs[name]:,}")


class _RowWriter(ExitStack):
    """Writes rows to ``folder / {name}.{field}``; further references to ``{name}.{target}.1`` and so on.

    Args:
        folder: where the files go.
        name: the split.
        corpus: the fields, and whether files are compressed.
    """

    def __init__(self, folder: Path, name: str, corpus: CorpusSpec) -> None:
        super().__init__()
        self.rows = 0
        self._folder, self._name, self._corpus = folder, name, corpus
        self._files: list[IO[str]] = []
        self._counts: list[int] = []
        for column in range(len(corpus.fields)):
            self._open(column)

    def add(self, row: Row) -> None:
        """Write the fields in order, then the further references that the row has."""
        self.rows += 1
        for column, text in enumerate(row):
            if column == len(self._files):
                self._open(column)
            self._files[column].write(f"{text}\n")
            self._counts[column] += 1

    def finish(self) -> list[str]:
        """After closing: remove references that only some rows have, and say so."""
        faults = []
        for column, count in enumerate(self._counts):
            if count < self.rows:
                path = self._path(column)
                path.unlink()
                faults.append(f"{path.name} left out: only {count:,} of {self.rows:,} segments have that reference")
        return faults

    def _open(self, column: int) -> None:
        stored = lzma.open if self._corpus.suffix == ".xz" else open
        self._files.append(self.enter_context(stored(self._path(column), "wt", encoding="utf-8", newline="\n")))
        self._counts.append(0)

    def _path(self, column: int) -> Path:
        further = column - len(self._corpus.fields) + 1
        field = self._corpus.fields[column] if further <= 0 else f"{self._corpus.target}.{further}"
        return self._folder / f"{self._name}.{field}{self._corpus.suffix}"
