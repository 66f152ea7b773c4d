"""Which sizes the buffers have, and which parts of them one step reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from tandem.models.errors import ConfigError

_LENGTHS = (32, 64, 128, 256, 512, 1024)
_SENTENCES = (8, 64, 256, 512)


@dataclass(frozen=True, slots=True)
class Shape:
    """What one step reads and does: the first so many slots, source and target positions of every buffer, and rules.

    There is one capture per shape; all of them work on the same addresses.

    Attributes:
        sentences: B, slots.
        sources: S of each source.
        target: L, positions that the pools hold; every sentence is younger.
        repeats: whether some sentence may not repeat itself; others then compute that for nothing.
        required: whether some sentence has required tokens.
    """

    sentences: int
    sources: tuple[int, ...]
    target: int
    repeats: bool = False
    required: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """The buckets of each axis, ascending; the last of each is what the buffers are allocated for.

    Attributes:
        sentences: slots.
        source: length of any one source, in tokens with EOS or in feature vectors.
        target: positions, one more than the longest hypothesis has tokens: EOS takes a step too.
        required, suppressed: tokens that a sentence may require, and that it may suppress, at most.

    Raises:
        ConfigError: buckets that are not ascending positive numbers.
    """

    sentences: tuple[int, ...] = (1, 8, 32, 64)
    source: tuple[int, ...] = (32, 64, 128)
    target: tuple[int, ...] = (32, 64, 128, 257)
    required: int = 32
    suppressed: int = 64

    def __post_init__(self) -> None:
        for name in ("sentences", "source", "target"):
            buckets: tuple[int, ...] = getattr(self, name)
            if not buckets or list(buckets) != sorted({size for size in buckets if size > 0}):
                raise ConfigError(f"{name} must be ascending positive numbers, at least one, but is {buckets}")
        for name in ("required", "suppressed"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, but is {getattr(self, name)}")

    @classmethod
    def within(cls, sentences: int, source: int, target: int) -> Self:
        """Few buckets up to these bounds: each of them is a graph to capture, for each of the other axes.

        Args:
            sentences: slots.
            source: tokens of the longest source, EOS included.
            target: tokens of the longest hypothesis, EOS included.
        """
        return cls(_up_to(_SENTENCES, sentences), _up_to(_LENGTHS, source), _up_to(_LENGTHS, target))

    def halved(self) -> Self:
        """The same for half the slots. Raises ConfigError where there is but one."""
        return replace(self, sentences=_up_to(self.sentences, self.sentences[-1] // 2))

    def shape(
        self,
        sentences: int,
        sources: Iterable[int],
        target: int,
        *,
        repeats: bool = False,
        required: bool = False,
    ) -> Shape:
        """The smallest buckets that hold so many slots, source positions and target positions."""
        return Shape(
            _bucket(self.sentences, sentences),
            tuple(_bucket(self.source, length) for length in sources),
            _bucket(self.target, target),
            repeats,
            required,
        )


def _bucket(buckets: tuple[int, ...], needed: int) -> int:
    return next(size for size in buckets if size >= needed)


def _up_to(buckets: tuple[int, ...], last: int) -> tuple[int, ...]:
    return (*(size for size in buckets if size < last), last)
