"""Building a bundle's lexical shortlist from text it was trained on, and how much of a text a shortlist covers.

Pieces are aligned by IBM Model 1; a source piece lists the targets that it makes most probable, and its own copy.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.text import normalise
from tandem.models.vocabulary import BOS, EDITS, EOS, PAD, Vocabulary
from tandem.training.data.alignment import Bitext, Ids, sample_pairs

_NO_LETTERS = frozenset("NPSZ")  # Unicode's numbers, punctuation, symbols and spaces


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a text its sentences' shortlists hold.

    Attributes:
        tokens: share of the target tokens, EOS left out.
        sentences: share of the sentences of which they hold every token.
        listed: mean tokens of a list.
    """

    tokens: float
    sentences: float
    listed: float


def build_shortlist(
    vocabularies: tuple[Sequence[Vocabulary], Vocabulary],
    columns: Sequence[Sequence[str]],
    *,
    per_word: int,
    common: int,
) -> Shortlist:
    """The shortlist of a training text.

    Args:
        vocabularies: of the text sources, and of the target.
        columns: parallel lines, the text sources in order and the target last.
        per_word: targets of a source piece beside its copy.
        common: most frequent target pieces, which every list holds.

    Raises:
        ConfigError: ``per_word`` below 1 or ``common`` below 0.
        CorpusError: a text without a single pair of lines, or not a column for each text source and the target.
    """
    if per_word < 1 or common < 0:
        raise ConfigError(f"a shortlist needs per_word >= 1 and common >= 0, but they are {per_word} and {common}")
    sources, target = vocabularies
    if len(columns) != len(sources) + 1:
        raise CorpusError(f"a shortlist needs {len(sources)} source texts and the target, but {len(columns)} are given")
    encoded = [encode(vocabulary, lines) for vocabulary, lines in zip((*sources, target), columns, strict=True)]
    if not any(map(len, encoded[-1])):
        raise CorpusError("a shortlist is built from parallel text, but the target has none")
    pairs = []
    for lines in encoded[:-1]:
        cells = np.array([len(s) * len(t) for s, t in zip(lines, encoded[-1], strict=True)], np.int64)
        chosen = sample_pairs(cells, seed=1)
        pairs.append(([lines[index] for index in chosen], [encoded[-1][index] for index in chosen]))
    counts = np.bincount(np.concatenate(encoded[-1]), minlength=target.size)
    return shortlist_of(vocabularies, pairs, counts, per_word=per_word, common=common)


def tagged_shortlist(
    bundle: Bundle, texts: Mapping[str, Sequence[Sequence[str]]], per_word: int, common: int
) -> Shortlist:
    """That of a bundle whose sources begin with the tag of the language to translate into, with a part for each.

    Args:
        bundle: of several directions.
        texts: by direction, such as "de-en", of which there must be all: lines of source and target.
        per_word, common: as of :func:`build_shortlist`, for each direction.

    Raises:
        ConfigError, CorpusError: as of :func:`build_shortlist`.
    """
    target, parts = bundle.target_vocabulary, []
    for source, language in bundle.manifest.pairs:
        vocabularies = bundle.direction(source, language).source_vocabularies, target
        columns = texts[f"{source}-{language}"]
        built = build_shortlist(vocabularies, columns, per_word=per_word, common=common)
        parts.append((target.language_tag(language), built))
    return Shortlist.tagged(parts)


def shortlist_of(
    vocabularies: tuple[Sequence[Vocabulary], Vocabulary],
    pairs: Sequence[tuple[Sequence[Ids], Sequence[Ids]]],
    counts: Ids,
    *,
    per_word: int,
    common: int,
) -> Shortlist:
    """The shortlist of encoded text.

    Args:
        vocabularies: of the text sources, and of the target.
        pairs: for each text source parallel sentences of it and of the target, without EOS.
        counts: how often each target id occurs.
        per_word: targets of a source piece beside its copy.
        common: most frequent target ids, which every list holds.
    """
    sources, target = vocabularies
    most = np.argsort(-counts, kind="stable")[: min(common, int(np.count_nonzero(counts)))]
    tables = [
        _table(vocabulary, target, likely_targets(*own, target.size, per_word))
        for vocabulary, own in zip(sources, pairs, strict=True)
    ]
    return Shortlist(tuple(tables), np.union1d(always_listed(target), most).astype(np.int64), target.size)


def likely_targets(source: Sequence[Ids], target: Sequence[Ids], types: int, most: int) -> dict[int, list[int]]:
    """For each source id the ``most`` target ids that Model 1 gives the highest probability, best first.

    Args:
        source, target: parallel sentences.
        types: of the target.
        most: equally probable ones count by their id.
    """
    text = Bitext.of(source, target, types)
    if not len(text.keys):
        return {}
    source_P, target_P = text.words_P
    order_P = np.lexsort((target_P, -text.train(0).pair_P, source_P))
    starts = np.flatnonzero(np.diff(source_P[order_P], prepend=-1))
    ends = np.append(starts[1:], len(order_P))
    return {
        int(source_P[order_P[start]]): target_P[order_P[start : min(end, start + most)]].tolist()
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    }


def always_listed(target: Vocabulary) -> list[int]:
    """The tokens of every list: EOS, unknown, bytes, placeholders, operations, and pieces without a letter."""
    special = {target.eos, target.unk, *target.placeholders}
    return [
        token
        for token in range(target.size)
        if token not in (PAD, BOS) and (token in special or _is_always_listed(target.piece_of(token)))
    ]


def encode(vocabulary: Vocabulary, lines: Sequence[str]) -> list[Ids]:
    """The ids of every line, as the model reads them, without EOS."""
    return [np.array(vocabulary.encode(normalise(line)), np.int64) for line in lines]


def coverage(
    shortlist: Shortlist, sources: Sequence[tuple[NDArray[np.generic], ...]], targets: Sequence[Ids]
) -> Coverage:
    """How much of some sentences' targets their shortlists hold.

    Args:
        shortlist: the bundle's.
        sources: per sentence, as the model reads them.
        targets: ids without EOS.
    """
    held, whole, listed = 0, 0, 0
    for source, target in zip(sources, targets, strict=True):
        chosen = shortlist.select(source)
        found = np.isin(target, chosen)
        held, whole, listed = held + int(found.sum()), whole + bool(found.all()), listed + len(chosen)
    count, tokens = max(1, len(targets)), max(1, sum(map(len, targets)))
    return Coverage(held / tokens, whole / count, listed / count)


def _table(source: Vocabulary, target: Vocabulary, likely: dict[int, list[int]]) -> Table:
    ids = {target.piece_of(token): token for token in range(target.size)}
    copies = [ids.get(source.piece_of(token)) for token in range(source.size)]
    rows = [likely.get(token, []) + ([] if copy is None else [copy]) for token, copy in enumerate(copies)]
    for token in (PAD, BOS):
        rows[token] = []
    rows[EOS] = [target.eos]
    return Table.of(rows, target.size)


def _is_always_listed(piece: str) -> bool:
    is_byte = len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")
    return is_byte or piece in EDITS or all(unicodedata.category(one)[0] in _NO_LETTERS for one in piece)
