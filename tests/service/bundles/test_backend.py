"""The runtime and the graphs that a bundle is served with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle, add_built
from tandem.models.errors import ConfigError
from tandem.models.search import Graphs
from tandem.service.bundles.backend import backend_of, proven
from tandem.service.bundles.loading import build_engine
from tandem.service.engine import Backend
from tandem.service.runtimes import Placement, memory_of, resolve_device
from tandem.service.settings import Settings
from tandem.service.telemetry.metrics import Metrics
from tests.service.support import CopyGraphs, copying, tiny_bundle

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

    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", opener)
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


@pytest.mark.parametrize(
    ("memory", "share", "bounds"),
    [
        (150_754_000_000, 0.9, (262_144, 256, 16_384, 262_144)),  # H200
        (84_929_000_000, 0.9, (262_144, 256, 16_384, 262_144)),  # H100
        (84_929_000_000, 0.4, (114_688, 112, 7_168, 114_688)),  # shared with another
        (80_000_000_000, 0.9, (262_144, 256, 16_384, 262_144)),
        (42_298_000_000, 0.9, (131_072, 128, 8_192, 131_072)),  # A100 of 40 GB
        (25_386_000_000, 0.9, (81_920, 80, 5_120, 81_920)),  # RTX 4090
        (24_152_000_000, 0.9, (65_536, 64, 4_096, 65_536)),  # L4
        (15_655_000_000, 0.9, (49_152, 64, 3_072, 49_152)),  # T4
        (2_000_000_000, 0.9, (8_192, 64, 512, 8_192)),  # no less than on a CPU
    ],
)
def test_bounds_of_a_smaller_gpu_are_smaller(memory: int, share: float, bounds: tuple[int, ...]) -> None:
    limits = Settings(gpu_memory=share).engine_options("cuda:0", memory).limits
    found = limits.max_batch_tokens, limits.max_batch_sentences, limits.max_join_tokens, limits.max_queue_tokens
    assert found == bounds
    chosen = Settings(max_batch_sentences=200, max_join_tokens=9_999).engine_options("cuda:0", memory).limits
    assert (chosen.max_batch_sentences, chosen.max_join_tokens) == (200, 9_999)


def test_a_device_is_asked_for_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's batches, and the buffers for them, are those of its size."""
    torch = pytest.importorskip("torch")
    bundle, placed = holding(tmp_path / "de-en", "float32"), []

    def opener(opened: Bundle, runtime: str, precision: str, threads: int, placement: Placement) -> CopyGraphs:
        placed.append(placement)
        return copying(opened)

    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", opener)
    monkeypatch.setattr("tandem.service.bundles.loading.resolve_device", lambda runtime, device: "cuda:1")
    properties = {"cuda:1": SimpleNamespace(total_memory=25_386_000_000)}
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties.__getitem__)
    engine = build_engine(Settings(bundles=(bundle.path,), runtime="torch", device="cuda:1"))
    assert engine.options.limits.max_batch_sentences == placed[0].sentences == 80


def test_without_torch_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    failing: list[str] = []

    class Driver:
        """As libcuda has it, with two devices."""

        def cuInit(self, flags: int) -> int:
            return int("cuInit" in failing)

        def cuDeviceGet(self, device: Any, ordinal: int) -> int:
            device._obj.value = 40 + ordinal
            return int("cuDeviceGet" in failing)

        def cuDeviceTotalMem_v2(self, size: Any, device: Any) -> int:
            size._obj.value = {41: 25_386_000_000}[device.value]
            return int("cuDeviceTotalMem_v2" in failing)

    monkeypatch.setattr("ctypes.CDLL", lambda name: {"libcuda.so.1": Driver()}[name])
    assert memory_of("onnx", "cuda:1") == 25_386_000_000
    assert memory_of("onnx", "cpu") is None
    for failing[:] in (["cuInit"], ["cuDeviceGet"], ["cuDeviceTotalMem_v2"]):
        assert memory_of("onnx", "cuda:1") is None
    monkeypatch.setattr("ctypes.CDLL", Mock(side_effect=OSError))
    assert memory_of("onnx", "cuda:1") is None


def test_without_a_gpu_auto_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = holding(tmp_path / "de-en", "float32")
    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", lambda *_: copying(bundle))
    monkeypatch.setattr("tandem.service.bundles.loading.resolve_device", lambda runtime, device: "cpu")
    with capture_logs() as logs:
        engine = build_engine(Settings(bundles=(bundle.path,), runtime="torch", device="auto"))
    assert [entry["log_level"] for entry in logs if entry["event"] == "no_gpu"] == ["warning"]
    assert {backend.device for backend in engine.backends.values()} == {"cpu"}
