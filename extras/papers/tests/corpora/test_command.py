"""`tandem corpus`: lists, says what to fetch, prepares; and the page that is written from the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app
from tandem.extras.papers.corpora.page import corpora_page
from tandem.extras.papers.corpora.specs import CORPORA
from tandem.extras.papers.tests.corpora.distributions import post_editing
from tandem.models.errors import ConfigError, CorpusError
from tandem.training.data.corpus import read_lines
from tests.command import succeeds
from tests.shipped import ROOT


def test_help_gives_an_example() -> None:
    assert "tandem corpus iwslt14-de-en --raw" in succeeds("corpus", "--help")


def test_without_a_name_the_corpora_are_listed() -> None:
    output = succeeds("corpus")
    assert all(corpus.name in output and corpus.title in output for corpus in CORPORA)


def test_without_files_it_says_what_to_fetch_from_where() -> None:
    output = succeeds("corpus", "wmt14-en-de")
    for wanted in ("europarl-v7.de-en.de", "https://www.statmt.org/wmt14/test-full.tgz", "test: 3,003 pairs"):
        assert wanted in output
    assert "newstest2015: 2,169 pairs (optional)" in output


def test_it_prepares_and_says_what_differs(tmp_path: Path) -> None:
    post_editing(tmp_path / "raw")
    output = succeeds("corpus", "wmt-ape-en-de", "--raw", tmp_path / "raw", "--out", tmp_path / "corpora")
    assert "warning: train should have 12,000 pairs, but has 3" in output
    assert "note: test_2017 is left out" in output
    assert len(read_lines(tmp_path / "corpora" / "wmt-ape-en-de" / "train.pe.xz")) == 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(["--raw", "."], ConfigError), (["wmt15"], ConfigError), (["gigaword", "--raw", "no-such-folder"], CorpusError)],
)
def test_what_cannot_be_done_is_an_error_of_the_tree(arguments: list[str], error: type[Exception]) -> None:
    assert isinstance(CliRunner().invoke(app, ["corpus", *arguments]).exception, error)


def test_the_page_is_written_from_the_table() -> None:
    page = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")
    assert page == corpora_page(), "run python -m tandem.extras.papers.corpora.page"
    assert re.findall(r"^## (.+)", page, re.MULTILINE) == [corpus.name for corpus in CORPORA]
