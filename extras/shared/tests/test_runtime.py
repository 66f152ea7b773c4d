"""What runs a bundle where nobody waits, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.shared.runtime import RuntimeOptions, check_count
from tandem.models.errors import ConfigError, CorpusError
from tandem.service.runtimes import Placement
from tests.service.support import tiny_bundle


def test_a_gpu_has_precisions_and_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tandem.extras.shared.runtime.resolve_device", lambda runtime, device: {"cuda": "cuda:0"}.get(device, device)
    )
    monkeypatch.setattr("tandem.extras.shared.runtime.usable_cores", lambda: 6)
    shown = {
        ("onnx", "int8", "cpu"): ("onnx int8", 6),
        ("torch", "int8", "cpu"): ("torch float32", 6),
        ("torch", "int8", "cuda"): ("torch float16 on cuda:0", 1),
        ("torch", "bf16", "cuda"): ("torch bf16 on cuda:0", 1),
    }
    for (runtime, precision, device), expected in shown.items():
        options = RuntimeOptions(runtime=runtime, precision=precision, device=device)  # type: ignore[arg-type]
        assert (str(options), options.processes(0)) == expected
        assert options.processes(3) == 3


def test_the_sentences_of_a_batch_reach_a_gpu_and_are_refused_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Placement] = []
    options = RuntimeOptions("torch", device="auto", max_batch_sentences=40)
    for there in ("cuda:0", "cpu"):
        monkeypatch.setattr("tandem.extras.shared.runtime.resolve_device", lambda runtime, device, there=there: there)
        options.placed().open_graphs(None, lambda *how: opened.append(how[-1]))  # type: ignore[arg-type]
    assert opened == [Placement("cuda:0", 40), Placement("cpu")]
    for runtime, device in (("torch", "cpu"), ("onnx", "auto"), ("onnx", "cuda")):
        with pytest.raises(ConfigError, match=f"is for --runtime torch .* these are {runtime} and {device}"):
            RuntimeOptions(runtime, device=device, max_batch_sentences=1).placed()  # type: ignore[arg-type]


def test_a_file_for_each_source_is_asked_for(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path)
    check_count(bundle, [tmp_path])
    with pytest.raises(CorpusError, match="has 1 sources, but 2 are given"):
        check_count(bundle, [tmp_path, tmp_path])


def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="device 'cuda:77' is no GPU of this machine"):
        RuntimeOptions("torch", device="cuda:77").placed()
    assert RuntimeOptions("onnx", device="auto").placed().device == "cpu"
