"""Sessions of ONNX Runtime on the CPU: how they run, and with which operators."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import onnxruntime as ort  # type: ignore[import-untyped,unused-ignore]

from tandem.models.errors import BundleError
from tandem.service.ports import extras, load

_log = logging.getLogger("tandem.runtimes")
_PROVIDERS = ["CPUExecutionProvider"]
_CPU_FLAGS = Path("/proc/cpuinfo")
_FOLDER = "session.model_external_initializers_file_folder_path"


@dataclass(frozen=True, slots=True)
class Operators:
    """Operators for ONNX Runtime that an extra brings, and what writes them into graphs.

    Attributes:
        library: compiled.
        fuse: gives the graph of a file with them, serialised, and how many of each it has; empty where it has none.
    """

    library: Path
    fuse: Callable[[Path], tuple[bytes, Counter[str]]]


OpenOperators: TypeAlias = Callable[[], Operators | None]
"""Opens the operators; gives None where they were not built, or are switched off."""


def native_operators() -> Operators | None:
    """The operators that an extra brings to this installation."""
    opened = (load(extra.operators)() for extra in extras() if extra.operators)
    found: Operators | None = next(filter(None, opened), None)
    return found


def open_session(path: Path, threads: int, operators: Operators | None) -> tuple[ort.InferenceSession, Counter[str]]:
    """The session of a graph's file.

    Args:
        path: of the graph.
        threads: of one call.
        operators: which the session gets where the graph has something for them and they load.

    Returns:
        The session, and how many of each operator it has.

    Raises:
        BundleError: the runtime cannot load the graph.
    """
    if operators is not None:
        try:
            return _fused(path, threads, operators)
        except Exception as error:  # the runtime's own exceptions share no base
            _log.warning("native operators are left out: %s", error)
    try:
        return _session(str(path), threads, None), Counter()
    except Exception as error:
        raise BundleError(path, [f"ONNX Runtime cannot load the graph: {error}"]) from error


def _fused(path: Path, threads: int, operators: Operators) -> tuple[ort.InferenceSession, Counter[str]]:
    model, found = operators.fuse(path)
    if not found:
        return _session(str(path), threads, None), found
    return _session(model, threads, operators.library, path.parent), found


def _session(
    model: str | bytes, threads: int, operators: Path | None, folder: Path | None = None
) -> ort.InferenceSession:
    """A graph's session, exact where that takes something and can be had."""

    def opened(exact: bool) -> ort.InferenceSession:
        options = session_options(threads, exact=exact)
        if operators is not None:
            options.register_custom_ops_library(str(operators))
        if folder is not None:
            options.add_session_config_entry(_FOLDER, str(folder.resolve()))
        return ort.InferenceSession(model, options, providers=_PROVIDERS)

    if not has_vnni():
        try:
            return opened(exact=True)
        except Exception:  # the runtime's own exceptions share no base
            # It cannot make a weight unsigned that several products share: then their sums are not exact.
            pass
    return opened(exact=False)


def has_vnni() -> bool:
    """Whether the processor adds products of bytes in 32 bits; no, where the system does not say."""
    try:
        flags = _CPU_FLAGS.read_text(encoding="utf-8").split()
    except OSError:
        return False
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(flags)


def session_options(threads: int, *, exact: bool = False) -> ort.SessionOptions:
    """How sessions run: in order, on so many threads, without plans for shapes that change at every step.

    Args:
        threads: of one call.
        exact: make weights unsigned as a graph is loaded, for processors without VNNI. There products of signed bytes
            are added in pairs in 16 bits, which overflow; those of a shortlist's entries still do. (Measured with AVX2
            on the Tatoeba test set: BLEU 47.73 without, and with it the 48.04 of VNNI. With VNNI it changes no bit, and
            a step of `de-en` at 32 sentences takes 14.5 ms instead of 8.3.)
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_mem_pattern = False  # shapes change at every step: a plan per shape would only be made and kept
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores belong to other workers too
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options
