"""The proof passes where it should, and finds what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.proofs.proof import ProofSettings, proof_table, verify
from tandem.models.errors import CorpusError
from tandem.models.search import Graphs
from tandem.models.search.graphs import Array, GraphSpecs, vocabulary_size
from tandem.training.data.dataset import text_path
from tests.training.export.conftest import Exported

SETTINGS = ProofSettings(sentences=10, long=3, long_tokens=9, beams=(1, 3), batches=(1, 4), held_out=10)


class Wrong:
    """Graphs whose step takes every ordinary token for the next."""

    def __init__(self, graphs: Graphs) -> None:
        self._graphs = graphs
        self.specs: GraphSpecs = graphs.specs

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        outputs = self._graphs.run(graph, inputs)
        if graph == "step":
            tokens, ordinary = outputs["tokens"], vocabulary_size(self.specs) - 4
            outputs["tokens"] = np.where(tokens < 4, tokens, 4 + (tokens - 3) % ordinary)
        return outputs


@pytest.fixture
def text(prepared: Path) -> tuple[list[str], list[str]]:
    source, target = (text_path(prepared, "toy", "test", side).read_text("utf-8") for side in ("source0", "target"))
    return source.splitlines(), target.splitlines()


def test_sound_runtimes_pass(exported: Exported, text: tuple[list[str], list[str]]) -> None:
    source, target = text
    proof = verify(
        exported.bundle,
        {"onnx": lambda: exported.onnx("float32"), "torchscript": lambda: exported.script},
        {"int8": lambda: exported.onnx("int8")},
        [source],
        target,
        settings=SETTINGS,
    )
    assert (proof.sentences, proof.long_sentences) == (10, 3)
    assert [one.compared for one in proof.exact] == [40, 40]
    assert all(one.passed and one.identical + one.ties == 40 for one in proof.exact)
    (quantised,) = proof.quantised
    assert quantised.metric == "BLEU"
    assert quantised.sentences == 10
    assert quantised.same_in_batches == 1.0
    assert json.loads(json.dumps(proof.mapping()))["exact"][0]["runtime"] == "onnx"
    table = proof_table(proof)
    assert "torchscript" in table
    assert "BLEU" in table


def test_a_wrong_runtime_fails_and_is_shown(one: Exported, text: tuple[list[str], list[str]]) -> None:
    proof = verify(one.bundle, {"wrong": lambda: Wrong(one.onnx("float32"))}, {}, [text[0]], settings=SETTINGS)
    assert not proof.passed
    (exact,) = proof.exact
    assert exact.exceptions
    assert exact.exceptions[0].expected != exact.exceptions[0].found
    assert "FAILED" in proof_table(proof)


def test_without_references_float32_judges(one: Exported, text: tuple[list[str], list[str]]) -> None:
    proof = verify(one.bundle, {}, {"same": lambda: one.onnx("float32")}, [text[0]], settings=SETTINGS)
    (quantised,) = proof.quantised
    assert (quantised.metric, quantised.identical, quantised.rescored) == ("", 1.0, 0.0)
    assert proof.passed


@pytest.mark.parametrize(("lines", "references"), [([], []), ([[]], []), ([["a"]], ["x", "y"]), ([[" "]], [])])
def test_text_must_be_there_and_parallel(one: Exported, lines: list[list[str]], references: list[str]) -> None:
    with pytest.raises(CorpusError, match="source lines"):
        verify(one.bundle, {}, {}, lines, references, settings=SETTINGS)
