"""Text that waits on disk."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.training.data import spool
from tandem.training.data.spool import Spool

LINES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=7)


@given(st.lists(LINES, max_size=4), st.integers(1, 3))
def test_as_a_list_of_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[str]], read: int
) -> None:
    expected = list(chain.from_iterable(parts))
    with pytest.MonkeyPatch.context() as patch, Spool(tmp_path_factory.mktemp("spool") / "text") as found:
        patch.setattr(spool, "CHUNK", read)
        for part in parts:
            found.extend(part)
        assert list(found) == expected
        assert [found[index] for index in range(len(found))] == expected
        assert found[1:] == expected[1:]


def test_lines_are_repeated_as_a_block(tmp_path: Path) -> None:
    with Spool(tmp_path / "text") as found:
        found.extend(["früher"])
        found.extend(["a", "", "ß\u2028"])
        found.repeat(1, 2)
        assert list(found) == ["früher", *["a", "", "ß\u2028"] * 3]
        found.repeat(3, 0)
        assert len(found) == 10


def test_the_file_goes_with_the_block(tmp_path: Path) -> None:
    with Spool(tmp_path / "text") as found:
        found.extend(["a"])
        with pytest.raises(IndexError, match="must be 0 to 0, but is 1"):
            found[1]
    assert not list(tmp_path.iterdir())
