"""A service whose model breaks on purpose: a step raises once a certain text has joined a batch.

python -m benchmarks.abuse.faulty --bundle BUNDLE --port PORT --poison TEXT --after STEPS
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from models.bundle import Bundle
from models.search import Array, Graphs, GraphSpecs
from service.engine import Backend, Engine, EngineOptions
from service.runtimes import open_graphs
from service.server import serve_engine
from service.settings import Settings
from service.telemetry.logs import configure_logging


class FaultyGraphs:
    """Graphs that raise some steps after a certain source has joined a batch, in that batch and in no other."""

    def __init__(self, graphs: Graphs, poison: tuple[int, ...], after: int) -> None:
        """
        Args:
            graphs: that do the work.
            poison: token ids of the source, with EOS.
            after: steps that its batch takes until one raises.
        """
        self._graphs, self._poison, self._after = graphs, poison, after
        self.specs: GraphSpecs = graphs.specs
        memory = next(spec for spec in graphs.specs["encode"].outputs_of_kind("memory") if "source0" in spec.axes)
        self._memory, self._axis = memory.name, memory.axes.index("source0")
        self._mark: Array | None = None  # what the encoder made of the poison's first token: no other sentence has it
        self._left = after

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Every output of a graph, by name. Raises RuntimeError where the fault is due."""
        if graph != "encode":
            self._break(inputs[self._memory])
            return self._graphs.run(graph, inputs)
        outputs = self._graphs.run(graph, inputs)
        for sentence, (row, length) in enumerate(zip(inputs["source0"], inputs["source0.length"], strict=True)):
            if tuple(row[:length].tolist()) == self._poison:
                self._mark = self._first(outputs[self._memory])[sentence].copy()
                self._left = self._after
        return outputs

    def _first(self, memory: Array) -> Array:
        first: Array = memory.take(0, axis=self._axis)
        return first

    def _break(self, memory: Array) -> None:
        if self._mark is None or not any(np.array_equal(one, self._mark) for one in self._first(memory)):
            return
        if self._left == 0:
            raise RuntimeError("a fault made on purpose")
        self._left -= 1


def main(
    bundle: Annotated[Path, typer.Option(help="Bundle folder.")],
    port: Annotated[int, typer.Option(help="Port to listen on, on the loopback interface.")],
    poison: Annotated[str, typer.Option(help="Text that breaks the model.")],
    after: Annotated[int, typer.Option(min=0, help="Steps from its encoding to the fault.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Decode workers.")] = 1,
) -> None:
    """Serve a bundle whose steps break."""
    settings = Settings(bundles=(bundle,), port=port, workers=workers, cache_sentences=0)
    loaded = Bundle.load(bundle)
    vocabulary = loaded.source_vocabularies[0]
    tokens = (*vocabulary.encode(poison), vocabulary.eos)
    options: EngineOptions = settings.engine_options()
    engine = Engine(options)
    graphs = FaultyGraphs(open_graphs(loaded, "onnx", "int8", 1), tokens, after)
    engine.add(loaded, graphs, Backend("onnx", "int8"))
    configure_logging(settings)
    serve_engine(settings, engine)


if __name__ == "__main__":
    typer.run(main)
