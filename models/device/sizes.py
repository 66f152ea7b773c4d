"""Which sizes the buffers have, and which parts of them one step reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Shape:
    """What one step reads: the first so many slots, source positions and target positions of every buffer.

    There is one capture per shape; all of them work on the same addresses.

    Attributes:
        sentences: B, slots.
        sources: S of each source.
        target: L, positions that the pools hold; every sentence is younger.
    """

    sentences: int
    sources: tuple[int, ...]
    target: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The buckets of each axis, ascending; the last of each is what the buffers are allocated for.

    Attributes:
        sentences: slots.
        source: length of any one source, in tokens with EOS or in feature vectors.
        target: positions, one more than the longest hypothesis has tokens: EOS takes a step too.

    Raises:
        ConfigError: buckets that are not ascending positive numbers.
    """

    sentences: tuple[int, ...] = (1, 8, 32, 64)
    source: tuple[int, ...] = (32, 64, 128)
    target: tuple[int, ...] = (32, 64, 128, 257)

    def __post_init__(self) -> None:
        for name in ("sentences", "source", "target"):
            buckets: tuple[int, ...] = getattr(self, name)
            if not buckets or list(buckets) != sorted({size for size in buckets if size > 0}):
                raise ConfigError(f"{name} must be ascending positive numbers, at least one, but is {buckets}")

    def shape(self, sentences: int, sources: Iterable[int], target: int) -> Shape:
        """The smallest buckets that hold so many slots, source positions and target positions."""
        return Shape(
            _bucket(self.sentences, sentences),
            tuple(_bucket(self.source, length) for length in sources),
            _bucket(self.target, target),
        )


def _bucket(buckets: tuple[int, ...], needed: int) -> int:
    return next(size for size in buckets if size >= needed)
