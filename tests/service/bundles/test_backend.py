"""The runtime and the graphs that a bundle is served with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from models.bundle import Bundle, add_built
from models.search import Graphs
from service.bundles.backend import backend_of, proven
from service.bundles.loading import build_engine
from service.engine import Backend
from service.settings import Settings
from service.telemetry.metrics import Metrics
from tests.service.support import copying, tiny_bundle

INT8, FLOAT32 = Backend("onnx", "int8"), Backend("onnx", "float32")
TRACED, EAGER = Backend("torchscript", "float32"), Backend("torch", "float32")
PROOF = {
    "exact": [{"runtime": "onnx float32", "passed": True}],
    "quantised": [{"runtime": "onnx int8", "passed": True}],
}


def holding(folder: Path, *precisions: str, **changes: Any) -> Bundle:
    """A bundle with files where graphs of these precisions would lie."""
    made = tiny_bundle(folder, **changes)
    for precision in precisions:
        add_built(made.path, f"onnx/{precision}", {"encode.onnx": b"", "step.onnx": b""})
    return Bundle.load(made.path)


@pytest.mark.parametrize(
    ("held", "proof", "wish", "found"),
    [
        (("int8",), {}, ("onnx", "auto"), INT8),
        (("float32",), {}, ("onnx", "auto"), FLOAT32),
        (("float32",), PROOF, ("onnx", "auto"), FLOAT32),
        (("int8", "float32"), PROOF, ("onnx", "auto"), INT8),
        (("int8", "float32"), {}, ("onnx", "auto"), FLOAT32),
        (("int8", "float32"), {"quantised": [{"runtime": "onnx int8", "passed": False}]}, ("onnx", "auto"), FLOAT32),
        (("int8", "float32"), {"quantised": "none"}, ("onnx", "auto"), FLOAT32),
        (("int8", "float32"), {}, ("onnx", "int8"), INT8),
        (("int8", "float32"), PROOF, ("onnx", "float32"), FLOAT32),
        (("int8",), PROOF, ("onnx", "float32"), FLOAT32),  # opening says how to build it
        ((), {}, ("onnx", "auto"), INT8),
        (("int8",), PROOF, ("torch", "auto"), EAGER),
        (("int8",), PROOF, ("torchscript", "int8"), TRACED),
    ],
)
def test_the_rule(
    tmp_path: Path, held: tuple[str, ...], proof: dict[str, Any], wish: tuple[str, str], found: Backend
) -> None:
    assert backend_of(holding(tmp_path, *held, proof=proof), *wish) == found


def test_what_a_proof_must_say(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", "float32", proof=PROOF)
    assert [proven(bundle, precision) for precision in ("int8", "float32", "bf16")] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "told"), [("runtime", "'onnx', 'torchscript' or 'torch'"), ("precision", "'int8', 'float32' or 'auto'")]
)
def test_a_value_that_is_none_is_told_those_that_are(name: str, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Settings.model_validate({name: "measured"})


@pytest.mark.anyio
async def test_the_service_shows_what_each_bundle_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = holding(tmp_path, "int8", "float32", proof=PROOF)
    holding(tmp_path, "float32", name="exact")
    opened: list[tuple[str, str, str, int]] = []

    def opener(bundle: Bundle, runtime: str, precision: str, threads: int) -> Graphs:
        opened.append((bundle.manifest.name, runtime, precision, threads))
        return copying(both)

    monkeypatch.setattr("service.bundles.loading.open_graphs", opener)
    engine = build_engine(Settings(bundles=(tmp_path,), threads=3))
    assert opened == [("de-en", "onnx", "int8", 3), ("exact", "onnx", "float32", 3)]
    shown = {name: (backend.runtime, backend.precision) for name, backend in engine.backends.items()}
    assert shown == {"de-en": ("onnx", "int8"), "exact": ("onnx", "float32")}
    metrics = Metrics()
    metrics.watch(engine)
    text, _ = metrics.render()
    assert b'precision="float32,int8",runtime="onnx"' in text
