"""The proof of a model of words, which writes those that it lacks as the service does."""

from __future__ import annotations

from pathlib import Path

from tandem.extras.proofs.proof import ProofSettings, verify
from tandem.extras.refining.tests.test_unknown_words import bundle, folder
from tandem.models.bundle import Bundle
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import TorchGraphs

__all__ = ["bundle", "folder"]


def test_the_proof_measures_text(bundle: Bundle, folder: Path) -> None:
    source, reference = ((folder / f"test.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en"))
    settings = ProofSettings(sentences=4, long=0, beams=(2,), batches=(4,), held_out=40)
    graphs = TorchGraphs(load_bundle_model(bundle))
    proof = verify(bundle, {}, {"torch": lambda: graphs}, [source], reference, settings=settings)
    assert proof.quantised[0].value == proof.quantised[0].float32_value > 80
