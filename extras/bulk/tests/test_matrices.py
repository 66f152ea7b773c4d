"""Bundles that read feature matrices beside text: files of both, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.run import Request, translate_files
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.errors import CorpusError
from tests.deploy.test_sources import folder, sources

__all__ = ["folder"]
TORCH = BulkOptions("torch", "float32")


def test_every_source_tells_its_words(folder: Path, tmp_path: Path) -> None:
    """Features alone determine the two words in the middle."""
    translator = BulkTranslator(folder / "bundle", TORCH)
    translate_files(translator, Request(tuple(sources(folder)), tmp_path / "out.en"))
    found = (tmp_path / "out.en").read_text(encoding="utf-8").splitlines()
    expected = (folder / "corpora/toy/test.en").read_text(encoding="utf-8").splitlines()
    assert len(found) == len(expected) == 30
    assert sum(one == other for one, other in zip(found, expected, strict=True)) >= 28


def test_what_does_not_fit_the_sources_is_refused(folder: Path) -> None:
    german, features, french = sources(folder)
    translator = BulkTranslator(folder / "bundle", TORCH)
    np.save(folder / "wide.npy", np.zeros((30, 2, 8), np.float32))
    for files, fault in (
        ((german, features), "has 3 sources, but 2 are given"),
        ((features, german, french), r"test\.npy: text is expected here, not feature vectors"),
        ((german, french, german), r"test\.fr: not a readable .npy array"),
        ((german, folder / "wide.npy", french), r"wide\.npy: feature vectors must have the width 7, but have 8"),
    ):
        with pytest.raises(CorpusError, match=fault):
            translate_files(translator, Request(files))
