"""What a run's weights came from is remembered, and named by the bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tandem.models.bundle import SCRATCH, Corpus, Training
from tandem.models.errors import CheckpointError
from tandem.training.data.ancestry import FILE, merged_corpora, read_ancestry, together, write_ancestry

ONE, TWO = (Corpus(name, "MIT", "Zoë", "https://example.org/", 10) for name in ("one", "two"))


def test_what_was_written_comes_back_until_a_run_begins_from_scratch(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert read_ancestry(run) == SCRATCH
    write_ancestry(run, SCRATCH)
    began = Training((ONE, TWO), {"name": "first"}, 300, 4_000, 5.5)
    write_ancestry(run, began)
    assert read_ancestry(run) == replace(began, recipe={})
    write_ancestry(run, SCRATCH)
    assert read_ancestry(run) == SCRATCH


@pytest.mark.parametrize(("before", "seconds"), [(12.5, 20.0), (0.0, 0.0)])
def test_a_bundle_counts_what_it_began_from(before: float, seconds: float) -> None:
    """How long it took in all is unknown where one part's time is."""
    own = Training((replace(ONE, segments=3),), {"name": "tuned"}, 20, 600, 7.5)
    began = Training((ONE, TWO), {"name": "first"}, 100, 2_000, before)
    assert together([own, began]) == Training((ONE, TWO), {"name": "tuned"}, 120, 2_600, seconds)
    assert together([own, SCRATCH]) == own


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"corpora": [{"name": "one"}]}', "3"])
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
