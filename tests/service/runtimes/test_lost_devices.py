"""ONNX Runtime tells in words whether a GPU is lost; a process whose GPU is lost must not go on with it."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException  # type: ignore[import-untyped,unused-ignore]
from structlog.testing import capture_logs

from tandem.models.errors import DeviceLost
from tandem.models.search import Array
from tandem.service.engine import DecodingFailed
from tandem.service.runtimes import Placement, onnx
from tandem.service.runtimes.onnx import OnnxGraphs
from tests.service.engine.dispatchers import bench, job, plain
from tests.service.support import PATIENCE, CopyGraphs

pytestmark = pytest.mark.anyio
NODE = "Non-zero status code returned while running MatMul node. Name:'/MatMul' Status Message: "
AT = " ; GPU=0 ; hostname=x ; file=/onnxruntime_src/gpu_data_transfer.cc ; line=73 ; expr=cudaMemcpyAsync(dst, src, n);"
LOST = (
    f"[ONNXRuntimeError] : 1 : FAIL : CUDA failure 719: unspecified launch failure{AT}",
    f"[ONNXRuntimeError] : 1 : FAIL : CUDA failure 46: all CUDA-capable devices are busy or unavailable{AT}",
    f"{NODE}CUDA error cudaErrorIllegalAddress:an illegal memory access was encountered",
    f"{NODE}CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED{AT}",
    f"CUDNN failure 4: CUDNN_STATUS_INTERNAL_ERROR{AT} CUDA failure 700: an illegal memory access was encountered{AT}",
)
NOT_LOST = (
    f"{NODE}Failed to allocate memory for requested buffer of size 700",
    f"[ONNXRuntimeError] : 1 : FAIL : CUDA failure 2: out of memory{AT}",
    f"{NODE}CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED{AT}",
    f"{NODE}CUDA error cudaErrorNoKernelImageForDevice:no kernel image is available for execution on the device",
    f"{NODE}CUDA failure 1: invalid argument{AT}",
    "the step crashed in line 719",
)


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, device: str = "cuda:0") -> OnnxGraphs:
    """Graphs whose steps fail."""
    copying = CopyGraphs(9)

    class Session:
        """As onnxruntime has it, over graphs that copy."""

        def __init__(self, graph: str) -> None:
            self._graph = graph

        def get_inputs(self) -> list[Any]:
            return [SimpleNamespace(name=spec.name) for spec in copying.specs[self._graph].inputs]

        def run(self, _: None, inputs: dict[str, Array]) -> list[Array]:
            if self._graph == "step":
                raise error
            return list(copying.run(self._graph, inputs).values())

    bundle = SimpleNamespace(
        path="de-en", shortlist=None, graph_specs=lambda _: copying.specs, graph_path=lambda precision, graph: graph
    )
    monkeypatch.setattr(f"{onnx.__name__}.open_session", lambda path, threads, operators: (Session(path), {}))
    monkeypatch.setattr(f"{onnx.__name__}._open_there", lambda path, threads, number: Session(path))
    return OnnxGraphs(cast("Any", bundle), "float32", 1, Placement(device))


@pytest.mark.parametrize("kind", [Fail, RuntimeException, RuntimeError])
@pytest.mark.parametrize("words", LOST)
def test_errors_that_last_are_a_lost_device(monkeypatch: pytest.MonkeyPatch, words: str, kind: type[Exception]) -> None:
    inputs: dict[str, Any] = dict.fromkeys((spec.name for spec in CopyGraphs(9).specs["step"].inputs), 0)
    with pytest.raises(DeviceLost, match=r"cuda:1 does not work any more: cu\w+$|CUBLAS_STATUS_EXECUTION_FAILED"):
        failing(monkeypatch, kind(words), "cuda:1").run("step", inputs)
    with pytest.raises(kind, match=r"failure|error"):  # which no CPU has
        failing(monkeypatch, kind(words), "cpu").run("step", inputs)


@pytest.mark.parametrize("words", NOT_LOST)
def test_other_errors_are_those_of_a_step(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    inputs: dict[str, Any] = dict.fromkeys((spec.name for spec in CopyGraphs(9).specs["step"].inputs), 0)
    with pytest.raises(Fail):
        failing(monkeypatch, Fail(words)).run("step", inputs)


async def test_the_engine_gives_up_a_device_that_onnx_runtime_has_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(plain(failing(monkeypatch, Fail(LOST[0])))) as running:
        told = threading.Event()
        running.dispatcher.on_loss = told.set
        with capture_logs():
            outcomes = await running.outcomes(job(4, 5), job(6))
            assert await asyncio.to_thread(told.wait, PATIENCE)
        assert [type(one) for one in outcomes] == [DecodingFailed] * 2
        assert running.dispatcher.draining
        assert str(running.dispatcher.lost) == "cuda:0 does not work any more: cudaErrorLaunchFailure"
