"""Corpora that a model writes: what is dropped and why, and files that a recipe reads."""

from __future__ import annotations

import gzip
import json
import lzma
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.extras.bulk.synthetic import (
    PROVENANCE,
    Provenance,
    Sieve,
    Sifter,
    chrf,
    parallel_lines,
    recipe_table,
    write_pairs,
    write_provenance,
)
from tandem.models.config import load_dataclass
from tandem.models.errors import CorpusError
from tandem.training.data.config import CorpusConfig
from tandem.training.data.corpus import file_names, read_parallel

MADE = Provenance("distilled", "de-en@2", "MIT", ("a/train.de.xz",), ("de", "en"), {}, Sieve(), 2, {"copied": 1})


@pytest.mark.parametrize(
    ("text", "translation", "reference", "reason"),
    [
        ("ein Hund", "a dog", "a dog", ""),
        ("ein Hund", "", "a dog", "empty"),
        ("ein Hund", "Ein hund", "a dog", "copied"),
        ("Tom Smith", "Tom Smith", "Tom Smith", ""),
        ("Tom Smith", "Tom Smith", None, "copied"),
        ("ein Hund", "a b c d e f g", "a dog", "length_ratio"),
        ("ein Hund bellt", "a a a a", "a dog barks", "loop"),
        ("ein Hund", "something else", "a dog", "unlike_reference"),
    ],
)
def test_what_is_dropped(text: str, translation: str, reference: str | None, reason: str) -> None:
    sifter = Sifter(Sieve(max_length_ratio=3.0, min_chrf=30.0))
    assert sifter.keep(text, translation, reference) is not bool(reason)
    assert dict(sifter.dropped) == ({reason: 1} if reason else {})


def test_chrf_is_of_the_whole_range() -> None:
    assert chrf("a dog barks", "a dog barks") == pytest.approx(100)
    assert chrf("xyz", "a dog barks") < 5


def test_files_come_back_and_the_table_is_a_recipes(tmp_path: Path) -> None:
    folder = tmp_path / "distilled"
    folder.mkdir()
    assert write_pairs(folder, ("de", "en"), iter([("ein Hund", "a dog"), ("zwei", "two")])) == 2
    write_provenance(folder, MADE)
    assert json.loads((folder / PROVENANCE).read_text())["dropped"] == {"copied": 1}
    for kind, tagged in (("distilled", False), ("back-translated", True)):
        (table,) = tomllib.loads(recipe_table("distilled", replace(MADE, kind=kind)))["data"]["corpora"]
        corpus = load_dataclass(CorpusConfig, table, "table")
        assert (corpus.back_translated, corpus.splits) == (tagged, ("train",))
        columns = read_parallel([tmp_path / path for path in corpus.paths("train")])
        assert columns == (["ein Hund", "zwei"], ["a dog", "two"])
    assert sorted(path.name for path in folder.iterdir()) == ["synthetic.json", "train.de.xz", "train.en.xz"]
    assert file_names(("en", "en")) == ("source", "target")


def test_nothing_appears_where_writing_fails(tmp_path: Path) -> None:
    def broken() -> object:
        yield "a", "b"
        raise CorpusError("no more")

    with pytest.raises(CorpusError):
        write_pairs(tmp_path, ("de", "en"), broken())  # type: ignore[arg-type]
    assert not list(tmp_path.glob("train.*.xz"))


def test_parallel_lines_of_any_form(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("eins \u2028 zwei\nzwei\n", encoding="utf-8")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"one\ntwo"))
    (tmp_path / "c.xz").write_bytes(lzma.compress(b"un\ndeux\ntrois\n"))
    assert list(parallel_lines([tmp_path / "a.txt", tmp_path / "b.gz"]))[1] == ("zwei", "two")
    with pytest.raises(CorpusError, match=r"no counterpart; it has 3 lines, but .* has 2"):
        list(parallel_lines([tmp_path / "b.gz", tmp_path / "c.xz"]))
    (tmp_path / "d.txt").write_bytes(b"fine\n\xff\n")
    with pytest.raises(CorpusError, match=r"line 2: not UTF-8"):
        list(parallel_lines([tmp_path / "d.txt"]))
    with pytest.raises(CorpusError, match="cannot be read"):
        list(parallel_lines([tmp_path / "none"]))
