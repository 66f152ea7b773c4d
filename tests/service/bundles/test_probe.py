"""Measuring graphs with an invented clock, and choosing among runtimes and precisions by what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from models.bundle import Bundle, Limits, Vocabularies, VocabularyFile, add_built
from models.errors import BundleError, ConfigError
from models.search import Array, Graphs, GraphSpec, TensorSpec
from models.vocabulary import EOS
from service.bundles.catalog import Catalog
from service.bundles.loading import build_engine
from service.bundles.probe import TOKENS, BatchTiming, Effort, Timing, made_up_sources, measure
from service.engine import Backend
from service.runtimes import choice
from service.runtimes.choice import MARGIN, Wish, candidates, open_chosen, prefer, proven, usable
from service.settings import Settings
from service.telemetry.metrics import Metrics
from tests.service.support import CopyGraphs, copying, tiny_bundle

INT8, FLOAT32 = Backend("onnx", "int8"), Backend("onnx", "float32")
TRACED, EAGER = Backend("torchscript", "float32"), Backend("torch", "float32")
PROOF = {
    "exact": [{"runtime": "onnx float32", "passed": True}],
    "quantised": [{"runtime": "onnx int8", "passed": True}],
}


class Time:
    """A clock that goes on only where a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Slow(CopyGraphs):
    """Copies its source, and takes so many seconds for each sentence of a call."""

    def __init__(self, bundle: Bundle, clock: Time, *, encode: float, step: float) -> None:
        super().__init__(bundle.target_vocabulary.size, len(bundle.source_vocabularies))
        self.clock, self.seconds, self.sizes = clock, {"encode": encode, "step": step}, list[tuple[str, int]]()

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        sentences = len(inputs["source0" if graph == "encode" else "memory.lengths"])
        self.clock.now += self.seconds[graph] * sentences
        self.sizes.append((graph, sentences))
        return super().run(graph, inputs)


def broken(*_: object) -> Graphs:
    raise RuntimeError("no kernel")


def holding(folder: Path, *precisions: str, traced: bool = False, **changes: Any) -> Bundle:
    """A bundle with files where graphs of these precisions would lie."""
    made = tiny_bundle(folder, **changes)
    for precision in precisions:
        add_built(made.path, f"onnx/{precision}", {"encode.onnx": b"", "step.onnx": b""})
    if traced:
        add_built(made.path, "torchscript", {"step.pt": b""})
    return Bundle.load(made.path)


def timing(milliseconds: float) -> Timing:
    """Of graphs that need so long for a sentence, alone or together."""
    return Timing(tuple(BatchTiming(size, 0.0, milliseconds * size / TOKENS, 3) for size in (1, 32)))


# --- measuring ------------------------------------------------------------------------------------------------------


def test_what_is_measured_is_what_the_graphs_took(bundles: dict[str, Bundle]) -> None:
    clock = Time()
    graphs = Slow(bundles["de-en"], clock, encode=0.003, step=0.002)
    found = measure(bundles["de-en"], graphs, Effort((1, 4), repetitions=6, seconds=100.0), clock)
    alone, together = found.batches
    assert (alone.sentences, together.sentences) == (1, 4)
    assert (alone.encode_ms, alone.step_ms) == pytest.approx((3.0, 2.0))
    assert (together.encode_ms, together.step_ms) == pytest.approx((12.0, 8.0))
    assert alone.repetitions == together.repetitions == 6
    assert {size for _, size in graphs.sizes} == {1, 4}
    assert alone.sentence_ms == pytest.approx(together.sentence_ms) == pytest.approx(3 + 2 * TOKENS)
    assert found.cost_ms == pytest.approx(3 + 2 * TOKENS)


@pytest.mark.parametrize(("step", "repetitions"), [(0.001, 9), (0.09, 3), (0.02, 5)])
def test_what_is_slow_is_repeated_less(bundles: dict[str, Bundle], step: float, repetitions: int) -> None:
    clock = Time()
    graphs = Slow(bundles["de-en"], clock, encode=0.001, step=step)
    (found,) = measure(bundles["de-en"], graphs, Effort((1,), repetitions=9, seconds=0.085), clock).batches
    assert found.repetitions == repetitions
    assert found.step_ms == pytest.approx(1000 * step)


def test_short_limits_are_kept(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path, limits=Limits(max_source_tokens=5, max_target_tokens=6))
    graphs = Slow(bundle, clock := Time(), encode=0.001, step=0.001)
    (found,) = measure(bundle, graphs, Effort((2,), repetitions=20, seconds=100.0), clock).batches
    assert found.repetitions == 4  # two of the six steps warm up
    assert {len(source) for (source,) in graphs.together} == {6}  # with the end of the sentence


def test_the_sentence_is_always_the_same_and_fits_every_source(many_sources: dict[str, Bundle]) -> None:
    for bundle in many_sources.values():
        made, again = (made_up_sources(bundle, copying(bundle)) for _ in range(2))
        assert len(made) == len(bundle.sources)
        for source, twin, vocabulary in zip(made, again, bundle.source_vocabularies, strict=True):
            assert source.tolist() == twin.tolist()
            assert (source[-1], len(source)) == (EOS, TOKENS + 1)
            assert EOS < source[:-1].min() <= source[:-1].max() < vocabulary.size
        measure(bundle, copying(bundle), Effort((1, 2), repetitions=1, seconds=0.0))


def test_a_source_of_features_gets_a_matrix(tmp_path: Path) -> None:
    vocabularies = Vocabularies((), VocabularyFile("source.model"), (7,))
    bundle = tiny_bundle(tmp_path, vocabularies=vocabularies)
    graphs = copying(bundle)
    features = TensorSpec("source0", "float32", ("sentence", "source0", "fixed:7"), 0.0, "source")
    graphs.specs = {"encode": GraphSpec((features,), ())}
    (matrix,) = made_up_sources(bundle, graphs)
    assert matrix.shape == (TOKENS, 7)
    assert matrix.dtype == np.float32
    assert np.isfinite(matrix).all()


# --- choosing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "chosen", "why"),
    [
        ({FLOAT32: 30.0, INT8: 10.0}, INT8, "the fastest"),
        ({FLOAT32: 10.0, INT8: 30.0}, FLOAT32, "the fastest"),
        ({FLOAT32: 10.0, INT8: 9.5}, FLOAT32, "more exact than onnx int8"),
        ({FLOAT32: 10.0, INT8: 8.9}, INT8, "the fastest"),
        ({FLOAT32: 20.0, INT8: 10.5, TRACED: 10.0}, INT8, "more exact than torchscript float32"),
        ({INT8: 10.0}, INT8, "the only one that can be run"),
    ],
)
def test_less_exact_must_be_clearly_faster(measured: dict[Backend, float], chosen: Backend, why: str) -> None:
    found, reason = prefer({one: timing(cost) for one, cost in measured.items()})
    assert found == chosen
    assert reason.startswith(why)


@given(costs=st.lists(st.floats(0.01, 1e4), min_size=1, max_size=5))
def test_the_choice_is_within_the_margin_and_the_first_that_is(costs: list[float]) -> None:
    timings = {Backend("onnx", f"p{number}"): timing(cost) for number, cost in enumerate(costs)}
    chosen, _ = prefer(timings)
    place = [*timings].index(chosen)
    bound = min(costs) / (1 - MARGIN)
    assert costs[place] <= bound * (1 + 1e-9)
    assert all(cost > bound * (1 - 1e-9) for cost in costs[:place])


def test_a_factor_counts_alike_alone_and_in_a_batch() -> None:
    fast_alone = Timing((BatchTiming(1, 0.0, 1.0, 3), BatchTiming(32, 0.0, 64.0, 3)))
    fast_together = Timing((BatchTiming(1, 0.0, 2.0, 3), BatchTiming(32, 0.0, 32.0, 3)))
    assert fast_alone.cost_ms == pytest.approx(fast_together.cost_ms)


@pytest.mark.parametrize(
    ("held", "proof", "wish", "found"),
    [
        (("int8",), {}, Wish(), (INT8,)),
        (("int8", "float32"), PROOF, Wish(), (FLOAT32, INT8)),
        (("int8", "float32"), {}, Wish(), (FLOAT32,)),
        (("int8", "float32"), {"quantised": [{"runtime": "onnx int8", "passed": False}]}, Wish(), (FLOAT32,)),
        (("int8", "float32"), {"quantised": "none"}, Wish(), (FLOAT32,)),
        (("int8", "float32"), {}, Wish(precision="int8"), (INT8,)),
        (("int8", "float32"), PROOF, Wish(precision="float32"), (FLOAT32,)),
        (("int8",), PROOF, Wish(precision="float32"), (FLOAT32,)),  # opening says how to build it
        ((), {}, Wish(), (INT8,)),
        (("int8",), PROOF, Wish("torch"), (EAGER,)),
        (("int8",), PROOF, Wish("torchscript", "int8"), (TRACED,)),
        (("int8",), PROOF, Wish("auto"), (INT8,)),
        (("int8", "traced"), PROOF, Wish("auto"), (INT8, TRACED)),
        (("int8", "float32", "traced"), PROOF, Wish("auto"), (FLOAT32, INT8, TRACED)),
        (("int8", "float32", "traced"), PROOF, Wish("auto", "int8"), (INT8,)),
        (("int8", "traced"), PROOF, Wish("auto", "float32"), (TRACED,)),
        ((), {}, Wish("auto"), (EAGER,)),
        ((), {}, Wish("auto", "int8"), (INT8,)),
    ],
)
def test_candidates(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    held: tuple[str, ...],
    proof: dict[str, Any],
    wish: Wish,
    found: tuple[Backend, ...],
) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda name: name)  # PyTorch is installed
    folders = [one for one in held if one != "traced"]
    bundle = holding(tmp_path, *folders, traced="traced" in held, proof=proof)
    assert candidates(bundle, wish) == found


def test_without_torch_its_runtimes_are_no_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = holding(tmp_path, "int8", traced=True, proof=PROOF)
    assert usable(bundle)[0] == INT8
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    assert usable(bundle) == candidates(bundle, Wish("auto")) == (INT8,)


def test_what_a_proof_must_say(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", "float32", proof=PROOF)
    assert [proven(bundle, one) for one in ("int8", "float32", "bf16")] == [True, True, False]


# --- opening --------------------------------------------------------------------------------------------------------


def test_nothing_is_measured_without_a_choice(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", proof=PROOF)
    opened: list[tuple[str, str, int]] = []

    def opener(_: Bundle, runtime: str, precision: str, threads: int) -> Graphs:
        opened.append((runtime, precision, threads))
        return copying(bundle)

    graphs, found = open_chosen(bundle, Wish(threads=3), opener, clock=broken)  # type: ignore[arg-type]
    assert isinstance(graphs, CopyGraphs)
    assert graphs.together == []
    assert opened == [("onnx", "int8", 3)]
    assert (found.backend, found.timings) == (INT8, {})
    assert found.why == "the only one that the bundle holds"


@pytest.mark.parametrize(("float32", "int8", "winner"), [(0.004, 0.001, INT8), (0.001, 0.004, FLOAT32)])
def test_the_faster_precision_is_opened_and_what_was_measured_is_logged(
    tmp_path: Path, float32: float, int8: float, winner: Backend
) -> None:
    bundle, clock = holding(tmp_path, "int8", "float32", proof=PROOF), Time()
    made = {
        one.precision: Slow(bundle, clock, encode=step, step=step) for one, step in ((FLOAT32, float32), (INT8, int8))
    }
    with capture_logs() as lines:
        graphs, found = open_chosen(bundle, Wish(), lambda _, __, precision, ___: made[precision], clock=clock)
    assert found.backend == winner
    assert graphs is made[winner.precision]
    assert set(found.timings) == {FLOAT32, INT8}
    measured = {line["backend"]: line["sentence_ms"] for line in lines if line["event"] == "backend_measured"}
    assert measured["onnx int8"] / measured["onnx float32"] == pytest.approx(int8 / float32, rel=0.01)


def test_accuracy_that_is_not_proven_is_not_chosen(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", "float32")
    _, found = open_chosen(bundle, Wish(), lambda *_: copying(bundle), clock=broken)  # type: ignore[arg-type]
    assert (found.backend, found.why) == (FLOAT32, "the accuracy of int8 is not proven")


def test_a_candidate_that_fails_leaves_the_others(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", "float32", proof=PROOF)
    failing = copying(bundle)
    failing.run = broken  # type: ignore[assignment]
    with capture_logs() as lines:
        graphs, found = open_chosen(
            bundle, Wish(), lambda _, __, precision, ___: failing if precision == "int8" else copying(bundle)
        )
    assert found.backend == FLOAT32
    assert found.why.startswith("the only one that can be run")
    assert [line["backend"] for line in lines if line["event"] == "backend_unusable"] == ["onnx int8"]
    assert graphs is not failing


def test_when_all_candidates_fail_every_reason_is_given(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", "float32", proof=PROOF)

    def opener(_: Bundle, __: str, precision: str, ___: int) -> Graphs:
        return broken() if precision == "int8" else open_missing()

    def open_missing() -> Graphs:
        raise ConfigError("something is not installed")

    with pytest.raises(BundleError, match="float32: something is not installed; onnx int8 fails when it is run"):
        open_chosen(bundle, Wish(), opener)


@pytest.mark.anyio
async def test_the_service_shows_what_each_bundle_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = holding(tmp_path, "int8", "float32", proof=PROOF)
    holding(tmp_path, "float32", name="exact")

    def opener(bundle: Bundle, _: str, precision: str, __: int) -> Graphs:
        # Of the bundle with both, float32 cannot be opened: int8 is left, whatever the machine's clock says.
        return broken() if bundle.manifest.name == "de-en" and precision == "float32" else copying(both)

    monkeypatch.setattr("service.bundles.loading.open_graphs", opener)
    engine = build_engine(Settings(bundles=(tmp_path,)))
    shown = {model.name: (model.runtime, model.precision) for model in Catalog(engine).models()}
    assert shown == {"de-en": ("onnx", "int8"), "exact": ("onnx", "float32")}
    metrics = Metrics()
    metrics.watch(engine)
    text, _ = metrics.render()
    assert b'precision="float32,int8",runtime="onnx"' in text
