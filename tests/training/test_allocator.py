"""Who trains on a CPU with glibc's allocator is told of a faster one."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.allocator import ADVICE, advice

GLIBC = "7f00-7f01 r-xp 00000000 08:01 17 /usr/lib/x86_64-linux-gnu/libc.so.6\n"


@pytest.mark.parametrize(
    ("mapped", "said"),
    [
        (GLIBC, ADVICE),
        (GLIBC + "7f02-7f03 r-xp 0 08:01 18 /usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4.5.10\n", None),
        ("7f02-7f03 r-xp 0 08:01 18 /usr/lib/libjemalloc.so.2\n" + GLIBC, None),
        ("7f02-7f03 r-xp 0 08:01 18 /lib/ld-musl-x86_64.so.1\n", None),
        (GLIBC + "7f02-7f03 r-xp 0 08:01 18 /opt/libtcmalloc/torch.so\n", ADVICE),
    ],
)
def test_advice_is_for_glibc_alone(tmp_path: Path, mapped: str, said: str | None) -> None:
    (tmp_path / "maps").write_text(mapped)
    assert advice(tmp_path / "maps") == said


def test_where_nothing_tells_nothing_is_advised(tmp_path: Path) -> None:
    assert advice(tmp_path / "maps") is None
