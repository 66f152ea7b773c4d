"""ONNX Runtime: on the CPU the default, and all that a small installation needs; on a GPU for what has no torch."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when the library loads: this service phones nobody

import onnxruntime as ort  # type: ignore[import-untyped,unused-ignore]

from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError, ConfigError, DeviceLost
from tandem.models.search import Array, GraphSpec, GraphSpecs
from tandem.service.runtimes.placement import CPU, Placement
from tandem.service.runtimes.sessions import native_operators, open_session, session_options

Device: TypeAlias = tuple[str, int]
"""Its kind, ``cpu`` or ``cuda``, and its number."""
_ENTRIES = "entries"  # the graph that looks up what the entries of a shortlist need
_KEPT = 4  # of a thread's batches, what their entries need
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_LIBRARY = ctypes.CDLL(None)
_FAILURE = re.compile(r"(?:CUDA failure|CUDA error|CUBLAS failure \d+:) (\w+)")
# Errors of CUDA that every later call of the process returns too, as it documents them, and those of broken hardware:
# names by number, for either is told.
_LASTING = {
    "46": "cudaErrorDevicesUnavailable",
    "214": "cudaErrorECCUncorrectable",
    "220": "cudaErrorNvlinkUncorrectable",
    "700": "cudaErrorIllegalAddress",
    "702": "cudaErrorLaunchTimeout",
    "710": "cudaErrorAssert",
    "714": "cudaErrorHardwareStackError",
    "715": "cudaErrorIllegalInstruction",
    "716": "cudaErrorMisalignedAddress",
    "717": "cudaErrorInvalidAddressSpace",
    "718": "cudaErrorInvalidPc",
    "719": "cudaErrorLaunchFailure",
    "999": "cudaErrorUnknown",
}
_LASTING_NAMES = {*_LASTING.values(), "CUBLAS_STATUS_EXECUTION_FAILED"}


class OnnxGraphs:
    """One inference session per graph; ``run`` may be called from several threads at once.

    The graphs of a bundle keep their weights in one external file, which the runtime maps into memory: its pages are
    shared by the sessions, and only what is repacked for the matrix kernels exists per session. What few requests
    need (sampling, alignments, a search without the bundle's shortlist) is opened when first used, and everything after
    ``rest``.

    Args:
        bundle: that holds the graphs.
        precision: of them.
        threads: of one call.
        placement: on the CPU, or a GPU such as ``cuda:0``.

    Raises:
        BundleError: the bundle does not have these graphs.
        ConfigError: the device cannot run them.
    """

    def __init__(self, bundle: Bundle, precision: str, threads: int, placement: Placement = CPU) -> None:
        kind, _, number = placement.device.partition(":")
        self._bundle, self._precision = bundle, precision
        self._device: Device = kind, int(number or 0)
        self._operators = native_operators() if placement.native and kind == "cpu" else None
        self.specs: GraphSpecs = bundle.graph_specs(precision)
        self._threads = threads
        self._sessions: dict[str, _Session | _ListedSession] = {}
        self._opening = threading.Lock()
        self._fused: dict[str, Mapping[str, int]] = {}
        listed = bundle.shortlist is not None and "step_shortlist" in self.specs
        for graph in ("encode", "step_shortlist" if listed else "step"):
            self._session(graph)
        if {"HistoryAttention", "PackedHistoryAttention"} & self._fused.get(graph, {}).keys():
            # They read what a row sees and nothing else.
            steps = {name: replace(spec, free_slots=True) for name, spec in self.specs.items() if spec.of_kind("pool")}
            self.specs = {**self.specs, **steps}

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Every output of a graph, by name. Raises DeviceLost where the device does not work any more."""
        try:
            return (self._sessions.get(graph) or self._session(graph)).run(inputs)
        except Exception as error:  # the runtime's own exceptions share no base
            if gone := _lost(self._device, error):
                raise gone from error
            raise

    @property
    def fused(self) -> Mapping[str, Mapping[str, int]]:
        """How many of our own operators the graphs have that were opened so far, by their names; none without them."""
        return {graph: found for graph, found in self._fused.items() if found}

    @cached_property
    def footprint(self) -> int:
        """Bytes of the graphs' files, and about what their sessions take."""
        folder = self._bundle.graph_path(self._precision, "encode").parent
        return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())

    @property
    def resting(self) -> bool:
        """Whether nothing is open."""
        return not self._sessions

    def rest(self) -> None:
        """Let go of the sessions; those that run just now end first."""
        with self._opening:
            self._sessions = {}
        if hasattr(_LIBRARY, "malloc_trim"):  # glibc keeps two thirds of what they took, for whom it may concern
            _LIBRARY.malloc_trim(0)

    def _session(self, graph: str) -> _Session | _ListedSession:
        with self._opening:
            if graph not in self._sessions:
                session = _Session(self._open(graph), self.specs[graph])
                listed = bool(session.looked_up)
                self._sessions[graph] = _ListedSession(session, self._open(_ENTRIES)) if listed else session
            return self._sessions[graph]

    def _open(self, graph: str) -> ort.InferenceSession:
        path, (kind, number) = self._bundle.graph_path(self._precision, graph), self._device
        if kind != "cpu":
            return _open_there(path, self._threads, number)
        session, self._fused[graph] = open_session(path, self._threads, self._operators)
        return session


class _Session:
    """A graph's session.

    Attributes:
        looked_up: its inputs that no spec has: what the graph ``entries`` looks up for those of a shortlist.
    """

    def __init__(self, session: ort.InferenceSession, spec: GraphSpec) -> None:
        self._session = session
        # An exporter drops inputs that the architecture does not use, and feeding one of those is an error.
        self._inputs = [item.name for item in self._session.get_inputs()]
        # Outputs go by their order: a file cannot give the new state the name that the old one has among the inputs.
        self._outputs = [tensor.name for tensor in spec.outputs]
        self.looked_up = {*self._inputs} - {tensor.name for tensor in spec.inputs}

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        results = self._session.run(None, {name: inputs[name] for name in self._inputs})
        return dict(zip(self._outputs, results, strict=True))


class _ListedSession:
    """A step over a shortlist. What its entries need is looked up where they change, not at every step.

    Search gives the same array of entries for as long as the sentences of a batch are the same.
    """

    def __init__(self, step: _Session, entries: ort.InferenceSession) -> None:
        self._step, self._entries, self._held = step, entries, threading.local()
        self._names = [item.name for item in entries.get_outputs()]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return self._step.run({**inputs, **self._needed_by(inputs["entries"])})

    def _needed_by(self, entries_W: Array) -> dict[str, Array]:
        held: list[tuple[Array, dict[str, Array]]] = self._held.__dict__.setdefault("lists", [])
        for known_W, tensors in held:
            if known_W is entries_W:
                return tensors
        tensors = dict(zip(self._names, self._entries.run(None, {"entries": entries_W}), strict=True))
        held.insert(0, (entries_W, tensors))
        del held[_KEPT:]
        return tensors


def device_name(name: str) -> str:
    """The GPU that a setting means, such as ``cuda:0``. Raises ConfigError where this library is built without CUDA."""
    if _CUDA not in ort.get_available_providers():
        raise ConfigError(f"device {name!r} needs onnxruntime-gpu: this ONNX Runtime is built without CUDA")
    return name if ":" in name else f"{name}:0"


def total_memory(name: str) -> int | None:
    """Bytes that a GPU such as ``cuda:0`` has, by its driver, as this library does not say; None where neither does."""
    device, size = ctypes.c_int(), ctypes.c_size_t()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), int(name.partition(":")[2]))
        or driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    )
    return None if failed else size.value


def _lost(device: Device, error: Exception) -> DeviceLost | None:
    """What to raise where an error says that a GPU fails in a way that lasts; None where it does not, as without room.

    The library tells it in words only, and has no call that asks the device itself.
    """
    kind, number = device
    if kind == "cpu":
        return None
    causes = [_LASTING.get(cause, cause) for cause in _FAILURE.findall(str(error))]
    lasting = [cause for cause in causes if cause in _LASTING_NAMES]
    return DeviceLost(f"cuda:{number} does not work any more: {lasting[0]}") if lasting else None


def _open_there(path: Path, threads: int, number: int) -> ort.InferenceSession:
    """On a GPU, products of float32 in float32. What the library cannot use it leaves out, and says so in its log."""
    cuda = (_CUDA, {"device_id": number, "use_tf32": 0})
    try:
        session = ort.InferenceSession(str(path), session_options(threads), providers=[cuda, _CPU])
    except Exception as error:
        raise BundleError(path, [f"ONNX Runtime cannot load the graph: {error}"]) from error
    if session.get_providers()[0] != _CUDA:
        raise ConfigError(
            f"ONNX Runtime cannot use cuda:{number}: look at nvidia-smi, and whether the CUDA and cuDNN that"
            f" onnxruntime-gpu {ort.__version__} needs are installed"
        )
    return session
