"""Automatic post-editing as edit operations: keep, delete, or a token to insert.

A post-editing model does not write the corrected text but the edits that lead to it from the machine translation
(Libovický and Helcl, ACL 2017, sec. 4.2), which keeps it from paraphrasing. A script is read from left to right beside
the translation: ``keep`` copies the next token, ``delete`` skips it, any other token is inserted there.

Choices
    - Operations are over the vocabulary's own tokens. With the joint subword vocabulary they are over pieces, so that
      nothing is unknown; with word vocabularies they are over words, as in the paper.
    - A script is as short as can be under insertions and deletions (a substitution is one of each). Of equally short
      ones it is the one whose last operation is to keep rather than to delete rather than to insert, and so on towards
      the front: so a replacement is written before what it replaces is deleted. This is the order of the authors' code.
    - Scripts name every token of the translation, those deleted at its end too, as the authors' do: then scripts of
      sentences joined into one item are the script of the joined text. What a script does not reach (a model may stop
      early) is kept, since post-editing is to leave alone what it has no opinion on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tandem.models.vocabulary.base import DELETE, KEEP, Vocabulary

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operations:
    """The two operations that are not insertions, as token ids of a vocabulary."""

    keep: int
    delete: int

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Operations:
        """Those of a vocabulary. Raises VocabularyError where it was trained without them."""
        return cls(vocabulary.id_of(KEEP), vocabulary.id_of(DELETE))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a token of the edited text comes from: a place in the translation, or in the script (an insertion)."""

    kept: bool
    index: int


def shortest_script(
    translation: Sequence[T], target: Sequence[T], ids: Sequence[int], operations: Operations
) -> list[int]:
    """The shortest script from a machine translation to a target, as token ids.

    Args:
        translation, target: their tokens, as anything that can be compared and hashed: ids of pieces, or words (of
            which several may have the id of the unknown word).
        ids: the token ids of ``target``, one each.
        operations: ids of keep and delete.
    """
    rows = _common(translation, target)
    script: list[int] = []
    i, j = len(translation), len(target)
    while i or j:
        if i and j and translation[i - 1] == target[j - 1]:
            i, j = i - 1, j - 1
            script.append(operations.keep)
        elif i and _same_without(rows, i, j):
            i -= 1
            script.append(operations.delete)
        else:
            j -= 1
            script.append(ids[j])
    return script[::-1]


def origins(script: Sequence[int], length: int, operations: Operations) -> list[Origin]:
    """Where each token of the edited text comes from.

    Any sequence of ids is a script: operations beyond the end of the translation do nothing, and what is left of the
    translation when the script ends is kept.

    Args:
        script: operations as token ids.
        length: tokens of the machine translation.
        operations: ids of keep and delete.
    """
    found: list[Origin] = []
    at = 0
    for step, operation in enumerate(script):
        if operation == operations.keep:
            if at < length:
                found.append(Origin(True, at))
            at += 1
        elif operation == operations.delete:
            at += 1
        else:
            found.append(Origin(False, step))
    return found + [Origin(True, place) for place in range(at, length)]


def apply(script: Sequence[int], translation: Sequence[int], operations: Operations) -> list[int]:
    """The edited text of a script, as token ids; see :func:`origins` for scripts that fit no text."""
    return [
        translation[origin.index] if origin.kept else script[origin.index]
        for origin in origins(script, len(translation), operations)
    ]


def _common(translation: Sequence[T], target: Sequence[T]) -> list[int]:
    """For every prefix of the translation the longest common subsequences with the target's prefixes, as bits.

    Bit j of row i is 0 where the longest common subsequence of ``translation[:i]`` and ``target[: j + 1]`` is one
    longer than that with ``target[:j]``. One row is a handful of operations on whole integers (Hyyrö 2004).
    """
    places: dict[T, int] = {}
    for j, token in enumerate(target):
        places[token] = places.get(token, 0) | 1 << j
    full = (1 << len(target)) - 1
    rows = [full]
    for token in translation:
        row = rows[-1]
        matched = row & places.get(token, 0)
        rows.append((row + matched | row - matched) & full)
    return rows


def _same_without(rows: Sequence[int], i: int, j: int) -> bool:
    """Whether ``translation[: i - 1]`` has as long a common subsequence with ``target[:j]`` as ``translation[:i]``."""
    below = (1 << j) - 1
    return (rows[i] & below).bit_count() == (rows[i - 1] & below).bit_count()
