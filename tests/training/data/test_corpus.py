"""Reading corpora: what is a line, and which file and line a fault is in."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.errors import CorpusError
from tandem.training.data.corpus import file_digest, parallel_chunks, read_lines, read_parallel


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_reads_plain_and_compressed(tmp_path: Path, suffix: str, pack: object) -> None:
    path = tmp_path / f"train.de{suffix}"
    path.write_bytes(pack("eins\n\nÜber\u2028drei\x0bvier\n".encode()))  # type: ignore[operator]
    assert read_lines(path) == ["eins", "", "Über\u2028drei\x0bvier"]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"))))
def test_lines_come_back(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "x"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert read_lines(path) == lines


def test_last_line_needs_no_end(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\nb")
    assert read_lines(tmp_path / "x") == ["a", "b"]


def test_invalid_utf8_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "train.de").write_bytes(b"gut\nauch gut\nschl\xffecht\n")
    with pytest.raises(CorpusError, match=r"train\.de, line 3: not UTF-8 .*0xff"):
        read_lines(tmp_path / "train.de")


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="absent: cannot be read"):
        read_lines(tmp_path / "absent")
    with pytest.raises(CorpusError, match="absent: cannot be read"):
        file_digest(tmp_path / "absent")
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"text\n" * 100)[:-20])
    (tmp_path / "no.gz").write_bytes(b"not gzip")
    for name in ("cut.xz", "no.gz"):
        with pytest.raises(CorpusError, match=f"{name}: damaged or cut short"):
            read_lines(tmp_path / name)


def test_files_that_are_not_parallel(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n")
    (tmp_path / "b").write_text("1\n2\n")
    with pytest.raises(CorpusError, match=r"a, line 3: no counterpart; it has 3 lines, but .*b has 2"):
        read_parallel([tmp_path / "b", tmp_path / "a"])


def test_pieces_of_parallel_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n4\n5\n")
    (tmp_path / "b").write_text("1\n2\n3\n")
    assert list(parallel_chunks([tmp_path / "a"], 2)) == [(["1", "2"],), (["3", "4"],), (["5"],)]
    assert list(parallel_chunks([], 2)) == []
    read = parallel_chunks([tmp_path / "b", tmp_path / "a"], 2)
    assert next(read) == (["1", "2"], ["1", "2"])
    with pytest.raises(CorpusError, match=r"a, line 4: no counterpart; it has 5 lines, but .*b has 3"):
        next(read)
