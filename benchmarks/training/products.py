"""The floor under a step: its matrix products alone.

torch's FLOP counter names the operators that multiply matrices and counts their operations. Every product of a step is
noted with the shapes, strides and order of its operands, and made again and again on operands of that form in bfloat16,
with nothing in between. torch.profiler was left aside: it gives the time that each product took within the step, which
holds what the step's own memory traffic does to it, and that is not a floor.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.flop_counter import flop_registry

from benchmarks.runner import seconds_of

Form = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
SIDE = 2048  # of the large product


class Products(TorchDispatchMode):
    """Notes the matrix products that are made while it is active.

    Attributes:
        flops: operations of all of them, a multiplication and an addition as two.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self._calls: Counter[tuple[Any, Any, tuple[Any, ...]]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func._overloadpacket
        if packet in flop_registry:
            self.flops += flop_registry[packet](*args, **(kwargs or {}), out_val=result)
            leaves, tree = tree_flatten((args, kwargs or {}))
            self._calls[func, tree, tuple(_form(leaf) for leaf in leaves)] += 1
        return result

    def __len__(self) -> int:
        return sum(self._calls.values())

    def seconds(self, repeats: int) -> float:
        """All products once again: for each form the median of ``repeats`` times, and these added up."""
        total = 0.0
        for (func, tree, leaves), count in self._calls.items():
            args, kwargs = tree_unflatten([_operand(leaf) for leaf in leaves], tree)
            total += count * statistics.median(seconds_of(partial(func, *args, **kwargs), repeats))
        return total


class _Operand(tuple[Any, ...]):
    """A tensor's form, told apart from tuples that are arguments."""


def _form(leaf: Any) -> Any:
    return _Operand((tuple(leaf.shape), leaf.stride(), leaf.dtype)) if isinstance(leaf, Tensor) else _hashable(leaf)


def _hashable(leaf: Any) -> Any:
    return tuple(leaf) if isinstance(leaf, list) else leaf


def _operand(leaf: Any) -> Any:
    if not isinstance(leaf, _Operand):
        return leaf
    shape, stride, dtype = leaf
    narrow = torch.bfloat16 if dtype.is_floating_point else dtype
    return torch.empty_strided(shape, stride, dtype=narrow).fill_(0.5)


def floor(steps: Sequence[Callable[[], None]], repeats: int) -> dict[str, float]:
    """What whole updates take, and what their products take.

    Args:
        steps: make an update each, the same one every time.
        repeats: of which medians are taken.
    """
    step = product = 0.0
    flops = count = 0
    for make in steps:
        step += statistics.median(seconds_of(make, repeats))
        with Products() as products:
            make()
        product += products.seconds(repeats)
        flops, count = flops + products.flops, count + len(products)
    side = torch.full((SIDE, SIDE), 0.5, dtype=torch.bfloat16)
    peak = 2 * SIDE**3 / statistics.median(seconds_of(lambda: side @ side, repeats))
    return {
        "updates": len(steps),
        "step_ms": 1000 * step / len(steps),
        "products": count / len(steps),
        "products_ms": 1000 * product / len(steps),
        "products_share": product / step,
        "gflop": flops / 1e9 / len(steps),
        "step_gflop_per_s": flops / 1e9 / step,
        "products_gflop_per_s": flops / 1e9 / product,
        "large_product_gflop_per_s": peak / 1e9,
        "peak_share": flops / step / peak,
    }
