"""A device without one: tensors that pose as lying there, and operations for which the host would wait for it.

Tensors that pose have shapes and types, and no values: an operation on tensors of two devices is an error, and so is
looking at a value. The device is one that every build of torch knows enough of for a backward pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DEVICE = torch.device("lazy:0")
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "equal")
"""Operations for which a GPU has to be waited for; a mask as an index is one more, and what reaches the host."""


class Waits(TorchDispatchMode):
    """Counts the operations that would wait for a GPU, of ``seen`` operations; copies are of tensors that pose."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts = Counter[str]()
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        name = func.overloadpacket.__name__
        indices = args[1] if name in ("index", "index_put", "index_put_", "_index_put_impl_") else ()
        self.counts.update([name] * (name in WAITS or any(x is not None and x.dtype == torch.bool for x in indices)))
        made = func(*args, **(kwargs or {}))
        self.counts.update([name] * (DEVICE in devices((args, kwargs)) and torch.device("cpu") in devices(made)))
        return made


def devices(values: Any) -> set[torch.device]:
    """Of all tensors in it."""
    return {value.device for value in tree_leaves(values) if isinstance(value, Tensor)}


@contextmanager
def posing(root: nn.Module) -> Iterator[FakeTensorMode]:
    """Within, all that a module holds poses as the device's; a module's own note of its device says so."""
    with FakeTensorMode(allow_non_fake_inputs=False) as mode:
        made: dict[int, Tensor] = {}  # what is shared stays so
        for module in root.modules():
            if hasattr(module, "device"):
                module.device = DEVICE  # type: ignore[assignment]
            for own in (module._parameters, module._buffers):
                for name, tensor in own.items():
                    if tensor is not None and id(tensor) not in made:
                        there = torch.empty(tensor.shape, dtype=tensor.dtype, device=DEVICE)
                        made[id(tensor)] = nn.Parameter(there) if isinstance(tensor, nn.Parameter) else there
                    own[name] = None if tensor is None else made[id(tensor)]  # type: ignore[assignment]
        assert devices([*root.parameters(), *root.buffers()]) == {DEVICE}
        yield mode


@pytest.fixture
def no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch knows no narrow types for the device that is posed as."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)
