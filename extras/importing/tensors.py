"""The tensors of somebody else's model, by name: headers first, each tensor when it is asked for.

safetensors files hold no code. ``pytorch_model.bin`` is a pickle: it is opened with PyTorch's reader for weights only,
which knows nothing but tensors, and nowhere else in this project.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from tandem.extras.importing.plan import Shape
from tandem.models.bundle.files import unsafe

_SAFE, _PICKLED = "model.safetensors", "pytorch_model.bin"
_FLOATS = ("F64", "F32", "F16", "BF16")


class Tensors(ABC):
    """Named tensors of some files.

    Attributes:
        shapes: of each.
        files: that they lie in.
    """

    shapes: Mapping[str, Shape]
    files: tuple[Path, ...]

    @abstractmethod
    def read(self, name: str) -> Tensor:
        """One tensor in float32, on the CPU."""

    @property
    def numbers(self) -> int:
        """Of all tensors together."""
        return sum(torch.Size(shape).numel() for shape in self.shapes.values())


class SafeTensors(Tensors):
    """One or several safetensors files.

    Raises:
        ValueError: one is not readable, or holds something else than floating-point numbers; every fault is named.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._opened: dict[str, Any] = {}
        shapes: dict[str, Shape] = {}
        faults = []
        for path in files:
            try:
                opened: Any = safetensors.safe_open(path, framework="pt")
            except (OSError, safetensors.SafetensorError) as error:
                faults.append(f"{path.name} is not a readable safetensors file: {error}")
                continue
            for name in opened.keys():  # noqa: SIM118 (not a mapping)
                part = opened.get_slice(name)
                shapes[name], self._opened[name] = tuple(part.get_shape()), opened
                if part.get_dtype() not in _FLOATS:
                    faults.append(f"{name} must be of {', '.join(_FLOATS)}, but is {part.get_dtype()}")
        if faults:
            raise ValueError("; ".join(faults))
        self.shapes = shapes

    def read(self, name: str) -> Tensor:
        tensor: Tensor = self._opened[name].get_tensor(name).float()
        return tensor


class PickledTensors(Tensors):
    """One or several files of ``torch.save``, of which nothing but tensors is read.

    Raises:
        ValueError: one is not readable, or holds anything else.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._tensors: dict[str, Tensor] = {}
        faults = []
        for path in files:
            try:
                content = _load(path)
            except Exception as error:  # of a reader of pickles, whose own exception's module is not imported here
                faults.append(f"{path.name} is not a readable file of weights alone: {str(error).splitlines()[0]}")
                continue
            if not isinstance(content, Mapping) or not all(isinstance(one, Tensor) for one in content.values()):
                faults.append(f"{path.name} must hold tensors by name, and nothing else")
                continue
            self._tensors |= content
        if faults:
            raise ValueError("; ".join(faults))
        self.shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def read(self, name: str) -> Tensor:
        return self._tensors[name].float()


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # the old form of these files cannot be mapped
        return torch.load(path, map_location="cpu", weights_only=True)


def open_tensors(folder: Path) -> Tensors:
    """The tensors of a Hugging Face folder: safetensors where there are some, else PyTorch's files of weights.

    Raises:
        ValueError: there are none, or they cannot be read; the message names every fault.
    """
    for name, opener in ((_SAFE, SafeTensors), (_PICKLED, PickledTensors)):
        files = _files(folder, name)
        if files:
            return opener(files)
    raise ValueError(f"there is neither {_SAFE} nor {_PICKLED}")


def _files(folder: Path, name: str) -> list[Path]:
    """The file itself, or those that an index names; none where there is neither."""
    if (folder / name).is_file():
        return [folder / name]
    index = folder / f"{name}.index.json"
    if not index.is_file():
        return []
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{index.name} does not say where the tensors lie: {error!r}") from error
    faults = [f"{index.name} names {one!r}, which is no file beside it" for one in names if _foreign(folder, one)]
    if faults:
        raise ValueError("; ".join(faults))
    return [folder / one for one in names]


def _foreign(folder: Path, name: object) -> bool:
    plain = isinstance(name, str) and unsafe(name) is None and "/" not in name
    return not plain or not (folder / str(name)).is_file()


def tensors_of(folder: Path, faults: list[str]) -> Tensors | None:
    """The same; None, with a fault, where there are none."""
    try:
        return open_tensors(folder)
    except ValueError as error:
        faults.append(str(error))
        return None
