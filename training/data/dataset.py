"""Encoded text on disk: flat token arrays that are memory-mapped, not loaded.

For every split and side (``source0``, …, ``target``) a folder holds ``<split>.<side>.tokens.npy`` with all tokens in
a row and ``<split>.<side>.offsets.npy`` with one more offset than there are pairs. Sources end with EOS; targets have
neither BOS nor EOS. Feature vectors stay where they are; ``<split>.rows.npy`` names file and row of every pair.
Vocabularies lie beside them as ``<side>.model`` or ``<side>.words`` (public models' own as ``<side>.mapped.json`` or
``<side>.byte-pairs.json``), and for word vocabularies a ``dictionary.tsv``.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.models.bundle import by_source
from tandem.models.errors import CorpusError
from tandem.models.vocabulary import KINDS, Vocabulary, VocabularyKind
from tandem.models.vocabulary.dictionary import Dictionary
from tandem.training.data.features import FeatureArray, map_features
from tandem.training.data.summary import FeatureSide, PreparedSummary

TARGET = "target"
_WRITTEN_AT_ONCE = 2**20
DICTIONARY = "dictionary.tsv"


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

    def lengths_of(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of the chosen sequences; nothing is read of the others."""
        return self.offsets[chosen + 1] - self.offsets[chosen]

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
        source_sides: the encoded sources, EOS included, or feature matrices.
        target_side: the encoded target, without BOS and EOS.
    """

    source_sides: tuple[TokenArray | FeatureArray, ...]
    target_side: TokenArray

    @classmethod
    def open(cls, folder: Path, split: str) -> PreparedData:
        """Map a split of a prepared folder into memory.

        Raises:
            CorpusError: the folder is not prepared data, has no such split, or a file is missing or damaged.
        """
        summary = PreparedSummary.load(folder)
        if split not in summary.splits:
            raise CorpusError(f"{folder} has no split {split!r}, only {', '.join(summary.splits)}")
        *names, _ = side_names(len(summary.vocabularies) - 1)
        sources = [
            open_features(folder, split, summary.features[name])
            if name in summary.features
            else _open_side(folder, split, name)
            for name in names
        ]
        target = _open_side(folder, split, TARGET)
        if {len(side) for side in (*sources, target)} != {summary.splits[split].pairs}:
            raise CorpusError(f"{folder}: the sides of {split} differ in length; prepare it again")
        return cls(tuple(sources), target)

    @property
    def source_lengths(self) -> NDArray[np.int64]:
        """For each pair what :meth:`lengths_of` says of its source."""
        return self.lengths_of(np.arange(len(self)))[0]

    @property
    def target_lengths(self) -> NDArray[np.int64]:
        """For each pair what :meth:`lengths_of` says of its target."""
        return self.lengths_of(np.arange(len(self)))[1]

    def lengths_of(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Source and target lengths of the chosen pairs, read from the offsets: nothing is kept.

        The source's is the tokens of its longest text, EOS included (feature vectors where no source is text): pairs of
        similar length go together by what differs between them. The target's is its tokens, EOS included, as the
        decoder predicts it.
        """
        texts = [side.lengths_of(pairs) for side in self.source_sides if isinstance(side, TokenArray)]
        lengths = texts or [side.lengths[pairs] for side in self.source_sides]
        return np.max(np.stack(lengths), axis=0), self.target_side.lengths_of(pairs) + 1

    def __len__(self) -> int:
        return len(self.target_side)

    def sources(self, index: int) -> tuple[NDArray[Any], ...]:
        """The sources of a pair: ids ending with EOS, or a matrix S x D."""
        return tuple(side[index] for side in self.source_sides)

    def target(self, index: int) -> NDArray[np.integer]:
        """The target of a pair, without BOS and EOS."""
        return self.target_side[index]


class TokenWriter:
    """Writes the token sequences of one side as they come; memory holds the offsets only.

    Args:
        folder: prepared data in the making.
        split: of the data.
        side: of the split.
        vocabulary_size: decides on the tokens' type, the smallest that holds them.
    """

    def __init__(self, folder: Path, split: str, side: str, vocabulary_size: int) -> None:
        self._name = folder / f"{split}.{side}"
        self._dtype = np.dtype(np.uint16 if vocabulary_size <= np.iinfo(np.uint16).max + 1 else np.int32)
        self._file = self._path("tokens").open("wb")
        self._waiting = array("i")
        self._offsets = array("q", [0])
        self._write_header()

    def add(self, ids: Sequence[int]) -> None:
        """Append one sequence."""
        self._waiting.extend(ids)
        self._offsets.append(self._offsets[-1] + len(ids))
        if len(self._waiting) >= _WRITTEN_AT_ONCE:
            self._flush()

    @property
    def total(self) -> int:
        """Tokens so far."""
        return self._offsets[-1]

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._write_header()
        self._file.close()
        np.save(self._path("offsets"), np.frombuffer(self._offsets, np.int64))

    def _path(self, part: str) -> Path:
        return self._name.with_name(f"{self._name.name}.{part}.npy")

    def _flush(self) -> None:
        self._file.write(np.frombuffer(self._waiting, np.int32).astype(self._dtype).tobytes())
        self._waiting = array("i")

    def _write_header(self) -> None:
        """As np.save does; the format leaves room for the length to grow."""
        self._file.seek(0)
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self.total,)}
        np.lib.format.write_array_header_1_0(self._file, header)


def load_vocabularies(folder: Path) -> tuple[tuple[Vocabulary, ...], Vocabulary]:
    """The vocabularies of a prepared folder: one for each text source, and the target's.

    Raises:
        CorpusError: the folder is not prepared data.
        VocabularyError: a vocabulary cannot be read.
    """
    summary = PreparedSummary.load(folder)
    texts = (side for side in summary.vocabularies if side not in summary.features)
    *sources, target = (_load_vocabulary(folder, side) for side in texts)
    return tuple(sources), target


def vocabulary_digest(folder: Path) -> str:
    """SHA-256 of a prepared folder's vocabularies, by which weights are told to belong to them."""
    sources, target = load_vocabularies(folder)
    return hashlib.sha256(b"".join(one.to_bytes() for one in (*sources, target))).hexdigest()


def load_sources(folder: Path) -> tuple[tuple[Vocabulary | None, ...], Vocabulary]:
    """As :func:`load_vocabularies`, but with an entry for every source: None for feature matrices."""
    texts, target = load_vocabularies(folder)
    return by_source(texts, PreparedSummary.load(folder).feature_widths), target


def load_dictionary(folder: Path) -> Dictionary:
    """The dictionary of a prepared folder; empty where it has none, as for sentencepiece.

    Raises:
        VocabularyError: it cannot be read.
    """
    path = folder / DICTIONARY
    return Dictionary.from_bytes(path.read_bytes()) if path.exists() else Dictionary()


def text_path(folder: Path, corpus: str, split: str, side: str) -> Path:
    """Where the whole text of an evaluation split lies: one segment a line, as in the corpus."""
    return folder / "text" / corpus / f"{split}.{side}.txt"


def open_features(folder: Path, split: str, side: FeatureSide, *, evaluation: str = "") -> FeatureArray:
    """The feature matrices of a split's pairs, or with ``evaluation`` those of its text of one corpus, kept whole.

    Raises:
        CorpusError: a file is no longer where it was, or no longer what it was.
    """
    files = side.files.get(split, {})
    try:
        if evaluation:
            matrices = [map_features(Path(files[evaluation]), side.width)]
            places = np.load(text_rows_path(folder, evaluation, split))
        else:
            matrices = [map_features(Path(path), side.width) for path in files.values()]
            places = np.load(folder / f"{split}.rows.npy")
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise CorpusError(f"{folder}: the rows of {split} features cannot be read ({error}): prepare again") from error
    except CorpusError as error:
        raise CorpusError(f"{error}; {folder} reads it there: put it back, or prepare again") from error
    for number, file in enumerate(matrices):
        if places[places[:, 0] == number, 1].max(initial=-1) >= len(file):
            raise CorpusError(f"{[*files.values()][number]} has lost rows since {folder} was prepared; prepare again")
    return FeatureArray(tuple(matrices), places)


def text_rows_path(folder: Path, corpus: str, split: str) -> Path:
    """Where the rows of the features that go with the text of an evaluation split are named."""
    return folder / "text" / corpus / f"{split}.rows.npy"


def save_vocabulary(folder: Path, side: str, vocabulary: Vocabulary) -> None:
    """Write a vocabulary of whatever kind beside the arrays of a side."""
    kind = next(kind for kind, (of_kind, _) in KINDS.items() if type(vocabulary) is of_kind)
    (folder / _vocabulary_file(side, kind)).write_bytes(vocabulary.to_bytes())


def _load_vocabulary(folder: Path, side: str) -> Vocabulary:
    present = [kind for kind in KINDS if (folder / _vocabulary_file(side, kind)).exists()]
    kind: VocabularyKind = present[0] if present else "sentencepiece"
    return KINDS[kind][0].load(folder / _vocabulary_file(side, kind))


def _vocabulary_file(side: str, kind: VocabularyKind) -> str:
    """Kinds whose files end alike are told apart by their names."""
    endings = [ending for _, ending in KINDS.values()]
    ending = KINDS[kind][1]
    return f"{side}.{ending}" if endings.count(ending) == 1 else f"{side}.{kind}.{ending}"


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
