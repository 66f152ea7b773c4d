"""The runtime and the graphs that a bundle is served with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from models.bundle import Bundle, add_built
from models.errors import ConfigError
from models.search import Graphs
from service.bundles.backend import backend_of, proven
from service.bundles.loading import build_engine
from service.engine import Backend
from service.runtimes import Placement, resolve_device
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
    ("name", "told"),
    [
        ("runtime", "'onnx', 'torchscript' or 'torch'"),
        ("precision", "'int8', 'float32', 'float16', 'bf16' or 'auto'"),
    ],
)
def test_a_value_that_is_none_is_told_those_that_are(name: str, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Settings.model_validate({name: "measured"})


@pytest.mark.anyio
async def test_the_service_shows_what_each_bundle_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = holding(tmp_path, "int8", "float32", proof=PROOF)
    holding(tmp_path, "float32", name="exact")
    opened: list[tuple[str, str, str, int]] = []

    def opener(bundle: Bundle, runtime: str, precision: str, threads: int, placement: Placement) -> Graphs:
        assert placement.device == "cpu"
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


def test_a_gpu_computes_in_narrow_types_and_the_cpu_does_not(tmp_path: Path) -> None:
    bundle = holding(tmp_path / "both", "int8", "float32")
    for asked, found in (("auto", "float16"), ("float32", "float32"), ("bf16", "bf16"), ("float16", "float16")):
        backend = backend_of(bundle, "torch", asked, "cuda:1")
        assert backend == Backend("torch", found, "cuda:1")
        assert str(backend) == f"torch {found} on cuda:1"
    with pytest.raises(ConfigError, match="int8 graphs run on the CPU"):
        backend_of(bundle, "torch", "int8", "cuda:0")
    for runtime in ("torch", "onnx"):
        with pytest.raises(ConfigError, match="precision bf16 needs runtime torch and a GPU"):
            backend_of(bundle, runtime, "bf16")


def test_devices_belong_to_the_runtimes_that_can_use_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_device("onnx", "auto") == resolve_device("onnx", "cpu") == resolve_device("torch", "cpu") == "cpu"
    with pytest.raises(ConfigError, match="runtime must be torch or onnx where device is 'cuda', but is 'torchscript'"):
        resolve_device("torchscript", "cuda")
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ConfigError, match="'cuda' needs onnxruntime-gpu"):
        resolve_device("onnx", "cuda")
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CUDAExecutionProvider"])
    assert [resolve_device("onnx", name) for name in ("cuda", "cuda:1")] == ["cuda:0", "cuda:1"]
    with pytest.raises(ConfigError, match="bf16 needs torch"):
        backend_of(holding(tmp_path / "both", "int8"), "onnx", "bf16", "cuda:0")
    for wrong in ("gpu", "cuda:", "cuda:x", "cpu:0"):
        with pytest.raises(ValidationError, match="device"):
            Settings(device=wrong)


def test_bounds_are_sized_by_the_device_where_they_are_not_set() -> None:
    settings = Settings(runtime="torch")
    cpu, gpu = settings.engine_options(), settings.engine_options("cuda:0")
    assert gpu.workers == 1
    assert (cpu.limits.max_batch_tokens, cpu.limits.max_batch_sentences, cpu.limits.max_join_tokens) == (8192, 64, 512)
    for name in ("max_batch_tokens", "max_batch_sentences", "max_join_tokens", "max_queue_tokens"):
        assert getattr(gpu.limits, name) > getattr(cpu.limits, name)
    chosen = Settings(max_batch_sentences=7, max_queue_tokens=99, workers=3).engine_options("cuda:0")
    assert (chosen.limits.max_batch_sentences, chosen.limits.max_queue_tokens, chosen.workers) == (7, 99, 3)


def test_without_a_gpu_auto_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = holding(tmp_path / "de-en", "float32")
    monkeypatch.setattr("service.bundles.loading.open_graphs", lambda *_: copying(bundle))
    monkeypatch.setattr("service.bundles.loading.resolve_device", lambda runtime, device: "cpu")
    with capture_logs() as logs:
        engine = build_engine(Settings(bundles=(bundle.path,), runtime="torch", device="auto"))
    assert [entry["log_level"] for entry in logs if entry["event"] == "no_gpu"] == ["warning"]
    assert {backend.device for backend in engine.backends.values()} == {"cpu"}
