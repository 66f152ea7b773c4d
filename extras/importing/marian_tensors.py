"""Marian's weights as tensors: of ``.npz`` files and of its binary ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tandem.extras.importing.marian import BESIDE, CONFIG, FORM, chosen_weights, read_folder, read_yaml
from tandem.extras.importing.marian_binary import MarianBinary
from tandem.extras.importing.model import Asked, ForeignModel
from tandem.extras.importing.tensors import Tensors
from tandem.models.architectures.transformer import TransformerConfig


def read_marian(folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A folder of Marian's files, understood and checked but for its weights' values.

    Args:
        folder: holds the files.
        asked: what the user says.
        faults: every reason why it cannot be imported is added.

    Returns:
        None where there are faults.
    """
    path = chosen_weights(folder, faults)
    tensors = _opened(path, faults) if path else None
    if path is None or tensors is None:
        return None
    read = read_folder(folder, tensors.config, f"{path.name} {CONFIG}", asked, faults)
    if read is None:
        return None
    return ForeignModel(
        form=FORM,
        config=TransformerConfig(**read.common),
        plan=read.plan,
        tensors=tensors,
        beside=(*BESIDE, *(name for name in tensors.shapes if name.endswith("_QuantMultA"))),
        files=read.files,
        source=read.source,
        target=read.target,
        sources=read.sources,
        targets=read.targets,
        tags="target" if read.tagged else "",
        decoding=read.decoding,
        shortlist=read.shortlist,
    )


class NpzTensors(Tensors):
    """The arrays of an ``.npz`` file, opened so that nothing but numbers is read.

    Attributes:
        config: what the file says of the model.

    Raises:
        ValueError: not such a file, or it says nothing of the model.
    """

    def __init__(self, path: Path) -> None:
        self.files = (path,)
        try:
            self._arrays = np.load(path, allow_pickle=False)
            read = {name: self._arrays[name].shape for name in self._arrays.files if name != CONFIG}
            text = bytes(self._arrays[CONFIG].astype(np.uint8)).rstrip(b"\x00")
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise ValueError(f"{path.name} is not a readable file of Marian's: {error}") from error
        self.shapes = {name: tuple(shape) for name, shape in read.items()}
        faults: list[str] = []
        self.config = read_yaml(text, f"{path.name} {CONFIG}", faults)
        if faults:
            raise ValueError("; ".join(faults))

    def read(self, name: str) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(self._arrays[name], np.float32))


class BinaryTensors(Tensors):
    """The arrays of a binary file, those of 8 bits as the numbers that they stand for.

    Attributes:
        config: what the file says of the model.

    Raises:
        ValueError: not such a file, or it says nothing of the model.
    """

    def __init__(self, path: Path) -> None:
        self.files = (path,)
        self._binary = MarianBinary.open(path)
        self.shapes = self._binary.shapes
        self.config = self._binary.config()

    def read(self, name: str) -> Tensor:
        return torch.from_numpy(self._binary.floats(name))


def _opened(path: Path, faults: list[str]) -> NpzTensors | BinaryTensors | None:
    try:
        return NpzTensors(path) if path.suffix == ".npz" else BinaryTensors(path)
    except ValueError as error:
        faults.append(str(error))
        return None
