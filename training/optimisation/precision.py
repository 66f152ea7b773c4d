"""The recipe's precision: the type of the products, and what a GPU's matrix units may do to those in float32.

"auto" is the faster of float32 and bf16 where a run computes. No flag of a processor tells: with AVX-512's bf16
instructions some make twice to five times as many products a second as in float32, others half as many.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
from torch.nn import functional as F

from tandem.training.parallel import Processes

Precision = Literal["float32", "tf32", "bf16", "fp16"]
AskedPrecision = Literal["auto", "float32", "tf32", "bf16", "fp16"]
NARROW: dict[str, torch.dtype | None] = {
    "float32": None,
    "tf32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""The type of narrow products; None where they are in float32."""


_CUDNN: Any = torch.backends.cudnn
PRODUCTS: tuple[Any, ...] = (torch.backends.cuda.matmul, _CUDNN.rnn, _CUDNN.conv)
"""What multiplies in float32 on a GPU, and can be told how."""
_LEGACY: tuple[Any, ...] = (torch.backends.cuda.matmul, _CUDNN)
"""Where torch's former flag stands, which its compiler may read; torch raises where the two do not agree."""

_FASTER = 1.1
"""From this on one type counts as faster than another."""
_PROBE, _SHAPES = (64, 256, 256), ((2048, 256, 1024), (512, 256, 8000))
"""Rows, inputs and outputs of products that are measured: of a feed-forward layer, and of a vocabulary."""
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class ChosenPrecision:
    """What a run computes in.

    Attributes:
        precision: of its products.
        reason: why, where it was "auto"; else empty.
    """

    precision: Precision
    reason: str = ""


def chosen(asked: AskedPrecision, processes: Processes) -> ChosenPrecision:
    """The precision that a recipe asks for; for "auto" the first process decides for all."""
    if asked != "auto":
        return ChosenPrecision(asked)
    own = _fastest(processes.device) if processes.first else ChosenPrecision("float32")
    (narrow,) = processes.of_first(own.precision == "bf16")
    return ChosenPrecision("bf16" if narrow else "float32", own.reason)


def _fastest(device: str) -> ChosenPrecision:
    if device != "cpu":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return ChosenPrecision("bf16", "this GPU has products in bf16")
        return ChosenPrecision("float32", "this GPU has no products in bf16")
    if is_emulated("bf16", device):
        return ChosenPrecision("float32", "this processor has no products in bf16")
    times = speedup(torch.bfloat16)
    if times >= _FASTER:
        return ChosenPrecision("bf16", f"products {times:.1f} times as fast as in float32 here")
    if times * _FASTER <= 1:
        return ChosenPrecision("float32", f"products {1 / times:.1f} times as fast as in bf16 here")
    return ChosenPrecision("float32", "products as fast as in bf16 here")


def slower(asked: AskedPrecision, device: str) -> str:
    """What to tell of a precision that a recipe chose and that is not the fastest on a CPU; empty where it is."""
    if asked == "auto" or device != "cpu":
        return ""
    if is_emulated(asked, device):
        return f'this processor has no {asked}: precision = "auto" in the recipe is faster here'
    if is_emulated("bf16", device):
        return ""
    times, other = speedup(NARROW[asked] or torch.bfloat16), "bf16"
    if NARROW[asked] is not None:
        times, other = 1 / times, "float32"
    if times < _FASTER:
        return ""
    found = f"products in {other} are {times:.1f} times as fast as in {asked} here"
    return f'{found}: precision = "auto" in the recipe takes the faster'


def is_emulated(precision: AskedPrecision, device: str) -> bool:
    """Whether a device has no narrow products of its own: those of an AVX2 processor are many times slower."""
    narrow = precision != "auto" and NARROW[precision] is not None
    return device == "cpu" and narrow and torch.backends.cpu.get_cpu_capability() == "AVX2"


@cache
def speedup(narrow: torch.dtype) -> float:
    """How many times as many products a second as in float32 one thread of this CPU makes in a narrow type.

    By the thread's own processor time, the least of several by turns: neither counts what other programs take. It
    takes a third of a second, and no second on a slow processor.
    """
    with one_thread():
        wide_s, narrow_s = _least_seconds(_PROBE, narrow)
        if narrow_s < 4 * wide_s:  # else it is emulated, and would take many seconds for larger ones
            measured = [_least_seconds(shape, narrow) for shape in _SHAPES]
            wide_s, narrow_s = (sum(times) for times in zip(*measured, strict=True))
    return wide_s / narrow_s


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, torch computes in one thread; afterwards in as many as before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _least_seconds(shape: tuple[int, int, int], narrow: torch.dtype) -> tuple[float, float]:
    """Processor time of a product in float32, and of the same in a narrow type."""
    rows, inputs, outputs = shape
    kinds = torch.float32, narrow
    factors = [(torch.ones(rows, inputs, dtype=kind), torch.ones(outputs, inputs, dtype=kind)) for kind in kinds]
    wide_s, narrow_s = zip(*([_seconds(*pair) for pair in factors] for _ in range(_REPEATS)), strict=True)
    return min(wide_s), min(narrow_s)


def _seconds(x: torch.Tensor, weight: torch.Tensor) -> float:
    started = time.thread_time_ns()
    F.linear(x, weight)
    return max(time.thread_time_ns() - started, 1) / 1e9


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Take numbers below 1e-38 for 0, in this thread and in those that start within.

    The gradients of a sharp attention are full of them (DPN-S2S's, of one head, is), and processors multiply them in
    float32 up to 200 times slower than others; bf16 products take them for 0 anyway. Threads inherit this when they
    start, so that it must come before the first computation of several.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Decide how a GPU multiplies in float32, and put back what it did before.

    With the precision "float32" in float32, as a CPU does; otherwise in TF32, whose factors have 10 bits behind the
    point. cuDNN's recurrent networks do so unless they are told; in "bf16" and "fp16" they are what is left in float32.
    """
    exact = precision == "float32"
    former, before = [kind.allow_tf32 for kind in _LEGACY], [kind.fp32_precision for kind in PRODUCTS]
    _tell([not exact] * len(_LEGACY), ["ieee" if exact else "tf32"] * len(PRODUCTS))
    try:
        yield
    finally:
        _tell(former, before)


def _tell(allowed: Sequence[bool], precisions: Sequence[str]) -> None:
    """Set the former flags and then the present ones, which the former change."""
    for kind, allow in zip(_LEGACY, allowed, strict=True):
        kind.allow_tf32 = allow
    for kind, precision in zip(PRODUCTS, precisions, strict=True):
        kind.fp32_precision = precision
