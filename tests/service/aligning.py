"""Models that copy, and say what their tokens looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import numpy as np

from tandem.models.bundle import Bundle
from tandem.models.search import Array, GraphSpec, TensorSpec
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.service.support import CopyGraphs, make_engine, running


class AligningGraphs(CopyGraphs):
    """Copies, and says that each token looked at the one of its place in every source."""

    def __post_init__(self) -> None:
        super().__post_init__()
        target = TensorSpec("target", "int64", ("row", "target"), 0.0, "target")
        seen = tuple(
            TensorSpec(f"attention.source{one}", "float32", ("row", "target", f"source{one}"), 0.0, "attention")
            for one in range(self.sources)
        )
        memory = self.specs["encode"].outputs
        self.specs = {**self.specs, "align": GraphSpec((target, *memory), seen)}

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if graph != "align":
            return super().run(graph, inputs)
        rows, steps = inputs["target"].shape
        seen = np.tile(np.eye(steps, 60, dtype=np.float32), (rows, 1, 1))
        return {f"attention.source{one}": seen for one in range(self.sources)}


async def ask(bundle: Bundle, path: str, *others: Bundle, **fields: Any) -> httpx.Response:
    sources = len(bundle.source_vocabularies)
    graphs = AligningGraphs(bundle.target_vocabulary.size, sources, copied=min(1, sources - 1))
    engine = make_engine(*((one, graphs) for one in (bundle, *others)))
    async with running(create_app(Settings(shutdown_timeout=5), engine)) as client:
        return await client.post(path, json=fields)
