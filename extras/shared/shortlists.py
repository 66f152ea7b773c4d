"""A lexical shortlist of the text that a model is trained on.

Pieces are aligned by IBM Model 1; a source piece lists the targets that it makes most probable, and its own copy.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from tandem.extras.shared.alignment import Bitext, Ids
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.text import normalise
from tandem.models.vocabulary import BOS, EDITS, EOS, PAD, Vocabulary

_NO_LETTERS = frozenset("NPSZ")  # Unicode's numbers, punctuation, symbols and spaces


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
