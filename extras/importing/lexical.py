"""Lexical shortlists of Marian's (``lex.50.50.*.s2t.bin``): for each source piece the target pieces that it makes
likely, and some frequent ones that every sentence may use.

    six u64: a magic number, a checksum, how many of the first ids every sentence may use, the most of a piece's list,
    the number of offsets and that of ids; the offsets (u64), one more than there are source pieces; the ids (u32)

Everything is little-endian. Whose checksum it is no document says: it is not looked at, every bound is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.vocabulary import EOS

_MAGIC = 0xF11A48D5013417F5
_HEADER = struct.Struct("<6Q")
_MOST_BYTES = 1 << 30


def read_lexical(path: Path, source: Sequence[int], target: Sequence[int], faults: list[str]) -> Shortlist | None:
    """A shortlist over our ids.

    Args:
        path: of the file.
        source, target: for each of our ids theirs, -1 where there is none.
        faults: that are added to where it is damaged or of other vocabularies.

    Returns:
        None where there are faults.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"it must have at most {_MOST_BYTES} bytes, but has {path.stat().st_size}")
        return _parsed(path.read_bytes(), source, target)
    except (OSError, ValueError) as error:
        faults.append(f"{path.name} is no shortlist of this model: {error}")
        return None


def _parsed(content: bytes, source: Sequence[int], target: Sequence[int]) -> Shortlist:
    if len(content) < _HEADER.size:
        raise ValueError(f"it must have at least {_HEADER.size} bytes, but has {len(content)}")
    magic, _, first, _, offsets, ids = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise ValueError(f"it must begin with {_MAGIC:#x}, but begins with {magic:#x}")
    if len(content) != _HEADER.size + 8 * offsets + 4 * ids:
        raise ValueError(f"{offsets} offsets and {ids} ids do not make its {len(content)} bytes")
    types, outputs = max(source) + 1, max(target) + 1
    starts = np.frombuffer(content, "<u8", offsets, _HEADER.size)
    listed = np.frombuffer(content, "<u4", ids, _HEADER.size + 8 * offsets)
    if offsets != types + 1 or starts[0] != 0 or starts[-1] != ids or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"its offsets must be {types + 1}, one more than there are source pieces, and rise to {ids}")
    if first > outputs or (ids and int(listed.max()) >= outputs):
        raise ValueError(f"its ids must be below {outputs}, the number of target pieces")
    ours = np.zeros(outputs, np.int64)  # all of theirs are among ours
    for own, theirs in enumerate(target):
        if theirs >= 0:
            ours[theirs] = own
    rows = [listed[starts[one] : starts[one + 1]] if one >= 0 else listed[:0] for one in source]
    always = np.unique(np.append(ours[: int(first)], EOS))
    return Shortlist((Table.of([ours[row] for row in rows], len(target)),), always, len(target))
