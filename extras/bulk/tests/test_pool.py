"""How much is read before something is written: what a sudden end may cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.bulk.pool import BYTES_OF_A_BLOCK, LINES_OF_A_BLOCK, translate_rows
from tandem.extras.bulk.sources import InputRow
from tandem.extras.bulk.tests.support import Shouting


@pytest.mark.parametrize(
    ("size", "lines"), [(9, LINES_OF_A_BLOCK), (1_024, BYTES_OF_A_BLOCK // 1_024), (2 * BYTES_OF_A_BLOCK, 1)]
)
def test_blocks_hold_a_bounded_piece_of_work(bundle: Path, size: int, lines: int) -> None:
    rows = [InputRow((b"a" * size,), size) for _ in range(2 * lines + 1)]
    found = [len(block) for block, _ in translate_rows(Shouting(bundle), rows, 1)]
    assert found == [lines, lines, 1]


def test_a_block_is_translated_before_the_next_is_read(bundle: Path) -> None:
    rows = iter([InputRow((b"a",), 1)] * 3 * LINES_OF_A_BLOCK)
    blocks = translate_rows(Shouting(bundle), rows, 1)
    next(blocks)
    assert sum(1 for _ in rows) == 2 * LINES_OF_A_BLOCK
