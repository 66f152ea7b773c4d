"""The recipe's precision: the type of the products, and what a GPU's matrix units may do to those in float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch

Precision = Literal["float32", "tf32", "bf16", "fp16"]
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


def is_emulated(precision: Precision, device: str) -> bool:
    """Whether a device has no narrow products of its own: those of an AVX2 processor are many times slower."""
    return device == "cpu" and NARROW[precision] is not None and torch.backends.cpu.get_cpu_capability() == "AVX2"


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Decide how a GPU multiplies in float32, and put back what it did before.

    With the precision "float32" in float32, as a CPU does; otherwise in TF32, whose factors have 10 bits behind the
    point. cuDNN's recurrent networks do so unless they are told; in "bf16" and "fp16" they are what is left in float32.
    """
    before = [kind.fp32_precision for kind in PRODUCTS]
    for kind in PRODUCTS:
        kind.fp32_precision = "ieee" if precision == "float32" else "tf32"
    try:
        yield
    finally:
        for kind, value in zip(PRODUCTS, before, strict=True):
            kind.fp32_precision = value
