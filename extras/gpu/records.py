"""The static buffers of what a model keeps: memory by slot, row state, pools laid out by position.

What an architecture keeps is read from the declarations of its records (models.architectures.records): nothing here
knows which one it is.

Shape suffixes: B slots, K rows of a slot, R = B x K rows, L target positions, P = L x K pool slots, N chosen slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from tandem.extras.gpu.sizes import Shape, Sizes
from tandem.extras.gpu.transfer import upload
from tandem.models.architectures.protocol import Update
from tandem.models.architectures.records import Memory, State
from tandem.models.search.graphs import Array, TensorSpec, source_specs
from tandem.models.search.model import encode_inputs
from tandem.models.steps.torch_graphs import AnyModel, EncodeGraph, sample_sources


class RecordBuffers(nn.Module):
    """Memory and state of one model in tensors allocated once, where the model lies.

    Args:
        model: prepared for inference.
        beam_size: K.
        sizes: the last bucket of each axis is what is allocated.

    Attributes:
        sources: the model's sources as search knows them.
        device: where everything lies.
        dtype: of the weights, and so of pools and row state.
        pooled: whether the state has pools.
    """

    def __init__(self, model: AnyModel, beam_size: int, sizes: Sizes) -> None:
        super().__init__()
        self._rows, self._slots, self._length = beam_size, sizes.sentences[-1], sizes.target[-1]
        self.device, self.dtype = (first := next(model.parameters())).device, first.dtype
        with torch.no_grad():
            sample = sample_sources(model, 1, 1)
            self._memory: Memory = model.encode(sample)
            self._state: State = model.init_state(self._memory, 1)
            self._encode = EncodeGraph(model, self._memory, self._state)
            self.sources: tuple[TensorSpec, ...] = source_specs({"encode": self._encode.spec})
            self.pooled = any(kind == "pool" for kind, _, _ in self._kept())
            self._allocate(sizes.source[-1])
            # A slot never taken holds some sentence: attention over a memory of nothing would make NaN, which is slow.
            some = tuple(source.values[0].cpu().numpy() for source in sample)
            self.put(torch.arange(self._slots, device=self.device), self.encode([some] * self._slots))

    def _allocate(self, longest: int) -> None:
        dtypes = {name: tensor.dtype for name, _, tensor in self._memory.tensors()}
        for spec in self._memory_specs():
            others = (int(axis[6:]) if axis.startswith("fixed:") else longest for axis in spec.axes[1:])
            self._register(spec.name, (self._slots, *others), dtypes[spec.field])
        for kind, name, tensor in self._kept():
            if kind == "rows":
                shape = (self._slots * self._rows, *tensor.shape[1:])
            else:
                shape = (self._slots, *tensor.shape[1:-2], self._length * self._rows, tensor.size(-1))
            self._register(f"state.{name}", shape, tensor.dtype)

    def _register(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        zeros = torch.zeros(shape, dtype=dtype, device=self.device)
        self.register_buffer(_attribute(name), zeros, persistent=False)

    def _of(self, name: str) -> Tensor:
        return self.get_buffer(_attribute(name))

    def _memory_specs(self) -> tuple[TensorSpec, ...]:
        return self._encode.spec.outputs_of_kind("memory")

    def _kept(self) -> Iterator[tuple[str, str, Tensor]]:
        """Kind, name and sample of every tensor of the state that search does not make itself."""
        for name, item, tensor in self._state.tensors():
            if item.metadata["kind"] in ("rows", "pool"):
                yield item.metadata["kind"], name, tensor

    def encode(self, sources: Sequence[tuple[Array, ...]]) -> dict[str, Tensor]:
        """What the model derives from sentences, by name, for :meth:`put`.

        Args:
            sources: of each sentence: ids S or features S x D, within the buffers' size.
        """
        given = encode_inputs({"encode": self._encode.spec}, sources)
        return self.encoded([upload(given[spec.name], self.device) for spec in self._encode.spec.inputs])

    def encoded(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        """The same from what :meth:`inputs` returns, on the device."""
        outputs = (spec.name for spec in self._encode.spec.outputs)
        return dict(zip(outputs, self._encode(*inputs), strict=True))

    def inputs(self, sources: Sequence[tuple[Array, ...]], count: int, lengths: Sequence[int]) -> list[Array]:
        """What encoding reads of sentences: sources padded to these lengths, and their own lengths.

        Args:
            sources: of each sentence.
            count: of sentences; those that are missing have sources of one token.
            lengths: one for each source.
        """
        found: list[Array] = []
        for spec, own, length in zip(self.sources, zip(*sources, strict=True), lengths, strict=True):
            values = np.full((count, length, *spec.fixed), spec.padding, np.dtype(spec.dtype))
            for row, one in zip(values, own, strict=False):
                row[: len(one)] = one
            found += [values, np.array([*map(len, own)] + [1] * (count - len(own)), np.int64)]
        return found

    def put(self, slot_N: Tensor, encoded: Mapping[str, Tensor]) -> None:
        """Set up slots as they are before the first symbol, with what :meth:`encode` made for a sentence each."""
        for spec in self._memory_specs():
            buffer, made = self._of(spec.name), encoded[spec.name]
            fitted = buffer.new_full((slot_N.size(0), *buffer.shape[1:]), spec.padding)
            # Sources are padded in blocks when they are encoded, perhaps to more than there is room for.
            shared = tuple(slice(min(sizes)) for sizes in zip(made.shape, buffer.shape, strict=True))
            shared = (slice(slot_N.size(0)), *shared[1:])
            fitted[shared] = made[shared]
            buffer.index_copy_(0, slot_N, fitted)
        self._start(slot_N, encoded)

    def _start(self, slot_N: Tensor, encoded: Mapping[str, Tensor]) -> None:
        row_M = (slot_N[:, None] * self._rows + torch.arange(self._rows, device=self.device)).flatten()
        for kind, name, _ in self._kept():
            buffer, first = self._of(f"state.{name}"), encoded.get(f"init.{name}")
            if kind == "pool":
                buffer.index_fill_(0, slot_N, 0)  # what nobody sees is multiplied by 0, which does not mend a NaN
            elif first is None:
                buffer.index_fill_(0, row_M, 0)
            else:
                buffer.index_copy_(0, row_M, first[: slot_N.size(0)].repeat_interleave(self._rows, dim=0))

    def taken(self, slot_N: Tensor, sources: Sequence[int]) -> Memory:
        """A copy of the memory of chosen slots, cut to so many positions of each source."""
        whole = self.memory(Shape(self._slots, tuple(sources), self._length))
        return whole.select(slot_N)

    def memory(self, shape: Shape) -> Memory:
        """The memory of the first slots, as views cut to the shape."""
        values = {}
        for spec in self._memory_specs():
            buffer = self._of(spec.name)
            for axis, role in enumerate(spec.axes):
                if role == "sentence":
                    buffer = buffer.narrow(axis, 0, shape.sentences)
                elif role.startswith("source"):
                    buffer = buffer.narrow(axis, 0, shape.sources[int(role[6:])])
            values[spec.field] = buffer
        return type(self._memory).rebuild(self._memory, values)

    def state(self, shape: Shape, position_R: Tensor, history_RP: Tensor) -> State:
        """The state of the first slots' rows, as views cut to the shape."""
        values = {"position_R": position_R, "history_RP": history_RP}
        rows, slots = shape.sentences * self._rows, shape.target * self._rows
        for kind, name, _ in self._kept():
            buffer = self._of(f"state.{name}")
            values[name] = buffer[:rows] if kind == "rows" else buffer[: shape.sentences].narrow(-2, 0, slots)
        return type(self._state).rebuild(self._state, values)

    def advance(self, update: Update, position_B: Tensor, parent_R: Tensor) -> None:
        """Write what a step returned: pool entries at their position, row state in the order of the new rows.

        Args:
            update: row state and pool entries, R x ... .
            position_B: of the symbol that was read.
            parent_R: the row that each new row continues, counted over all.
        """
        row_R = torch.arange(parent_R.size(0), device=self.device)
        place_R, own_R = torch.div(row_R, self._rows, rounding_mode="floor"), row_R % self._rows
        slot_R = position_B.index_select(0, place_R) * self._rows + own_R
        fields = {name.partition(".")[0]: None for _, name, _ in self._kept()}
        new = [tensor for field in fields for tensor in update[field]]
        for (kind, name, _), tensor in zip(self._kept(), new, strict=True):
            buffer = self._of(f"state.{name}")
            if kind == "pool":
                buffer[place_R, ..., slot_R, :] = tensor
            else:
                buffer[: parent_R.size(0)].copy_(tensor.index_select(0, parent_R))


def _attribute(name: str) -> str:
    return name.replace(".", "__")  # a buffer's name may not hold a dot
