"""Encoded text on disk: flat token arrays that are memory-mapped, not loaded.

For every split and side (``source0``, …, ``target``) a folder holds ``<split>.<side>.tokens.npy`` with all tokens in
a row and ``<split>.<side>.offsets.npy`` with one more offset than there are pairs. Sources end with EOS; targets have
neither BOS nor EOS. Vocabularies lie beside them as ``<side>.model`` or ``<side>.words``.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.errors import CorpusError
from models.vocabulary import SentencePieceVocabulary, Vocabulary, WordVocabulary
from training.data.summary import PreparedSummary

TARGET = "target"


def side_names(sources: int) -> tuple[str, ...]:
    """The names of the sides: ``source0``, …, ``target``."""
    return (*(f"source{index}" for index in range(sources)), TARGET)


@dataclass(frozen=True, slots=True)
class TokenArray:
    """Token sequences of one side: sequence ``i`` is ``tokens[offsets[i] : offsets[i + 1]]``."""

    tokens: NDArray[np.integer]
    offsets: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sequence."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.integer]:
        if not 0 <= index < len(self):
            raise IndexError(f"index must be 0 to {len(self) - 1}, but is {index}")
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]


@dataclass(frozen=True, slots=True)
class PreparedData:
    """One split of prepared data.

    Attributes:
        source_sides: the encoded sources, EOS included.
        target_side: the encoded target, without BOS and EOS.
        source_lengths: for each pair the tokens of its longest source, EOS included.
        target_lengths: for each pair the tokens of its target, EOS included (as the decoder predicts it).
    """

    source_sides: tuple[TokenArray, ...]
    target_side: TokenArray
    source_lengths: NDArray[np.int64]
    target_lengths: NDArray[np.int64]

    @classmethod
    def open(cls, folder: Path, split: str) -> PreparedData:
        """Map a split of a prepared folder into memory.

        Raises:
            CorpusError: the folder is not prepared data, has no such split, or a file is missing or damaged.
        """
        summary = PreparedSummary.load(folder)
        if split not in summary.splits:
            raise CorpusError(f"{folder} has no split {split!r}, only {', '.join(summary.splits)}")
        sides = [_open_side(folder, split, side) for side in side_names(len(summary.vocabularies) - 1)]
        if {len(side) for side in sides} != {summary.splits[split].pairs}:
            raise CorpusError(f"{folder}: the sides of {split} differ in length; prepare it again")
        return cls.from_sides(sides[:-1], sides[-1])

    @classmethod
    def from_sides(cls, sources: Sequence[TokenArray], target: TokenArray) -> PreparedData:
        """Prepared data from its token arrays."""
        longest = np.max(np.stack([side.lengths for side in sources]), axis=0)
        return cls(tuple(sources), target, longest, target.lengths + 1)

    def __len__(self) -> int:
        return len(self.target_side)

    def sources(self, index: int) -> tuple[NDArray[np.integer], ...]:
        """The sources of a pair, each ending with EOS."""
        return tuple(side[index] for side in self.source_sides)

    def target(self, index: int) -> NDArray[np.integer]:
        """The target of a pair, without BOS and EOS."""
        return self.target_side[index]


class TokenWriter:
    """Collects the token sequences of one side in compact memory and writes them."""

    def __init__(self) -> None:
        self._tokens = array("i")
        self._offsets = array("q", [0])

    def add(self, ids: Sequence[int]) -> None:
        """Append one sequence."""
        self._tokens.extend(ids)
        self._offsets.append(len(self._tokens))

    @property
    def total(self) -> int:
        """Tokens so far."""
        return len(self._tokens)

    def count(self, token: int) -> int:
        """How often a token occurs."""
        return self._tokens.count(token)

    def save(self, folder: Path, split: str, side: str, vocabulary_size: int) -> None:
        """Write the arrays, tokens in the smallest type that holds the vocabulary."""
        dtype = np.uint16 if vocabulary_size <= np.iinfo(np.uint16).max + 1 else np.int32
        np.save(folder / f"{split}.{side}.tokens.npy", np.frombuffer(self._tokens, np.int32).astype(dtype))
        np.save(folder / f"{split}.{side}.offsets.npy", np.frombuffer(self._offsets, np.int64))


def load_vocabularies(folder: Path) -> tuple[tuple[Vocabulary, ...], Vocabulary]:
    """The vocabularies of a prepared folder: one for each source, and the target's.

    Raises:
        CorpusError: the folder is not prepared data.
        VocabularyError: a vocabulary cannot be read.
    """
    *sources, target = (_load_vocabulary(folder, side) for side in PreparedSummary.load(folder).vocabularies)
    return tuple(sources), target


def text_path(folder: Path, corpus: str, split: str, side: str) -> Path:
    """Where the whole text of an evaluation split lies: one segment a line, as in the corpus."""
    return folder / "text" / corpus / f"{split}.{side}.txt"


def _load_vocabulary(folder: Path, side: str) -> Vocabulary:
    words = folder / f"{side}.words"
    return WordVocabulary.load(words) if words.exists() else SentencePieceVocabulary.load(folder / f"{side}.model")


def _open_side(folder: Path, split: str, side: str) -> TokenArray:
    paths = [folder / f"{split}.{side}.{part}.npy" for part in ("tokens", "offsets")]
    try:
        # Plain views of the maps: slicing np.memmap itself is several times slower.
        tokens, offsets = (np.asarray(np.load(path, mmap_mode="r")) for path in paths)
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(f"{folder}: the arrays {split}.{side}.* cannot be read ({error}), prepare again") from error
    if len(offsets) == 0 or offsets[-1] != len(tokens):
        raise CorpusError(f"{paths[0]} does not fit its offsets; prepare it again")
    return TokenArray(tokens, offsets)
