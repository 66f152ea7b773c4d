"""State that stays on a device between the steps of ONNX Runtime: bound from step to step, copied when looked at.

What is uploaded at a step are the control vectors. Where sentences join, or places that few use are given up, memory
and state go to the host, through the general search's own functions, and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped,unused-ignore]

from models.search import Array
from models.search.graphs import RESIDENT_CONTROLS

Device: TypeAlias = tuple[str, int]
"""Its kind, ``cpu`` or ``cuda``, and its number."""


class Held:
    """A tensor on a device, which can be looked at and written like an array.

    Attributes:
        value: it.
        shape: that search knows; a pool's last slots may be yet to come, and are 0.
    """

    def __init__(self, value: Any, device: Device, shape: Sequence[int] | None = None) -> None:
        self.value, self._device, self.shape = value, device, tuple(value.shape() if shape is None else shape)

    @classmethod
    def of(cls, array: Array, device: Device) -> Self:
        """An array's copy on the device."""
        return cls(ort.OrtValue.ortvalue_from_numpy(np.array(array, order="C"), *device), device)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        there = self.value.numpy()
        array = np.zeros(self.shape, there.dtype)
        array[tuple(map(slice, there.shape))] = there
        return array if dtype is None else array.astype(dtype)

    def __getitem__(self, places: Any) -> Array:
        found: Array = np.asarray(self)[places]
        return found

    def __setitem__(self, places: Any, values: Any) -> None:
        array = np.asarray(self)
        array[places] = values
        self.value = ort.OrtValue.ortvalue_from_numpy(array, *self._device)


class HeldPool(Held):
    """A pool, into which the graph of the next step writes.

    Attributes:
        claimed: place, slot and row of each entry to write.
    """

    claimed: tuple[Array, ...] = ()

    def grown(self, shape: Sequence[int]) -> HeldPool:
        """The same with more slots."""
        return HeldPool(self.value, self._device, shape)

    def claim(self, *claimed: Array) -> None:
        """Place, slot and row of each entry that the next step makes."""
        self.claimed = claimed


class BoundSession:
    """A session whose inputs may be held on its device, and whose outputs stay there where that is asked for."""

    def __init__(self, session: ort.InferenceSession, device: Device) -> None:
        self._session, self._device = session, device
        self.inputs = [item.name for item in session.get_inputs()]
        self._outputs = [item.name for item in session.get_outputs()]

    def run(self, inputs: Mapping[str, Any], kept: Sequence[bool]) -> list[Any]:
        """Its outputs in order: ``Held`` where kept, else arrays."""
        binding = self._session.io_binding()
        for name in self.inputs:
            given = inputs[name]
            if isinstance(given, Held):
                binding.bind_ortvalue_input(name, given.value)
            else:
                binding.bind_cpu_input(name, np.asarray(given, order="C"))
        for name, keep in zip(self._outputs, kept, strict=True):
            binding.bind_output(name, *(self._device if keep else ("cpu", 0)))
        self._session.run_with_iobinding(binding)
        found = zip(binding.get_outputs(), kept, strict=True)
        return [Held(value, self._device) if keep else value.numpy() for value, keep in found]


def controls(pool: HeldPool) -> dict[str, Array]:
    """What the resident graph reads beside the step's inputs, which is the same for all pools of a batch."""
    values = (np.array([pool.shape[-2]], np.int64), *pool.claimed)
    return dict(zip(RESIDENT_CONTROLS, values, strict=True))
