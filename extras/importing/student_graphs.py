"""A post-norm Transformer with recurrent decoder layers as ONNX graphs, written operator by operator.

They are those that :mod:`training.export.onnx_graphs` traces from such a model of ours, which needs PyTorch and half a
minute; what a graph holds depends on the shape of the model alone.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, D width, H heads, E = D / H.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from tandem.models.search.graphs import Array, GraphSpec, TensorSpec
from tandem.training.export.editing import Editor, Writer, node
from tandem.training.export.searching import declared

OPSET, IR_VERSION = 18, 10
EPSILON = 1e-5  # of the norms, as PyTorch has it


@dataclass(frozen=True, slots=True)
class Student:
    """The shape of a model, by the names of our configuration of Transformers.

    Its decoder is recurrent, its norms stand behind, it has biases everywhere, rectifiers, a table for output and
    target, and alignments by one head.
    """

    width: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    target_vocabulary: int
    max_positions: int

    @property
    def head(self) -> int:
        """E."""
        return self.width // self.heads

    def memory(self) -> list[TensorSpec]:
        """What the encoder makes."""
        axes = ("sentence", f"fixed:{self.heads}", "source0", f"fixed:{self.head}")
        names = [f"memory.{part}.{layer}" for part in ("keys", "values") for layer in range(self.decoder_layers)]
        mask = TensorSpec("memory.mask", "float32", ("sentence", "source0"), -math.inf, "memory")
        return [*(TensorSpec(name, "float32", axes, 0.0, "memory") for name in names), mask]

    def cells(self, rows: str) -> list[TensorSpec]:
        """The state, before a step or after it."""
        names = [f"state.cells.{layer}" for layer in range(self.decoder_layers)]
        return [TensorSpec(name, "float32", (rows, f"fixed:{self.width}"), 0.0, "rows") for name in names]


def student_specs(shape: Student) -> dict[str, GraphSpec]:
    """The graphs that a model of that shape has, but for the one that reads shortlists."""

    def control(name: str, *axes: str, dtype: str = "int64", padding: float = 0.0) -> TensorSpec:
        return TensorSpec(name, dtype, axes, padding, "control")

    source = [
        TensorSpec("source0", "int64", ("sentence", "source0"), 0.0, "source"),
        TensorSpec("source0.length", "int64", ("sentence",), 1.0, "source"),
    ]
    rows = [control(name, "row") for name in ("token", "parent", "position")]
    search = [
        control("score", "row", dtype="float32"),
        control("banned", "row", "ban", padding=float(shape.target_vocabulary)),
        control("forced", "row", padding=-1.0),
        control("count"),
    ]
    before, after = [*shape.cells("old_row"), *shape.memory()], shape.cells("row")
    best = (("scores", "float32"), ("tokens", "int64"), ("parents", "int64"))
    found = [TensorSpec(name, dtype, ("sentence", "candidate"), 0.0, "result") for name, dtype in best]
    found.append(TensorSpec("logsumexp", "float32", ("row",), 0.0, "result"))
    logits = TensorSpec("logits", "float32", ("row", f"fixed:{shape.target_vocabulary}"), 0.0, "result")
    attention = TensorSpec("attention.source0", "float32", ("row", "source0"), 0.0, "attention")
    return {
        "encode": GraphSpec(tuple(source), tuple(shape.memory())),
        "step": GraphSpec((*rows, *search, *before), (*found, *after)),
        "step_logits": GraphSpec((*rows, *before), (logits, *after)),
        "align": GraphSpec((*rows, *before), (attention, *after)),
    }


def positions(length: int, width: int) -> Array:
    """Sines, then cosines, as tensor2tensor counts them: ``models.architectures.layers.embedding.sinusoids``."""
    frequency = np.exp(np.arange(0, width, 2) * (-math.log(10000.0) / max(1, width - 2)))
    angles = np.arange(length)[:, None] * frequency
    return np.concatenate([np.sin(angles), np.cos(angles)[:, : width // 2]], axis=1).astype(np.float32)


def encoder_graph(shape: Student, weights: Mapping[str, Array]) -> onnx.ModelProto:
    """Sources to memory; ``weights`` are those of our model, by its names."""
    layers = _Layers(shape, weights, student_specs(shape)["encode"])
    write = layers.write
    length = write("Shape", "source0", start=1, end=2)
    place_S = write("Range", write.number(0), write("Squeeze", length), write.number(1))
    inside_BS = write("Less", place_S, write("Unsqueeze", "source0.length", write.ints(1)))
    write("Where", inside_BS, write.number(0.0), write.number(-math.inf), into="memory.mask")
    position_SD = write("Slice", layers.positions(), write.ints(0), length, write.ints(0))
    x_BSD = layers.embedded("source_embedding", "source0", position_SD)
    for layer in range(shape.encoder_layers):
        x_BSD = layers.encoder_layer(x_BSD, f"encoder.{layer}")
    for layer in range(shape.decoder_layers):
        for part in ("keys", "values"):
            layers.by_head(layers.linear(x_BSD, f"decoder.{layer}.source_{part}"), into=f"memory.{part}.{layer}")
    return layers.finish()


def logits_graph(shape: Student, weights: Mapping[str, Array]) -> onnx.ModelProto:
    """One step to the logits and the new state."""
    layers = _Layers(shape, weights, student_specs(shape)["step_logits"])
    x_RD = layers.step_input()
    for layer in range(shape.decoder_layers):
        x_RD = layers.decoder_layer(x_RD, layer)
    table, bias = (layers.constant(name) for name in ("target_embedding", "output_bias"))
    layers.write("Gemm", x_RD, table, bias, transB=1, into="logits")
    return layers.finish()


def align_graph(shape: Student, weights: Mapping[str, Array]) -> onnx.ModelProto:
    """One step to what the first head of the last layer attends to, and the new state."""
    layers = _Layers(shape, weights, student_specs(shape)["align"])
    write, last = layers.write, shape.decoder_layers - 1
    x_RD = layers.step_input()
    for layer in range(last):
        x_RD = layers.decoder_layer(x_RD, layer)
    weight_BHKS = layers.source_weights(layers.history(x_RD, last), last)
    by_row = write("Concat", write.ints(-1), write("Shape", "memory.mask", start=1, end=2), axis=0)
    write("Reshape", write("Gather", weight_BHKS, write.number(0), axis=1), by_row, into="attention.source0")
    return layers.finish()


class _Layers:
    """Writes the layers of one graph.

    Attributes:
        write: writes nodes.
    """

    def __init__(self, shape: Student, weights: Mapping[str, Array], spec: GraphSpec) -> None:
        self._shape, self._weights = shape, weights
        read = {tensor.name for tensor in spec.inputs}
        outputs = [declared(one, f"next.{one.name}" if one.name in read else "") for one in spec.outputs]
        graph = helper.make_graph([], "graph", [declared(one) for one in spec.inputs], outputs)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="tandem")
        self._editor = Editor(model)
        self.write = Writer(self._editor, "model")

    def finish(self) -> onnx.ModelProto:
        """The graph of what was written."""
        self._editor.nodes = self.write.nodes
        return self._editor.finish()

    def constant(self, name: str) -> str:
        """One of the model's weights."""
        return self._editor.add_constant(self._weights[name], name)

    def positions(self) -> str:
        """The table of positions."""
        return self._editor.add_constant(positions(self._shape.max_positions, self._shape.width), "positions")

    def embedded(self, table: str, ids: str, position: str) -> str:
        """sqrt(D) times the embedding, and the position's."""
        found = self.write("Gather", self.constant(table), ids, axis=0)
        scaled = self.write("Mul", found, self.write.number(math.sqrt(self._shape.width)))
        return self.write("Add", scaled, position)

    def linear(self, x: str, name: str) -> str:
        """A map of ours, with its bias where it has one."""
        weight = self._editor.add_constant(self._weights[f"{name}.weight"].T, name)
        product = self.write("MatMul", x, weight)
        bias = f"{name}.bias"
        return self.write("Add", product, self.constant(bias)) if bias in self._weights else product

    def added(self, x: str, y: str, norm: str) -> str:
        """``LN(x + y)``."""
        parameters = (self.constant(f"{norm}.{part}") for part in ("weight", "bias"))
        return self.write("LayerNormalization", self.write("Add", x, y), *parameters, axis=-1, epsilon=EPSILON)

    def feed_forward(self, x: str, own: str) -> str:
        """``W_2 max(0, W_1 x)``."""
        hidden = self.write("Relu", self.linear(x, f"{own}.feed_forward.inner"))
        return self.linear(hidden, f"{own}.feed_forward.outer")

    def by_head(self, x_BSD: str, into: str = "") -> str:
        """B x H x S x E."""
        parts = self.write("Reshape", x_BSD, self.write.ints(0, 0, self._shape.heads, self._shape.head))
        return self.write("Transpose", parts, perm=[0, 2, 1, 3], into=into)

    def attention(self, query_BHQE: str, keys_BHSE: str) -> str:
        """Weights B x H x Q x S on the positions of the source."""
        turned = self.write("Transpose", keys_BHSE, perm=[0, 1, 3, 2])
        scaled = self.write("Div", self.write("MatMul", query_BHQE, turned), self.write.number(self._root))
        mask = self.write("Unsqueeze", "memory.mask", self.write.ints(1, 2))
        return self.write("Softmax", self.write("Add", scaled, mask), axis=-1)

    def merged(self, context_BHQE: str, shape: str) -> str:
        """The heads' contexts side by side."""
        return self.write("Reshape", self.write("Transpose", context_BHQE, perm=[0, 2, 1, 3]), shape)

    def encoder_layer(self, x_BSD: str, own: str) -> str:
        """Self-attention and feed-forward."""
        parts = [self.write.fresh("split") for _ in range(3)]
        fused = self.linear(x_BSD, f"{own}.attention.query_key_value")
        self.write.nodes.append(node("Split", [fused], parts, axis=-1, num_outputs=3))
        query, key, value = map(self.by_head, parts)
        context = self.write("MatMul", self.attention(query, key), value)
        attended = self.merged(context, self.write.ints(0, 0, self._shape.width))
        x_BSD = self.added(x_BSD, self.linear(attended, f"{own}.attention.output"), f"{own}.norms.0")
        return self.added(x_BSD, self.feed_forward(x_BSD, own), f"{own}.norms.1")

    def step_input(self) -> str:
        """R x D of the tokens at their positions."""
        position_RD = self.write("Gather", self.positions(), "position", axis=0)
        return self.embedded("target_embedding", "token", position_RD)

    def decoder_layer(self, x_RD: str, layer: int) -> str:
        """Recurrent unit, attention on the source, feed-forward."""
        own, x_RD = f"decoder.{layer}", self.history(x_RD, layer)
        context = self.write("MatMul", self.source_weights(x_RD, layer), f"memory.values.{layer}")
        attended = self.merged(context, self.write.ints(-1, self._shape.width))
        x_RD = self.added(x_RD, self.linear(attended, f"{own}.output"), f"{own}.norms.1")
        return self.added(x_RD, self.feed_forward(x_RD, own), f"{own}.norms.2")

    def history(self, x_RD: str, layer: int) -> str:
        """``f = sigmoid(W_f x + b_f)``, ``c = f c' + (1 - f) W x``, ``LN(x + max(0, c))``; c is the new state."""
        write, unit = self.write, f"decoder.{layer}.unit"
        cell_RD = write("Gather", f"state.cells.{layer}", "parent", axis=0)
        forget_RD = write("Sigmoid", self.linear(x_RD, f"{unit}.forget"))
        taken_RD = write("Mul", write("Sub", write.number(1.0), forget_RD), self.linear(x_RD, f"{unit}.candidate"))
        new_RD = write("Add", taken_RD, write("Mul", forget_RD, cell_RD), into=f"next.state.cells.{layer}")
        return self.added(x_RD, write("Relu", new_RD), f"decoder.{layer}.norms.0")

    def source_weights(self, x_RD: str, layer: int) -> str:
        """Weights B x H x K x S on the source."""
        query_RD = self.linear(x_RD, f"decoder.{layer}.query")
        sentences = self.write("Shape", "memory.mask", start=0, end=1)
        parts = self.write.ints(-1, self._shape.heads, self._shape.head)
        query_BKHE = self.write("Reshape", query_RD, self.write("Concat", sentences, parts, axis=0))
        query_BHKE = self.write("Transpose", query_BKHE, perm=[0, 2, 1, 3])
        return self.attention(query_BHKE, f"memory.keys.{layer}")

    @property
    def _root(self) -> float:
        return math.sqrt(self._shape.head)
