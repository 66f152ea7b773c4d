"""From corpora to a folder that training maps into memory: filter, vocabularies, placeholders, encode."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import TypeVar

import numpy as np

from tandem.models.bundle import Corpus
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.folders import is_vacant, whole_folder
from tandem.models.text import as_read
from tandem.models.vocabulary import EDITS, SentencePieceVocabulary, Vocabulary, WordVocabulary, untagged
from tandem.models.vocabulary.dictionary import Dictionary
from tandem.training.checksums import folder_checksums
from tandem.training.data.config import SPLITS, CorpusConfig, DataConfig
from tandem.training.data.corpus import CHUNK, clean_line, file_digest, iterate_lines, parallel_chunks
from tandem.training.data.dataset import DICTIONARY, TokenWriter, save_vocabulary, side_names, text_path, text_rows_path
from tandem.training.data.directions import BACK_TRANSLATED, Directed, directed_corpora, reserved_languages
from tandem.training.data.encoder import PairEncoder
from tandem.training.data.features import FeatureSelection
from tandem.training.data.filters import Pair, PairFilter, identities
from tandem.training.data.placeholders import choose_placeholders
from tandem.training.data.spool import Spool
from tandem.training.data.summary import (
    FORMAT,
    SUMMARY_FILE,
    PreparedSummary,
    SplitSummary,
    check_same,
    identity_of,
)
from tandem.training.data.vocabularies import train_vocabularies

T = TypeVar("T")
Columns = tuple[Sequence[str], ...]  # one for each text side
Tags = tuple[str, ...]  # reserved pieces before a pair's first source
Progress = Callable[[str, int, int], None]  # stage, done, total
BuildDictionary = Callable[[Sequence[Sequence[str]], Sequence[str], int], Dictionary]
"""Aligns the words of parallel columns, the sources in order and the target last: given these, the language of each,
and the seed with which very large text is sampled, the translation of each source's words."""


def _silent(stage: str, done: int, total: int) -> None:
    pass


def prepare(
    config: DataConfig,
    *,
    languages: Sequence[str],
    root: Path,
    out: Path,
    seed: int,
    force: bool = False,
    vocabularies: Sequence[Vocabulary] | None = None,
    features: Sequence[int] = (),
    dictionary: BuildDictionary | None = None,
    progress: Progress = _silent,
) -> PreparedSummary:
    """Make the folder ``out`` from the corpora under ``root``; do nothing where it is up to date.

    The same arguments give the same bytes. The folder appears whole or not at all.

    Args:
        config: what the recipe says about its data.
        languages: the language of every source in order, then the target's.
        root: where the corpora lie.
        out: the folder to make.
        seed: of the placeholder choice and vocabulary sampling.
        force: replace prepared data that was made differently.
        vocabularies: one for each text source and the target's, to be used instead of training new ones.
        features: the width of each source's feature vectors that the model expects; not checked if absent.
        dictionary: aligns the words of word vocabularies; None = they have no
            dictionary, and unknown ones are copied.
        progress: called with (stage, done, total).

    Raises:
        ConfigError: ``out`` was prepared differently (every differing field is named) or is something else.
        CorpusError: a corpus is missing, malformed, not parallel, or nothing is left of it.
        VocabularyError: a vocabulary cannot be trained at that size.
    """
    started = time.monotonic()
    if len(languages) != len(config.corpora[0].source) + 1:
        raise ConfigError(f"languages must be one per source and the target's, but are {list(languages)}")
    identity = identity_of(config, languages, seed, vocabularies)
    if _is_prepared(out) and not force:
        present = PreparedSummary.load(out)
        check_same(present, identity, root, out)
        return present

    with whole_folder(out) as partial:
        sides = side_names(len(languages) - 1)
        matrices = {index: sides[index] for index, kind in enumerate(config.feature_sources) if kind}
        selection = FeatureSelection(matrices, dict(enumerate(features)))
        work = _Preparation(config, tuple(languages), root, partial, seed, progress, selection, dictionary)
        splits, corpora, used = work.run(tuple(map(untagged, vocabularies)) if vocabularies else None)
        names = [*(name for corpus in config.corpora for name in _files(corpus)), *config.vocabulary.models]
        files = {name: file_digest(root / name) for name in names}
        seconds = round(time.monotonic() - started, 1)
        own = iter(used)
        sizes = {side: 0 if side in matrices.values() else next(own).size for side in sides}
        sums, sides_of_features = folder_checksums(partial), selection.summary()
        summary = PreparedSummary(FORMAT, identity, files, splits, corpora, sizes, seconds, sides_of_features, sums)
        summary.save(partial)
    return summary


@dataclass(slots=True)
class _Preparation:
    """One run: text comes in by corpus and split, arrays and files go out."""

    config: DataConfig
    languages: tuple[str, ...]
    root: Path
    folder: Path
    seed: int
    progress: Progress
    features: FeatureSelection
    build_dictionary: BuildDictionary | None
    tags: dict[str, list[tuple[Tags, int]]] = field(default_factory=lambda: {split: [] for split in SPLITS})
    dropped: dict[str, Counter[str]] = field(default_factory=lambda: {split: Counter() for split in SPLITS})

    def run(
        self, given: tuple[Vocabulary, ...] | None
    ) -> tuple[dict[str, SplitSummary], tuple[Corpus, ...], tuple[Vocabulary, ...]]:
        with ExitStack() as stack:  # training text is on disk only, whatever its size
            spools = tuple(stack.enter_context(Spool(self.folder / f"{side}.text")) for side in self._sides)
            return self._run(spools, given)

    def _run(
        self, train: tuple[Spool, ...], given: tuple[Vocabulary, ...] | None
    ) -> tuple[dict[str, SplitSummary], tuple[Corpus, ...], tuple[Vocabulary, ...]]:
        held_out: set[Pair] = set()
        texts: dict[str, Columns] = {split: self._evaluation_text(split, held_out) for split in SPLITS[1:]}
        corpora = self._training_text(train, held_out)
        texts["train"] = train
        if not train[-1]:
            raise CorpusError(f"no training pair is left; dropped: {dict(self.dropped['train'])}")
        self.progress("vocabulary", 0, 1)
        vocabularies = given or self._vocabularies(train)
        for side, vocabulary in zip(self._sides, vocabularies, strict=True):
            save_vocabulary(self.folder, side, vocabulary)
        if isinstance(vocabularies[-1], WordVocabulary):
            self.progress("dictionary", 0, 1)
            dictionary = self._dictionary(train)
            (self.folder / DICTIONARY).write_bytes(dictionary.to_bytes())
        splits = {split: self._encode(split, texts[split], vocabularies) for split in SPLITS if texts[split][-1]}
        if not splits["train"].pairs:
            raise CorpusError(f"no training pair is left; dropped: {dict(splits['train'].dropped)}")
        return splits, corpora, vocabularies

    def _vocabularies(self, columns: Columns) -> tuple[Vocabulary, ...]:
        if models := self.config.vocabulary.models:
            source, target = (SentencePieceVocabulary.load(self.root / model) for model in models)
            return (*[source] * (len(columns) - 1), target)
        further: tuple[str, ...] = EDITS if self.config.target_form == "edits" else ()
        further += (BACK_TRANSLATED,) * any(corpus.back_translated for corpus in self.config.corpora)
        languages = self._of_text(self.languages)
        if self.config.tagged:
            languages = reserved_languages(self.config, self.languages)
        return train_vocabularies(columns, self.config.vocabulary, languages=languages, seed=self.seed, further=further)

    @property
    def _directed(self) -> list[Directed]:
        return directed_corpora(self.config, self.languages)

    @property
    def _sides(self) -> tuple[str, ...]:
        """The sides that are text."""
        return self._of_text(side_names(len(self.languages) - 1))

    def _of_text(self, by_side: Sequence[T]) -> tuple[T, ...]:
        """Of something for every side what is for the text sides."""
        kinds = (*self.config.feature_sources, False)
        return tuple(one for one, is_matrix in zip(by_side, kinds, strict=True) if not is_matrix)

    def _dictionary(self, columns: Columns) -> Dictionary:
        """Of the training text; a dictionary counts all sources."""
        languages, build = self._of_text(self.languages), self.build_dictionary
        found = iter(() if build is None else build(columns, languages, self.seed).sources)
        return Dictionary(tuple({} if is_matrix else next(found, {}) for is_matrix in self.config.feature_sources))

    def _chunks(self, corpus: CorpusConfig, split: str, most: int) -> Iterator[_Chunk]:
        """A corpus' split, ``most`` pairs at a time."""
        self.progress(f"read {corpus.name} {split}", 0, 1)
        paths = [self.root / name for name in corpus.paths(split)]
        texts = self._of_text(paths)
        lines = sum(1 for _ in iterate_lines(texts[-1])) if self.features else 0
        marks = self.features.read(corpus.name, split, paths, lines)
        first = 0
        for raw in parallel_chunks(texts, most):
            clean = _as_trained_on(raw)
            rows = range(first, first + len(raw[-1]))
            yield _Chunk(rows, raw, clean, marks[rows.start : rows.stop])
            first = rows.stop
        if not first:
            raise CorpusError(f"{texts[-1]} is empty")

    def _evaluation_text(self, split: str, held_out: set[Pair]) -> Columns:
        """All corpora's evaluation pairs, their text written whole beside the arrays; adds them to ``held_out``."""
        columns: tuple[list[str], ...] = tuple([] for _ in self._sides)
        for one in self._directed:
            corpus = one.corpus
            if split not in corpus.splits:
                continue
            (chunk,) = self._chunks(corpus, split, sys.maxsize)
            if self.config.filters.evaluation:
                pairs = PairFilter(self.config.filters)
                chunk = chunk.select(pairs.keep(chunk.clean))
                self.dropped[split] += pairs.dropped
            self.features.keep(split, chunk.rows)
            if self.features:
                text_rows_path(self.folder, corpus.name, split).parent.mkdir(parents=True, exist_ok=True)
                np.save(text_rows_path(self.folder, corpus.name, split), [(0, row) for row in chunk.rows])
            held_out.update(identities(chunk.clean, chunk.marks))
            for side, column in zip(self._sides, chunk.raw, strict=True):
                path = text_path(self.folder, corpus.name, split, side)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"{line}\n" for line in column), encoding="utf-8", newline="\n")
            for column, lines in zip(columns, chunk.clean, strict=True):
                column.extend(lines)
            self.tags[split].append((one.tags, len(chunk.rows)))
        return columns

    def _training_text(self, columns: Sequence[Spool], held_out: set[Pair]) -> tuple[Corpus, ...]:
        """Put all corpora's training pairs into ``columns``, filtered, then repeated."""
        summaries = []
        filters = self.config.filters
        pairs = PairFilter(filters, held_out=held_out, deduplicate=filters.deduplicate)
        for one in self._directed:
            corpus = one.corpus
            segments = self._training_pairs(one, columns, pairs) if "train" in corpus.splits else 0
            if one.reversed:  # named once
                continue
            terms = (corpus.name, corpus.licence, corpus.attribution, corpus.url)
            summaries.append(Corpus(*terms, segments=segments))
        self.dropped["train"] += pairs.dropped
        return tuple(summaries)

    def _training_pairs(self, one: Directed, columns: Sequence[Spool], pairs: PairFilter) -> int:
        """As :meth:`_training_text`, of one corpus; returns how many pairs are left of it, each counted once."""
        first, times = len(columns[-1]), one.corpus.repeat
        rows: list[int] = []
        rng = np.random.default_rng([self.seed, 3, self._number(one)])
        for chunk in self._chunks(one.corpus, "train", CHUNK):
            left = pairs.keep(chunk.clean, chunk.marks)
            drawn = rng.random(len(left)) < one.corpus.share
            kept = chunk.select([pair for pair, used in zip(left, drawn, strict=True) if used])
            rows += kept.rows if self.features else ()
            for column, lines in zip(columns, kept.clean, strict=True):
                column.extend(lines)
        segments = len(columns[-1]) - first
        for column in columns:
            column.repeat(first, times - 1)
        self.features.keep("train", rows * times)
        self.tags["train"].append((one.tags, segments * times))
        return segments

    def _number(self, one: Directed) -> int:
        """Of a corpus in the recipe, whichever way it is used."""
        return sum(not other.reversed for other in self._directed[: self._directed.index(one) + 1])

    def _encode(self, split: str, columns: Columns, vocabularies: Sequence[Vocabulary]) -> SplitSummary:
        config, total = self.config, len(columns[-1])
        chosen: dict[int, Pair] = {}
        if split == "train":
            rng = np.random.default_rng([self.seed, 2])
            share = config.placeholder_share if len(columns) > 1 else 0.0  # there is no text to copy spans from
            equal = not config.truncate_source
            chosen = choose_placeholders(columns, share=share, rng=rng, equal_counts=equal)
        tags = chain.from_iterable(repeat(*run) for run in self.tags[split])
        kept: list[int] = []
        with ExitStack() as stack:
            writers = [
                stack.enter_context(closing(TokenWriter(self.folder, split, side, vocabulary.size)))
                for side, vocabulary in zip(self._sides, vocabularies, strict=True)
            ]
            encoder = PairEncoder(config, vocabularies, writers)
            for index, pair in enumerate(zip(*columns, strict=True)):
                if encoder.add(pair, chosen.get(index), next(tags)) and self.features:
                    kept.append(index)
                if index % 10_000 == 0:
                    self.progress(f"encode {split}", index, total)
        self.progress(f"encode {split}", total, total)
        self.features.save(self.folder, split, kept)
        return encoder.summary(self.dropped[split])


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some pairs of a corpus.

    Attributes:
        rows: their numbers in its files.
        raw: the text of each side as it is.
        clean: the same, normalised.
        marks: what tells their features apart; empty where there are none.
    """

    rows: Sequence[int]
    raw: Columns
    clean: Columns
    marks: Sequence[str]

    def select(self, kept: Sequence[int]) -> _Chunk:
        """Some of them, by their place here."""
        raw, clean = (tuple([column[index] for index in kept] for column in side) for side in (self.raw, self.clean))
        return _Chunk([self.rows[i] for i in kept], raw, clean, [self.marks[i] for i in kept if self.marks])


def _as_trained_on(raw: Columns) -> Columns:
    """Sources as every model reads them in use, targets as they are written; each normalised and in one line."""
    *sources, target = ([clean_line(line) for line in column] for column in raw)
    return (*([as_read(line) for line in column] for column in sources), target)


def _files(corpus: CorpusConfig) -> list[str]:
    return [name for split in corpus.splits for name in corpus.paths(split)]


def _is_prepared(out: Path) -> bool:
    """Whether there is prepared data at ``out``, rather than nothing. Anything else is never replaced."""
    if is_vacant(out):
        return False
    if not (out / SUMMARY_FILE).is_file():
        raise ConfigError(f"{out} exists and is not prepared data; take another folder")
    return True
