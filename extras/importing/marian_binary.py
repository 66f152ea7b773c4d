"""Marian's binary files of weights, as its converter writes them for Firefox: 8-bit matrices with their scales.

    u64 version 1, u64 n; n headers of four u64: bytes of the name with its NUL, type, dimensions, bytes of the data;
    the names; the dimensions (i32); u64 gap and so many bytes; the data, in the order of the headers

Everything is little-endian. A matrix of 8 bits (K x N) is stored transposed, one row for each output, whatever its
header says, but for tables of embeddings (``...Wemb``); one float32, the multiplier, follows: a weight is its level
divided by that. ``NAME_QuantMultA`` is what the inputs of NAME are multiplied by before they are rounded, those of the
output layer being called "none". Source of the format: marian-nmt's public code.

Shape suffixes: K inputs, N outputs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tandem.extras.importing.marian import CONFIG, read_yaml
from tandem.extras.importing.plan import Shape
from tandem.models.search.graphs import Array

MULTIPLIER = "_QuantMultA"
OUTPUT = f"none{MULTIPLIER}"
"""Names of multipliers of inputs: how they end, and that of the output layer's."""

_VERSION = 1
_MOST_BYTES, _MOST_DIMENSIONS = 1 << 31, 8
_FLOAT32, _INTGEMM8 = 0x404, 0x4101
_BYTES: Mapping[int, int] = {0x101: 1, 0x104: 4, _FLOAT32: 4, _INTGEMM8: 1}  # int8 and int32 are the first
_REFUSED: Mapping[int, str] = {
    0x402: "float16",
    0x4102: "intgemm16",
    0x408: "float64",
    0x0801: "packed16",
    0x1801: "packed8avx2",
    0x2801: "packed8avx512",
}


@dataclass(frozen=True, slots=True)
class _Item:
    """One array: its type, its shape, and where its bytes lie."""

    kind: int
    shape: Shape
    start: int
    size: int


class MarianBinary:
    """The arrays of a binary file by name.

    Attributes:
        shapes: of all but the configuration, as their headers have them.
    """

    def __init__(self, name: str, content: bytes) -> None:
        """The arrays of a file's content.

        Raises:
            ValueError: it is damaged, of another version or of types that are not read; every such type is named.
        """
        self._name, self._content = name, content
        self._items = dict(_items(name, content))
        self._check()
        self.shapes: Mapping[str, Shape] = {n: one.shape for n, one in self._items.items() if n != CONFIG}

    @classmethod
    def open(cls, path: Path) -> MarianBinary:
        """The arrays of a file. Raises ValueError, as the constructor does, and where it cannot be read."""
        try:
            size = path.stat().st_size
            if size > _MOST_BYTES:
                raise ValueError(f"{path.name} must have at most {_MOST_BYTES} bytes, but has {size}")
            return cls(path.name, path.read_bytes())
        except OSError as error:
            raise ValueError(f"{path.name} cannot be read: {error}") from error

    def config(self) -> dict[str, Any]:
        """What the file says of the model. Raises ValueError where it does not."""
        faults: list[str] = []
        item = self._items.get(CONFIG)
        text = self._bytes(item).rstrip(b"\x00") if item is not None else b""
        table = read_yaml(text, f"{self._name} {CONFIG}", faults)
        if faults:
            raise ValueError("; ".join(faults))
        return table

    @property
    def quantised(self) -> bool:
        """Whether it has matrices of 8 bits, and says how the inputs of the output layer become such."""
        return OUTPUT in self._items and any(one.kind == _INTGEMM8 for one in self._items.values())

    def has_levels(self, name: str) -> bool:
        """Whether an array is a matrix of 8 bits."""
        return self._items[name].kind == _INTGEMM8

    def levels(self, name: str) -> tuple[Array, float]:
        """A matrix of 8 bits, N x K, or an embedding table as it is, and the multiplier of its weights."""
        item = self._items[name]
        shape = item.shape if name.endswith("Wemb") else item.shape[::-1]
        levels = np.frombuffer(self._bytes(item), np.int8, math.prod(shape)).reshape(shape)
        return levels, self._multiplier(item)

    def floats(self, name: str) -> Array:
        """An array in float32, of the shape that its header has."""
        item = self._items[name]
        if item.kind == _INTGEMM8:
            levels, multiplier = self.levels(name)
            values = levels.astype(np.float32) / np.float32(multiplier)
            return values if name.endswith("Wemb") else np.ascontiguousarray(values.T)
        kind = np.dtype("<f4") if item.kind == _FLOAT32 else np.dtype(f"<i{_BYTES[item.kind]}")
        values = np.frombuffer(self._bytes(item), kind, math.prod(item.shape)).reshape(item.shape)
        return values.astype(np.float32)

    def _bytes(self, item: _Item) -> bytes:
        return self._content[item.start : item.start + item.size]

    def _multiplier(self, item: _Item) -> float:
        at = item.start + math.prod(item.shape)
        (multiplier,) = struct.unpack("<f", self._content[at : at + 4])
        return float(multiplier)

    def _check(self) -> None:
        """Refuse matrices whose weights nothing can be made of; what is called a multiplier is a number of its own."""
        for name, item in self._items.items():
            if item.kind != _INTGEMM8 or name.endswith(MULTIPLIER):
                continue
            multiplier = self._multiplier(item)
            if len(item.shape) != 2 or not (math.isfinite(multiplier) and multiplier > 0):
                raise ValueError(
                    f"{self._name}: {name} must be a matrix with a multiplier above 0, but has {len(item.shape)}"
                    f" dimensions and {multiplier:g}"
                )


class _Cursor:
    """Reads numbers one after another, and nothing beyond the end."""

    def __init__(self, name: str, content: bytes) -> None:
        self._name, self._content, self.at = name, content, 0

    def take(self, size: int) -> bytes:
        left = len(self._content) - self.at
        if size > left:
            raise ValueError(f"{self._name} is truncated or damaged: {size} bytes should follow, but {left} do")
        self.at += size
        return self._content[self.at - size : self.at]

    def longs(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self.take(8 * count))


def _items(name: str, content: bytes) -> Iterator[tuple[str, _Item]]:
    """The arrays in the order of the file."""
    cursor = _Cursor(name, content)
    version, count = cursor.longs(2)
    if version != _VERSION:
        raise ValueError(f"{name} must be a binary file of version {_VERSION} of Marian's, but is of {version}")
    table = cursor.longs(4 * count)
    headers = [table[at : at + 4] for at in range(0, len(table), 4)]
    names = [_name(name, cursor.take(length)) for length, *_ in headers]
    if wrong := {kind: own for own, (_, kind, _, _) in zip(names, headers, strict=True) if kind not in _BYTES}:
        found = ", ".join(f"{own} of the type {_REFUSED.get(kind, hex(kind))}" for kind, own in wrong.items())
        raise ValueError(f"{name} must hold float32, int8, int32 and intgemm8 alone, but has {found}")
    if len(set(names)) != len(names):
        raise ValueError(f"{name} is damaged: names of arrays repeat")
    shapes = [_shape(cursor, own, dimensions) for own, (_, _, dimensions, _) in zip(names, headers, strict=True)]
    (gap,) = cursor.longs(1)
    cursor.take(gap)
    for own, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        start, needed = cursor.at, math.prod(shape) * _BYTES[kind] + (4 if kind == _INTGEMM8 else 0)
        if size < needed:
            raise ValueError(f"{name} is damaged: {own} {list(shape)} needs {needed} bytes, but has {size}")
        cursor.take(size)
        yield own, _Item(kind, shape, start, size)


def _name(file: str, content: bytes) -> str:
    try:
        return content.rstrip(b"\x00").decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is damaged: the name of an array is no text") from error


def _shape(cursor: _Cursor, name: str, dimensions: int) -> Shape:
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError(f"{name} must have at most {_MOST_DIMENSIONS} dimensions, but has {dimensions}")
    shape = struct.unpack(f"<{dimensions}i", cursor.take(4 * dimensions))
    if not shape or min(shape) < 1:
        raise ValueError(f"{name} must have dimensions of at least 1, but has {list(shape)}")
    return shape
