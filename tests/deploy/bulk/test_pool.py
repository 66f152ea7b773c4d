"""How much is read before something is written: what a sudden end may cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.bulk.pool import BYTES_OF_A_WINDOW, LINES_OF_A_WINDOW, Pool
from deploy.bulk.sources import Row
from tests.deploy.bulk.support import Shouting


@pytest.mark.parametrize(
    ("size", "lines"), [(9, LINES_OF_A_WINDOW), (1_024, BYTES_OF_A_WINDOW // 1_024), (2 * BYTES_OF_A_WINDOW, 1)]
)
def test_windows_hold_a_bounded_piece_of_work(bundle: Path, size: int, lines: int) -> None:
    rows = [Row((b"a" * size,), size) for _ in range(2 * lines + 1)]
    with Pool(Shouting(bundle), 1) as pool:
        found = [len(window) for window in pool.windows(rows, lambda _: None)]
    assert found == [lines, lines, 1]
