"""A step that breaks while other requests are decoded: who pays for it.

The service that breaks on purpose: ``python -m benchmarks.abuse.fault --bundle BUNDLE --port PORT --poison TEXT``.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.abuse.trials import BEAM, Setting, TrialFinding, decoding
from benchmarks.service.verdicts import Verdict
from deploy.loadtest.client import RequestOutcome, send, send_all
from deploy.loadtest.server import Server
from models.bundle import Bundle
from models.search import Array, Graphs, GraphSpecs
from service.engine import Backend, Engine
from service.runtimes import open_graphs
from service.server import serve_engine
from service.settings import Settings
from service.telemetry.logs import configure_logging

_POISON = "x y z"
_BEAM = 2  # the poisoned request's beam: batches hold one beam size, so it is decoded beside, not with, the others
_OTHERS, _LENGTH = 24, 60


def fault(setting: Setting) -> TrialFinding:
    """Decode long texts, send a poisoned one in a batch of its own, then one that shares their batch."""
    arguments = ("-m", "benchmarks.abuse.fault", "--bundle", str(setting.options.bundle), "--port", "{port}")
    length = min(_LENGTH, setting.bundle.manifest.limits.max_target_tokens)
    bodies = setting.long_bodies(_OTHERS, length, beam_size=BEAM)
    poison = json.loads(bodies[0]) | {"q": _POISON}
    apart_body, body = (json.dumps(poison | {"beam_size": beam}).encode() for beam in (_BEAM, BEAM))
    with Server((*arguments, "--poison", _POISON), "/readyz") as server:
        apart = asyncio.run(_beside(server.url, setting.path, bodies, apart_body))
        together = asyncio.run(_beside(server.url, setting.path, bodies, body))
        afterwards = _endings(send_all(server.url + setting.path, bodies, len(bodies)).outcomes)
        log = server.log()
    incidents = log.count('"event": "decoding_failed"')
    unclear = 2.0 - apart["poison 500"] - together["poison 500"]
    verdicts = [
        Verdict("other requests that failed, poison in a batch of its own", float(apart["500"]), 0.0),
        Verdict("other requests that failed when sent again, afterwards", float(afterwards["500"]), 0.0),
        Verdict("poisoned requests that ended in anything but a 500 of ours", unclear, 0.0),
        Verdict("replies that are neither 200 nor a 500 with its incident", _odd(apart, together, afterwards), 0.0),
    ]
    return TrialFinding(
        "Does a fault in a step cost only the requests of its batch?",
        f"{_OTHERS} texts of {length} tokens are decoded on one worker by a model that raises a few steps after it has"
        " read a certain text. That text comes first with another beam size, so in a batch of its own, then with"
        " theirs.",
        verdicts,
        {"failed with the poison in their batch": together["500"], "incidents logged": incidents},
    )


async def _beside(root: str, path: str, bodies: list[bytes], poison: bytes) -> Counter[str]:
    """The endings of the texts, the poison coming once all of them are decoded."""
    async with decoding(root, path, bodies) as (session, tasks):
        first = _ending(await send(session, root + path, poison))
        return _endings(await asyncio.gather(*tasks)) + Counter({f"poison {first}": 1})


def _endings(outcomes: Sequence[RequestOutcome]) -> Counter[str]:
    return Counter(map(_ending, outcomes))


def _ending(outcome: RequestOutcome) -> str:
    """200, a 500 that names its incident, or anything else."""
    if outcome.ending == "answered":
        return "200"
    ours = outcome.fault.startswith("500 ") and '"decoding_failed"' in outcome.fault and '"incident"' in outcome.fault
    return "500" if ours else "odd"


def _odd(*runs: Counter[str]) -> float:
    known = ("200", "500", "poison 500")
    return float(sum(number for run in runs for ending, number in run.items() if ending not in known))


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
    engine = Engine(settings.engine_options())
    graphs = FaultyGraphs(open_graphs(loaded, "onnx", "int8", 1), tokens, after)
    engine.add(loaded, graphs, Backend("onnx", "int8"))
    configure_logging(settings)
    serve_engine(settings, engine)


if __name__ == "__main__":
    typer.run(main)
