"""The proof of a model that reads two texts and a feature matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.proofs.proof import ProofSettings, verify
from tandem.models.bundle import Bundle
from tandem.service.runtimes import open_graphs
from tandem.training.data.features import read_columns
from tests.deploy.test_sources import eight_bit, folder, sources

__all__ = ["eight_bit", "folder"]


@pytest.mark.slow
def test_verify_takes_matrices(folder: Path, eight_bit: Path) -> None:
    bundle, gold = Bundle.load(eight_bit), folder / "corpora/toy/test.en"
    *columns, references = read_columns([*sources(folder), gold], bundle.feature_widths)
    # Of thirty short lines, one wrong word costs two points.
    few = ProofSettings(sentences=6, beams=(2,), batches=(1, 4), loss=10)
    proof = verify(bundle, {}, {"int8": lambda: open_graphs(bundle)}, columns, list(references), settings=few)
    assert proof.passed
    assert (proof.sentences, proof.long_sentences) == (6, 0)
    assert proof.quantised[0].same_in_batches == 1.0
    assert proof.quantised[0].identical >= 0.9
