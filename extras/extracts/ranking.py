"""Extracts: the sentences of a text that say most of it, as they stand there, in any language and without a model.

LexRank (Erkan and Radev 2004, section 3.3, continuous): sentences are nodes of a graph whose edges are the cosines of
their words' tf-idf vectors; a sentence's rank is how often a walk that follows edges, and now and then jumps, comes by
it. The jumps go to early sentences more often than to late ones, since texts begin with what they are about, and to
whole sentences more often than to greetings. The constants are those with the best ROUGE of one sentence and of two
beside the authors' own descriptions of pages and titles of abstracts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import count

import numpy as np
import numpy.typing as npt

MOST_SENTENCES = 1_000
"""The first so many of a text are ranked: the graph has the square of their number in edges."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")  # scripts without spaces by character
_JUMP = 0.15  # probability of a jump
_DECAY = 0.5  # of the jumps' probability, by the square root of the place
_TELLING = 8  # words; a shorter sentence, such as a greeting, says little
_ROUNDS = 50
_SAME = 0.7  # cosine from which on two sentences say the same

Floats = npt.NDArray[np.float32]


def extract(sentences: Sequence[str], most: int) -> list[int]:
    """The numbers of the sentences that say most of a text, in the text's order.

    Args:
        sentences: of the text, with words in each.
        most: how many, at most; sentences that say what a better one says are left out.
    """
    counts = [Counter(_WORD.findall(sentence.casefold())) for sentence in sentences[:MOST_SENTENCES]]
    similarity_NN = _similarities(counts)
    weight_N = np.array([min(_TELLING, words.total()) for words in counts], np.float32)
    chosen: list[int] = []
    for number in np.argsort(-_ranks(similarity_NN, weight_N), kind="stable"):
        if len(chosen) == most:
            break
        if not chosen or similarity_NN[number, chosen].max() < _SAME:
            chosen.append(int(number))
    return sorted(chosen)


def _similarities(counts: Sequence[Counter[str]]) -> Floats:
    """Cosines of the tf-idf vectors of N sentences' words, N x N; 0 where one has no words."""
    numbers: dict[str, int] = {}
    fresh = count()
    for words in counts:
        for word in words:
            if word not in numbers:
                numbers[word] = next(fresh)
    tf_NV = np.zeros((len(counts), len(numbers)), np.float32)
    for row, words in zip(tf_NV, counts, strict=True):
        row[[numbers[word] for word in words]] = list(words.values())
    idf_V = np.log((1 + len(counts)) / (1 + (tf_NV > 0).sum(0))) + 1
    vectors_NV = tf_NV * idf_V.astype(np.float32)
    vectors_NV /= np.maximum(np.linalg.norm(vectors_NV, axis=1, keepdims=True), 1e-9)
    return np.asarray(vectors_NV @ vectors_NV.T, np.float32)


def _ranks(similarity_NN: Floats, weight_N: Floats) -> Floats:
    """The walk's stationary distribution over N sentences; its jumps prefer early ones, and those of weight."""
    jump_N = weight_N * np.exp(-_DECAY * np.sqrt(np.arange(len(weight_N), dtype=np.float32)))
    jump_N /= max(float(jump_N.sum()), 1e-9)
    total_N = similarity_NN.sum(1, keepdims=True)
    walk_NN = np.where(total_N > 0, similarity_NN / np.maximum(total_N, 1e-9), jump_N)
    rank_N = jump_N
    for _ in range(_ROUNDS):
        rank_N = _JUMP * jump_N + (1 - _JUMP) * (rank_N @ walk_NN)
    return np.asarray(rank_N, np.float32)
