"""`tandem analyse` of a bundle that learnt something."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tandem.models.bundle import Vocabularies, VocabularyFile
from tests.command import succeeds
from tests.deploy.small import SMALL, VOCABULARY, Make, Write, make, text
from tests.test_end_to_end import bundle, one_thread, runtime, seeded, tandem

__all__ = ["bundle", "make", "one_thread", "runtime", "seeded", "text"]


def test_analyse_writes_tables_and_figures(bundle: Path, runtime: str) -> None:
    folder = bundle.parent.parent
    arguments = ("--source", "test.de", "--limit", "20", "--heat-maps", "1", "--runtime", runtime)
    output = tandem(folder, "analyse", "bundles/copy", *arguments)
    written = output.split()
    assert written[0] == "analysis/copy/analysis.json"
    assert all((folder / name).stat().st_size > 0 for name in written)
    assert "analysis/copy/sentence-1/cnn-san.svg" in written
    result = json.loads((folder / written[0]).read_text(encoding="utf-8"))
    assert {(row["path"], row["over"]) for row in result["entropy"]} == {
        (path, over) for path in ("cnn", "san") for over in ("cnn", "san")
    }


def test_a_source_of_feature_vectors_is_drawn_too(
    make: Make, text: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features have no words to look at; their attention has columns by number."""
    monkeypatch.chdir(tmp_path)
    file = VocabularyFile("all.words", "words")
    sizes = {"source_vocabularies": [VOCABULARY.size, 0], "target_vocabulary": VOCABULARY.size, "features": [0, 3]}
    vocabularies = Vocabularies((file,), file, features=(0, 3))
    seeing = make("seeing", "de", "zxx", config=SMALL["multisource"] | sizes, vocabularies=vocabularies)
    np.save(tmp_path / "test.npy", np.ones((12, 2, 3), np.float32))
    sources = ("--source", text("de"), "--source", tmp_path / "test.npy")
    written = succeeds("analyse", seeing, *sources, "--heat-maps", 1, "--runtime", "torch").split()
    names = [name for name in written if name.endswith(".png")]
    assert len(names) >= 2 and all((tmp_path / name).stat().st_size > 0 for name in names)
