"""`tandem bench profile`: where the time of a decoder step goes, operator by operator.

A batch of sentences of mean length is decoded with ONNX Runtime's profiler watching the step's graph, which slows each
operator a little; ``step_ms`` is the profiler's own figure of the whole call.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped,unused-ignore]

from benchmarks.options import ProfileOptions
from benchmarks.workload import texts
from deploy.report import console, environment, say, show_environment, table
from models.bundle import Bundle
from models.errors import ConfigError
from models.search import SearchOptions
from models.search.graphs import Array
from models.search.offline import OfflineDecoder
from service.runtimes.onnx import OnnxGraphs, session_options

_DRAWN = 16  # times as many sentences as are decoded, of which those in the middle are taken


class _ProfiledGraphs:
    """Graphs of which one is run by a session that notes the time of every operator."""

    def __init__(self, bundle: Bundle, precision: str, graph: str, prefix: str) -> None:
        self._graphs, self._graph = OnnxGraphs(bundle, precision, 1), graph
        self.specs = self._graphs.specs
        options = session_options(1)
        options.enable_profiling, options.profile_file_prefix = True, prefix
        self.session = ort.InferenceSession(str(bundle.graph_path(precision, graph)), options)
        self._inputs = [item.name for item in self.session.get_inputs()]
        self._outputs = [tensor.name for tensor in self.specs[graph].outputs]

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Every output of a graph, by name."""
        if graph != self._graph:
            return self._graphs.run(graph, inputs)
        results = self.session.run(None, {name: inputs[name] for name in self._inputs})
        return dict(zip(self._outputs, results, strict=True))


def measure(options: ProfileOptions) -> dict[str, Any]:
    """Decode a batch of a bundle, and time the operators of its steps.

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
    with tempfile.TemporaryDirectory(prefix="tandem-profile-") as folder:
        graphs = _ProfiledGraphs(bundle, options.precision, graph, f"{folder}/step")
        _decode(bundle, graphs, options)
        events = json.loads(Path(graphs.session.end_profiling()).read_text(encoding="utf-8"))
    runs = [event["dur"] for event in events if event["name"] == "model_run"]
    spent, nodes = Counter[str](), Counter[str]()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            spent[event["args"]["op_name"]] += event["dur"]
            nodes[event["args"]["op_name"]] += 1
    total = sum(spent.values())
    return {
        "environment": environment(1),
        "title": f"{graph}, {options.batch} sentences x beam {options.beam_size}, {options.precision}",
        "graph": graph,
        "steps": len(runs),
        "step_ms": sum(runs) / len(runs) / 1e3,
        "nodes": sum(nodes.values()) // len(runs),
        "operators": [
            {"operator": name, "count": nodes[name] // len(runs), "us": us / len(runs), "share": 100 * us / total}
            for name, us in spent.most_common()
        ],
    }


def _decode(bundle: Bundle, graphs: _ProfiledGraphs, options: ProfileOptions) -> None:
    """One batch of sentences of mean length, each decoded to the length of the first."""
    (vocabulary,) = bundle.source_vocabularies
    drawn = [(*vocabulary.encode(text), vocabulary.eos) for text in texts(vocabulary, _DRAWN * options.batch)]
    middle = sorted(drawn, key=len)[_DRAWN // 2 * options.batch :][: options.batch]
    search = SearchOptions(beam_size=options.beam_size, min_length=len(middle[0]), max_length=len(middle[0]))
    shortlist = bundle.shortlist if options.shortlist else None
    decoder = OfflineDecoder(graphs, search, shortlist, token_budget=10**9)
    for _ in decoder.decode((np.array(ids, np.int64),) for ids in middle):
        pass


def show(result: Mapping[str, Any]) -> None:
    """Print where the time goes."""
    columns = {"operator": "operator", "count": "nodes", "us": "µs of a step", "share": "% of the step"}
    say(show_environment(result["environment"]))
    console().print(table(result["title"], columns, result["operators"]))
    say(f"a step of {result['nodes']} operators takes {result['step_ms']:.3f} ms, mean of {result['steps']}")
