"""`tandem bench profile`: where the time of one decoder step goes, operator by operator, and what its products need.

The step is a real one: its inputs are taken from a search half way through a batch. ONNX Runtime's own profiler times
the operators, which slows each a little; ``step_ms`` is measured without it. ``products_ms`` is the time of the
constant matrix products alone, the same weights in a graph that holds nothing else: what no rearrangement of the rest
can save.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped,unused-ignore]
from onnx import helper, numpy_helper

from benchmarks.options import ProfileOptions
from benchmarks.runner import seconds_of
from benchmarks.workload import texts
from deploy.report import console, environment, say, show_environment, table
from models.bundle import Bundle
from models.errors import ConfigError
from models.search import DecodeBatch, Graphs, SearchOptions, Sentence
from models.search.graphs import Array
from service.runtimes.onnx import OnnxGraphs, session_options
from training.export.editing import CONTRIB, Editor

_PRODUCTS = ("MatMulIntegerToFloat", "MatMul", "Gemm")
_WARM_UP = 5


def measure(options: ProfileOptions) -> dict[str, Any]:
    """Time a step of a bundle, its operators, and its products alone.

    Raises:
        ConfigError: a shortlist is asked for that the bundle does not have.
        BundleError: the bundle cannot be used.
    """
    bundle = Bundle.load(options.bundle)
    if options.shortlist and bundle.shortlist is None:
        raise ConfigError(
            f"{options.bundle} has no shortlist: make one with `tandem shortlist`, or leave --shortlist out"
        )
    graph = "step_shortlist" if options.shortlist else "step"
    inputs = taken_inputs(bundle, graph, options)
    title = f"{graph}, {options.batch} sentences x beam {options.beam_size}, {options.precision}"
    figures = profile(bundle.graph_path(options.precision, graph), inputs, options.repeats)
    return {"environment": environment(1), "title": title, "graph": graph, **figures}


def show(result: Mapping[str, Any]) -> None:
    """Print where the time goes."""
    columns = {"operator": "operator", "count": "nodes", "us": "µs", "share": "% of the step"}
    say(show_environment(result["environment"]))
    console().print(table(result["title"], columns, result["operators"]))
    say(
        f"the step {result['step_ms']:.3f} ms, its {result['products']} constant products alone "
        f"{result['products_ms']:.3f} ms; {result['nodes']} operators"
    )


class _Taken(Exception):
    pass


class _Taking:
    """Graphs that end the search at a step, and keep what it was given."""

    def __init__(self, graphs: Graphs, graph: str, after: int) -> None:
        self.specs, self._graphs, self._graph, self._left = graphs.specs, graphs, graph, after
        self.inputs: dict[str, Array] = {}

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if graph == self._graph:
            self._left -= 1
            if self._left < 0:
                self.inputs = dict(inputs)
                raise _Taken
        return self._graphs.run(graph, inputs)


def taken_inputs(bundle: Bundle, graph: str, options: ProfileOptions) -> dict[str, Array]:
    """What a step half way through a batch of sentences of mean length is given."""
    (vocabulary,) = bundle.source_vocabularies
    ids = [(*vocabulary.encode(text), vocabulary.eos) for text in texts(vocabulary, 16 * options.batch)]
    middle = sorted(ids, key=len)[8 * options.batch :][: options.batch]
    length = len(middle[0])
    taking = _Taking(OnnxGraphs(bundle, options.precision, 1), graph, length // 2)
    search = SearchOptions(beam_size=options.beam_size, min_length=length, max_length=length)
    shortlist = bundle.shortlist if options.shortlist else None
    batch = DecodeBatch(taking, beam_size=options.beam_size, shortlist=shortlist)
    try:
        batch.join([Sentence(index, (np.array(one, np.int64),), search) for index, one in enumerate(middle)])
        while len(batch):
            batch.step()
    except _Taken:
        return taking.inputs
    raise ConfigError(f"{bundle.path}: no step was reached")


def profile(path: Path, inputs: Mapping[str, Array], repeats: int) -> dict[str, Any]:
    """Time a step graph, its operators, and its products alone; ``repeats`` times each."""
    rows = len(inputs["token"])
    operators, nodes = _operators(path, inputs, repeats)
    products, count = _products(path, rows)
    alone = ort.InferenceSession(products.SerializeToString(), session_options(1))
    fed = {item.name: np.full((rows, item.shape[1]), 100, _TYPES[item.type]) for item in alone.get_inputs()}
    total = sum(operators.values())
    return {
        "rows": rows,
        "step_ms": _median_ms(ort.InferenceSession(str(path), session_options(1)), inputs, repeats),
        "products_ms": _median_ms(alone, fed, repeats),
        "products": count,
        "nodes": sum(nodes.values()),
        "operators": [
            {"operator": name, "count": nodes[name], "us": us, "share": 100 * us / total}
            for name, us in operators.most_common()
        ],
    }


_TYPES = {"tensor(uint8)": np.uint8, "tensor(float)": np.float32}


def _median_ms(session: ort.InferenceSession, inputs: Mapping[str, Array], repeats: int) -> float:
    fed = {item.name: inputs[item.name] for item in session.get_inputs()}
    return 1e3 * statistics.median(seconds_of(lambda: session.run(None, fed), repeats, _WARM_UP))


def _operators(path: Path, inputs: Mapping[str, Array], repeats: int) -> tuple[Counter[str], Counter[str]]:
    """Microseconds of a step and nodes, by kind of operator."""
    with tempfile.TemporaryDirectory(prefix="tandem-profile-") as folder:
        options = session_options(1)
        options.enable_profiling, options.profile_file_prefix = True, f"{folder}/step"
        session = ort.InferenceSession(str(path), options)
        fed = {item.name: inputs[item.name] for item in session.get_inputs()}
        seconds_of(lambda: session.run(None, fed), repeats, _WARM_UP)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    spent, nodes = Counter[str](), Counter[str]()
    timed = [one for one in events if one.get("cat") == "Node" and one["name"].endswith("_kernel_time")]
    of_a_run = len(timed) // (_WARM_UP + repeats)
    for event in timed[_WARM_UP * of_a_run :]:
        spent[event["args"]["op_name"]] += event["dur"] / repeats
        nodes[event["args"]["op_name"]] += 1
    return spent, Counter({name: count // repeats for name, count in nodes.items()})


def _products(path: Path, rows: int) -> tuple[onnx.ModelProto, int]:
    """A graph of the products with constant weights, each of inputs of its own, and how many there are."""
    model = onnx.load(path)
    editor = Editor(model)
    makers, constants = editor.makers(), {tensor.name: tensor for tensor in model.graph.initializer}
    inputs, outputs, nodes = [], [], list[onnx.NodeProto]()
    for one in editor.nodes:
        weight = _weight(editor, makers, one) if one.op_type in _PRODUCTS else None
        if weight is None:
            continue
        alone = onnx.NodeProto.FromString(one.SerializeToString())
        alone.input[0], alone.input[1] = f"rows.{len(nodes)}", f"weight.{len(nodes)}"
        constants[alone.input[1]] = numpy_helper.from_array(np.ascontiguousarray(weight), alone.input[1])
        kind = onnx.TensorProto.UINT8 if one.domain == CONTRIB else onnx.TensorProto.FLOAT
        inputs.append(helper.make_tensor_value_info(alone.input[0], kind, [rows, weight.shape[int(_turned(one))]]))
        outputs.append(helper.make_tensor_value_info(one.output[0], onnx.TensorProto.FLOAT, None))
        nodes.append(alone)
    read = {name for one in nodes for name in one.input}
    kept = [tensor for name, tensor in constants.items() if name in read]
    graph = helper.make_graph(nodes, "products", inputs, outputs, kept)
    versions = list(model.opset_import)
    return helper.make_model(graph, opset_imports=versions, ir_version=model.ir_version), len(nodes)


def _turned(product: onnx.NodeProto) -> bool:
    return any(one.name == "transB" and one.i for one in product.attribute)


def _weight(editor: Editor, makers: Mapping[str, onnx.NodeProto], product: onnx.NodeProto) -> Array | None:
    """The constant right side of a product, also where it is turned when the graph is loaded."""
    name = product.input[1] if len(product.input) > 1 else ""
    maker = makers.get(name)
    if maker is not None and maker.op_type == "Transpose":
        stored = editor.constant(maker.input[0])
        return None if stored is None else stored.T
    return editor.constant(name)
