"""BPE dropout: another segmentation of the same text, by leaving out some of its merges.

Provilkov et al. (2020), "BPE-Dropout: Simple and Effective Subword Regularization", algorithm 1, as sentencepiece has
it: a merge that was left out is not tried again where it stood, which cuts finer than the paper does at the same
probability.

It is done here, and on ids, since sentencepiece's own sampling (0.2.2 and later) gives other pieces in every process
whatever its seed is: neither could a run be resumed nor could processes share the batches of an epoch. At the usual
rates nine words of ten keep all their merges, which one random number each tells; the others are merged anew.

N ids of all sequences, W words: runs of pieces that merges made, from one word boundary to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.pieces import BOUNDARY, SentencePieceVocabulary

Ids = list[int]


class MergeDropout:
    """Leaves merges out of sequences that a vocabulary has encoded.

    Args:
        vocabulary: of the type BPE.

    Raises:
        VocabularyError: it is a unigram model, which has no merges.
    """

    def __init__(self, vocabulary: SentencePieceVocabulary) -> None:
        if not vocabulary.has_merges:
            raise VocabularyError("BPE dropout needs a vocabulary of the type bpe, but it is a unigram one")
        pieces = vocabulary.mergeable()
        self._ids = {piece: token for token, piece, _ in pieces}
        self._ranks = {piece: -score for _, piece, score in pieces}
        self._pieces = {token: piece for token, piece, _ in pieces}
        self._characters = np.zeros(vocabulary.size, np.int64)  # 0: reserved, or a byte
        self._begins = np.ones(vocabulary.size, bool)
        for token, piece, _ in pieces:
            self._characters[token] = len(piece)
            self._begins[token] = piece.startswith(BOUNDARY)

    def applied(self, sequences: Sequence[Ids], rate: float, rng: np.random.Generator) -> list[Ids]:
        """The sequences with merges left out; their text stays what it is.

        Args:
            sequences: ids of texts.
            rate: the probability that a merge is left out.
            rng: decides which.
        """
        ids_N = np.fromiter(chain.from_iterable(sequences), np.int64)
        if not rate or not len(ids_N):
            return [list(ids) for ids in sequences]
        lengths = np.array([len(ids) for ids in sequences])
        starts_W = self._word_starts(ids_N, np.cumsum(lengths)[:-1])
        made_N = np.maximum(self._characters[ids_N] - 1, 0)
        # A run of n pieces of c characters in all took c - n merges, each of which stays with the chance 1 - rate.
        merges_W = np.add.reduceat(made_N, starts_W)
        chosen = np.flatnonzero(rng.random(len(starts_W)) >= (1 - rate) ** merges_W).tolist()
        ends_W = np.append(starts_W[1:], len(ids_N))
        flat, parts, done = ids_N.tolist(), [], 0
        extra_N = np.zeros(len(ids_N), np.int64)
        for word in chosen:
            start, end = int(starts_W[word]), int(ends_W[word])
            new = self._merged_anew(flat[start:end], int(merges_W[word]), rate, rng.random)
            parts += [flat[done:start], new]
            extra_N[start] = len(new) - (end - start)
            done = end
        rewritten = list(chain.from_iterable([*parts, flat[done:]]))
        cuts = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.concatenate([[0], np.cumsum(extra_N)])[cuts] + cuts
        return [rewritten[begin:end] for begin, end in pairwise(moved.tolist())]

    def _word_starts(self, ids_N: NDArray[np.int64], sequence_starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where runs of merged pieces begin: at word boundaries, where sequences begin, and around all other pieces."""
        begins_N = self._begins[ids_N].copy()
        begins_N[0] = True
        begins_N[sequence_starts[sequence_starts < len(ids_N)]] = True
        begins_N[1:] |= self._characters[ids_N[:-1]] == 0
        return np.flatnonzero(begins_N)

    def _merged_anew(self, ids: Ids, merges: int, rate: float, draw: Callable[[], float]) -> Ids:
        """A word's pieces where at least one of its merges is left out, the first one by its conditional chance."""
        text = "".join(self._pieces[token] for token in ids)
        # The number of merges before the first that is left out, given that there is one among the word's.
        first = int(np.log1p(-draw() * (1 - (1 - rate) ** merges)) / np.log1p(-rate))
        cuts = list(range(len(text) + 1))
        left_out: set[tuple[int, int]] = set()
        tried = 0
        while (best := self._best(text, cuts, left_out)) is not None:
            if tried == first or (tried > first and draw() < rate):
                left_out.add((cuts[best - 1], cuts[best + 1]))
            else:
                del cuts[best]
            tried += 1
        return [self._ids[text[start:end]] for start, end in pairwise(cuts)]

    def _best(self, text: str, cuts: list[int], left_out: set[tuple[int, int]]) -> int | None:
        """The cut that the merge of the lowest rank removes, the leftmost of equal ones; None where none is left."""
        found, lowest = None, float("inf")
        for index in range(1, len(cuts) - 1):
            start, end = cuts[index - 1], cuts[index + 1]
            rank = self._ranks.get(text[start:end], lowest)
            if rank < lowest and (start, end) not in left_out:
                found, lowest = index, rank
        return found
