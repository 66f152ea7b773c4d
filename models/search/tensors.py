"""Joining, padding and trimming tensors by the roles of their axes, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tandem.models.search.graphs import Array, TensorSpec

SLOT_BLOCK = 16  # pools grow and shrink by this many slots, so that shapes repeat and sums of rows do not change
Tensors = dict[str, Array]


def fit(array: Array, spec: TensorSpec, sizes: Mapping[str, int]) -> Array:
    """The tensor with every axis named in ``sizes`` cut or padded to that size; the same tensor where it fits."""
    wanted = tuple(sizes.get(axis, size) for axis, size in zip(spec.axes, array.shape, strict=True))
    if wanted == array.shape:
        return array
    shared = tuple(slice(min(old, new)) for old, new in zip(array.shape, wanted, strict=True))
    if all(new <= old for old, new in zip(array.shape, wanted, strict=True)):
        return np.ascontiguousarray(array[shared])
    # Zeros come with the pages, anything else has to be written.
    fitted = np.full(wanted, spec.padding, array.dtype) if spec.padding else np.zeros(wanted, array.dtype)
    fitted[shared] = array[shared]
    return fitted


def take(array: Array, chosen: Sequence[int], spec: TensorSpec, sizes: Mapping[str, int]) -> Array:
    """The chosen first-axis entries, cut to ``sizes``; cut before they are copied."""
    kept = tuple(slice(sizes.get(axis)) for axis in spec.axes[1:])
    return np.ascontiguousarray(array[(slice(None), *kept)][list(chosen)])


def join(parts: Sequence[Array], spec: TensorSpec, sizes: Mapping[str, int]) -> Array:
    """The tensors one after another along the first axis, the others fitted to ``sizes``."""
    fitted = [fit(part, spec, sizes) for part in parts]
    return fitted[0] if len(fitted) == 1 else np.concatenate(fitted)


def blank(spec: TensorSpec, first: int, sizes: Mapping[str, int]) -> Array:
    """A tensor of padding with ``first`` places or rows."""
    others = [int(axis[6:]) if axis.startswith("fixed:") else sizes[axis] for axis in spec.axes[1:]]
    return np.full((first, *others), spec.padding, np.dtype(spec.dtype))


def padded_length(longest: int, together: int = 1) -> int:
    """The padded length of a source, or of targets, one of so many sequences that a softmax may see together.

    Kernels treat what is left of a row behind its last whole vector differently, so that padding by single positions
    would change the bits of a sentence with the lengths of its batch-mates. A softmax over several sequences sums in
    lanes of 16, which a shift by less would mix.
    """
    block = 4 if together == 1 else 16
    return -(-longest // block) * block


def stack(sources: Sequence[Array], spec: TensorSpec, length: int) -> Array:
    """Sources of different length, ids or feature matrices S x D, padded to ``length``."""
    padded = np.full((len(sources), length, *sources[0].shape[1:]), spec.padding, np.dtype(spec.dtype))
    for row, source in zip(padded, sources, strict=True):
        row[: len(source)] = source
    return padded


def slots_for(used: int) -> int:
    """Slots of a pool of which ``used`` are needed: whole blocks, at least one."""
    return max(1, -(-used // SLOT_BLOCK)) * SLOT_BLOCK


def seen_slots(history_BKP: Array) -> NDArray[np.bool_]:
    """B x P: whether any row of the sentence sees the slot."""
    seen: NDArray[np.bool_] = (history_BKP == 0).any(axis=1)
    return seen


def fresh_slots(seen_BP: NDArray[np.bool_], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place and slot of each row's next entry: the first slots of its sentence that no row sees.

    Every sentence must have as many of them as rows.

    A slot that nobody sees any more (its hypotheses lost) is as good as new, which keeps pools near the length of the
    text instead of K times it. The choice depends on the sentence alone, never on its batch-mates.
    """
    free_BP = ~seen_BP
    free_BP &= free_BP.cumsum(axis=1) <= rows
    place_R, slot_R = free_BP.nonzero()
    return place_R, slot_R
