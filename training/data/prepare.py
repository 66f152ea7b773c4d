"""From corpora to a folder that training maps into memory: filter, vocabularies, placeholders, encode."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from models.bundle import Corpus
from models.errors import ConfigError, CorpusError
from models.text import normalise
from models.vocabulary import Vocabulary, WordVocabulary
from training.data.config import SPLITS, CorpusConfig, DataConfig
from training.data.corpus import file_digest, read_parallel
from training.data.dataset import TokenWriter, side_names, text_path
from training.data.filters import Pair, PairFilter
from training.data.placeholders import choose_placeholders
from training.data.summary import (
    FORMAT,
    SUMMARY_FILE,
    PreparedSummary,
    SplitSummary,
    check_same,
    identity_of,
)
from training.data.vocabularies import train_vocabularies

Columns = tuple[list[str], ...]
Progress = Callable[[str, int, int], None]  # stage, done, total


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
        vocabularies: one for each source and the target's, to be used instead of training new ones.
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

    partial = out.with_name(f".{out.name}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        work = _Preparation(config, tuple(languages), root, partial, seed, progress)
        splits, corpora, used = work.run(tuple(vocabularies) if vocabularies else None)
        files = {name: file_digest(root / name) for corpus in config.corpora for name in _files(corpus)}
        seconds = round(time.monotonic() - started, 1)
        sizes = dict(zip(side_names(len(languages) - 1), (v.size for v in used), strict=True))
        summary = PreparedSummary(FORMAT, identity, files, splits, corpora, sizes, seconds)
        summary.save(partial)
        _replace_folder(partial, out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
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
    dropped: dict[str, Counter[str]] = field(default_factory=lambda: {split: Counter() for split in SPLITS})

    def run(
        self, given: tuple[Vocabulary, ...] | None
    ) -> tuple[dict[str, SplitSummary], tuple[Corpus, ...], tuple[Vocabulary, ...]]:
        texts = {split: self._evaluation_text(split) for split in SPLITS[1:]}
        held_out = {pair for columns in texts.values() for pair in zip(*columns, strict=True)}
        texts["train"], corpora = self._training_text(held_out)
        if not texts["train"][-1]:
            raise CorpusError(f"no training pair is left; dropped: {dict(self.dropped['train'])}")
        self.progress("vocabulary", 0, 1)
        vocabularies = given or train_vocabularies(
            texts["train"], self.config.vocabulary, languages=self.languages, seed=self.seed
        )
        for side, vocabulary in zip(self._sides, vocabularies, strict=True):
            suffix = "words" if isinstance(vocabulary, WordVocabulary) else "model"
            (self.folder / f"{side}.{suffix}").write_bytes(vocabulary.to_bytes())
        splits = {split: self._encode(split, texts[split], vocabularies) for split in SPLITS if texts[split][-1]}
        if not splits["train"].pairs:
            raise CorpusError(f"no training pair is left; dropped: {dict(splits['train'].dropped)}")
        return splits, corpora, vocabularies

    @property
    def _sides(self) -> tuple[str, ...]:
        return side_names(len(self.languages) - 1)

    def _read(self, corpus: CorpusConfig, split: str) -> tuple[Columns, Columns]:
        """A corpus' split as it is, and normalised."""
        self.progress(f"read {corpus.name} {split}", 0, 1)
        raw = read_parallel([self.root / name for name in corpus.paths(split)])
        if not raw[-1]:
            raise CorpusError(f"{self.root / corpus.paths(split)[-1]} is empty")
        return raw, tuple([normalise(line).replace("\n", " ").strip() for line in column] for column in raw)

    def _evaluation_text(self, split: str) -> Columns:
        """All corpora's evaluation pairs, their text written whole beside the arrays."""
        columns: Columns = tuple([] for _ in self._sides)
        for corpus in self.config.corpora:
            if split not in corpus.splits:
                continue
            raw, clean = self._read(corpus, split)
            if self.config.filters.evaluation:
                pairs = PairFilter(self.config.filters)
                kept = pairs.keep(clean)
                self.dropped[split] += pairs.dropped
                raw, clean = _select(raw, kept), _select(clean, kept)
            for side, column in zip(self._sides, raw, strict=True):
                path = text_path(self.folder, corpus.name, split, side)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"{line}\n" for line in column), encoding="utf-8", newline="\n")
            for column, lines in zip(columns, clean, strict=True):
                column.extend(lines)
        return columns

    def _training_text(self, held_out: set[Pair]) -> tuple[Columns, tuple[Corpus, ...]]:
        """All corpora's training pairs, filtered, then repeated."""
        columns: Columns = tuple([] for _ in self._sides)
        summaries = []
        filters = self.config.filters
        pairs = PairFilter(filters, held_out=held_out, deduplicate=filters.deduplicate)
        for corpus in self.config.corpora:
            kept: list[int] = []
            if "train" in corpus.splits:
                clean = self._read(corpus, "train")[1]
                kept = pairs.keep(clean)
                for column, lines in zip(columns, _select(clean, kept), strict=True):
                    column.extend(lines * corpus.repeat)
            terms = (corpus.name, corpus.licence, corpus.attribution, corpus.url)
            summaries.append(Corpus(*terms, segments=len(kept)))
        self.dropped["train"] += pairs.dropped
        return columns, tuple(summaries)

    def _encode(self, split: str, columns: Columns, vocabularies: Sequence[Vocabulary]) -> SplitSummary:
        config, total = self.config, len(columns[-1])
        chosen: dict[int, Pair] = {}
        if split == "train":
            rng = np.random.default_rng([self.seed, 2])
            share, equal = config.placeholder_share, not config.truncate_source
            chosen = choose_placeholders(columns, share=share, rng=rng, equal_counts=equal)
        encoder = PairEncoder(config, vocabularies)
        for index, pair in enumerate(zip(*columns, strict=True)):
            encoder.add(pair, chosen.get(index))
            if index % 10_000 == 0:
                self.progress(f"encode {split}", index, total)
        self.progress(f"encode {split}", total, total)
        for writer, side, vocabulary in zip(encoder.writers, self._sides, vocabularies, strict=True):
            writer.save(self.folder, split, side, vocabulary.size)
        return encoder.summary(self.dropped[split])


class PairEncoder:
    """Encodes pairs one by one, drops or cuts what is too long, and counts.

    Args:
        config: the limits.
        vocabularies: one for each side, the target's last.
    """

    def __init__(self, config: DataConfig, vocabularies: Sequence[Vocabulary]) -> None:
        self.writers = tuple(TokenWriter() for _ in vocabularies)
        self._config = config
        self._vocabularies = tuple(vocabularies)
        self._dropped: Counter[str] = Counter()
        self._pairs = self._truncated = self._placeholders = 0

    def add(self, pair: Pair, rewritten: Pair | None = None) -> None:
        """Encode a pair, as ``rewritten`` with placeholders where that is given and they survive on every side."""
        encoded = self._encode(rewritten, reserved=True) if rewritten else None
        if encoded and self._copied(encoded[0]):
            self._placeholders += 1
        else:
            encoded = self._encode(pair, reserved=False)
        if encoded:
            sides, truncated = encoded
            self._truncated += truncated
            self._pairs += 1
            for writer, ids in zip(self.writers, sides, strict=True):
                writer.add(ids)

    def summary(self, dropped_before: Counter[str]) -> SplitSummary:
        """What was encoded; the reasons are joined with those of the text's filters."""
        *sources, target = (writer.total for writer in self.writers)
        return SplitSummary(
            pairs=self._pairs,
            dropped=dict(sorted((dropped_before + self._dropped).items())),
            source_tokens=tuple(sources),
            target_tokens=target,
            truncated=self._truncated,
            placeholders=self._placeholders,
            unknown=self.writers[-1].count(self._vocabularies[-1].unk),
        )

    def _encode(self, pair: Pair, *, reserved: bool) -> tuple[list[list[int]], bool] | None:
        """The sides' ids, and whether a source was cut; none where the pair is dropped (and counted)."""
        config, truncated = self._config, False
        sides = [v.encode(text, reserved=reserved) for v, text in zip(self._vocabularies, pair, strict=True)]
        reason = "" if all(sides) else "empty"
        if len(sides[-1]) + 1 > config.max_target_tokens:
            reason = "target_tokens"
        for ids, vocabulary in zip(sides[:-1], self._vocabularies, strict=False):
            if len(ids) + 1 > config.max_source_tokens:
                truncated = True
                del ids[config.max_source_tokens - 1 :]
            ids.append(vocabulary.eos)
        if truncated and not config.truncate_source:
            reason = "source_tokens"
        if not reason:
            return sides, truncated
        if not reserved:  # otherwise the plain pair is tried next, and counted then
            self._dropped[reason] += 1
        return None

    def _copied(self, sides: Sequence[Sequence[int]]) -> bool:
        """Whether the target has a placeholder and each of its placeholders is in every source, none cut off."""
        kinds = [set(ids) & set(v.placeholders) for ids, v in zip(sides, self._vocabularies, strict=True)]
        pieces = [{v.piece_of(token) for token in ids} for ids, v in zip(kinds, self._vocabularies, strict=True)]
        return bool(pieces[-1]) and all(pieces[-1] <= source for source in pieces[:-1])


def _select(columns: Columns, kept: Sequence[int]) -> Columns:
    return tuple([column[index] for index in kept] for column in columns)


def _files(corpus: CorpusConfig) -> list[str]:
    return [name for split in corpus.splits for name in corpus.paths(split)]


def _is_prepared(out: Path) -> bool:
    """Whether there is prepared data at ``out``, rather than nothing. Anything else is never replaced."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if not (out / SUMMARY_FILE).is_file():
        raise ConfigError(f"{out} exists and is not prepared data; take another folder")
    return True


def _replace_folder(partial: Path, out: Path) -> None:
    """Put ``partial`` in the place of ``out``; at no moment is ``out`` half written."""
    old = out.with_name(f".{out.name}.old-{os.getpid()}")
    if out.exists():
        out.rename(old)
    partial.rename(out)
    shutil.rmtree(old, ignore_errors=True)
