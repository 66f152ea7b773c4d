"""What is kept out of training: pairs for validation and test that share no sentence with anything trained on.

Deduplication alone leaves sentences in both: the same source with another translation, or the same translation of
another source. Here pairs that share a side, directly or over others, stay together in one split.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tandem.extras.starter.text import Pair
from tandem.models.errors import CorpusError

LARGEST = 10  # pairs that stay together and may still be held out: what is said so often is no test


Splits = dict[str, tuple[Pair, ...]]  # of train, valid and test, each in the order of the files


def hold_out(pairs: Sequence[Pair], valid: int, test: int, seed: int) -> Splits:
    """Take so many pairs out at random; the same arguments give the same splits.

    Raises:
        CorpusError: too few pairs share no sentence with many others.
    """
    groups = connected(pairs)
    order = np.random.default_rng([seed, 3]).permutation(len(groups))
    free = [groups[index] for index in order if len(groups[index]) <= LARGEST]
    held: dict[str, set[int]] = {}
    for name, wanted in (("test", test), ("valid", valid)):
        held[name] = _take(free, wanted)
        if len(held[name]) < wanted:
            raise CorpusError(
                f"only {len(held[name]):,} pairs can be held out for {name}, but {wanted:,} are wanted: most sentences"
                f" occur in more than {LARGEST} pairs that hang together; ask for fewer with --{name}"
            )
    out = held["test"] | held["valid"]
    train = tuple(pair for index, pair in enumerate(pairs) if index not in out)
    return {"train": train, **{name: tuple(pairs[index] for index in sorted(held[name])) for name in ("valid", "test")}}


def connected(pairs: Sequence[Pair]) -> list[list[int]]:
    """The pairs' indices in groups: those that share a side, whatever its case and spaces, are in one group."""
    parents = list(range(len(pairs)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]  # halves the path, so that it is short next time
            index = parents[index]
        return index

    first: dict[tuple[int, str], int] = {}
    for index, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            parents[root(index)] = root(first.setdefault((side, _folded(text)), index))
    groups: dict[int, list[int]] = {}
    for index in range(len(pairs)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def _take(free: list[list[int]], wanted: int) -> set[int]:
    """Groups off the end of the list until there are so many indices; one that is too large for the rest stays."""
    taken: set[int] = set()
    left: list[list[int]] = []
    while free and len(taken) < wanted:
        group = free.pop()
        if len(group) <= wanted - len(taken):
            taken.update(group)
        else:
            left.append(group)
    free.extend(left)
    return taken


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
