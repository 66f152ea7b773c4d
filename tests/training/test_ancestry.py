"""What a run's weights came from is remembered, and named by the bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.bundle import Corpus
from models.errors import CheckpointError
from training.ancestry import FILE, merged_corpora, read_ancestry, write_ancestry

ONE, TWO = (Corpus(name, "MIT", "Zoë", "https://example.org/", 10) for name in ("one", "two"))


def test_what_was_written_comes_back_until_a_run_begins_from_scratch(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert read_ancestry(run) == ()
    write_ancestry(run, ())
    write_ancestry(run, (ONE, TWO))
    assert read_ancestry(run) == (ONE, TWO)
    write_ancestry(run, ())
    assert read_ancestry(run) == ()


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"name": "one"}]', "3"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(CheckpointError, match=FILE):
        read_ancestry(tmp_path)


def test_every_corpus_once() -> None:
    assert merged_corpora([ONE, TWO, replace(ONE, segments=30), replace(TWO, licence="CC0")]) == (
        replace(ONE, segments=30),
        TWO,
        replace(TWO, licence="CC0"),
    )
