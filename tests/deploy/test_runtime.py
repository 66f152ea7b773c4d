"""What runs a bundle where nobody waits: on which device, and what a lost device means for files."""

from __future__ import annotations

from typing import NoReturn

import pytest

from deploy.bulk import BulkOptions, BulkTranslator
from deploy.runtime import RuntimeOptions
from models.bundle import Bundle
from models.errors import ConfigError, DeviceLost
from models.search import GraphSpecs, SearchingGraphs
from models.steps.loading import load_bundle_model
from models.steps.torch_graphs import TorchGraphs
from service.runtimes import Placement
from tests.deploy.small import WORDS, Make, make

__all__ = ["make"]
LINES = [" ".join(WORDS[(start * step) % 8] for step in range(1, 2 + start % 7)) for start in range(40)]


def test_a_gpu_has_precisions_and_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.runtime.resolve_device", lambda runtime, device: {"cuda": "cuda:0"}.get(device, device))
    monkeypatch.setattr("deploy.runtime.usable_cores", lambda: 6)
    shown = {
        ("onnx", "int8", "cpu"): ("onnx int8", 6),
        ("torch", "int8", "cpu"): ("torch float32", 6),
        ("torch", "int8", "cuda"): ("torch float16 on cuda:0", 1),
        ("torch", "bf16", "cuda"): ("torch bf16 on cuda:0", 1),
    }
    for (runtime, precision, device), expected in shown.items():
        options = BulkOptions(runtime=runtime, precision=precision, device=device)  # type: ignore[arg-type]
        assert (str(options), options.processes(0)) == expected
        assert options.processes(3) == 3


def test_the_sentences_of_a_batch_reach_a_gpu_and_are_refused_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Placement] = []
    options = RuntimeOptions("torch", device="auto", max_batch_sentences=40)
    for there in ("cuda:0", "cpu"):
        monkeypatch.setattr("deploy.runtime.resolve_device", lambda runtime, device, there=there: there)
        options.placed().open_graphs(None, lambda *how: opened.append(how[-1]))  # type: ignore[arg-type]
    assert opened == [Placement("cuda:0", 40), Placement("cpu")]
    for runtime, device in (("torch", "cpu"), ("onnx", "auto"), ("onnx", "cuda")):
        with pytest.raises(ConfigError, match=f"is for --runtime torch .* these are {runtime} and {device}"):
            RuntimeOptions(runtime, device=device, max_batch_sentences=1).placed()  # type: ignore[arg-type]


def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="device 'cuda:77' is no GPU of this machine"):
        RuntimeOptions("torch", device="cuda:77").placed()
    assert RuntimeOptions("onnx", device="auto").placed().device == "cpu"


def test_a_lost_device_ends_the_work(make: Make) -> None:
    """Lines that could not be decoded for it are not bad lines."""

    class Lost(SearchingGraphs):
        slots = 1

        def __init__(self, bundle: Bundle, *_: object) -> None:
            self._general = TorchGraphs(load_bundle_model(bundle))

        @property
        def specs(self) -> GraphSpecs:
            return self._general.specs

        def start_batch(self, *_: object, **__: object) -> NoReturn:
            raise DeviceLost("cuda:0 does not work any more")

        run = start_batch

    with pytest.raises(DeviceLost):
        BulkTranslator(make("one", "de"), BulkOptions(sentences=False), Lost).translate_block(LINES)
