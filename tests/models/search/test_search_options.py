"""Every bound of every option, and the description of graphs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tandem.models.errors import BundleError, OptionError
from tandem.models.search import (
    GraphSpec,
    Sampling,
    SearchOptions,
    Sentence,
    TensorSpec,
    check_specs,
    specs_from_json,
    specs_to_json,
)
from tandem.models.search.hypotheses import Admitted
from tests.models.search.tables import table_specs


def test_ratios_go_by_the_longest_text() -> None:
    """Whichever of several it is; the vectors of a feature matrix are no text, unless there is nothing else."""
    options = SearchOptions(max_length=100, max_length_ratio=2.0, min_length_ratio=0.5)
    short, long, matrix = np.array([5, 3]), np.array([5] * 8 + [3]), np.zeros((40, 2), np.float32)
    for sources, length in (
        *(((short,), 1), ((matrix, short), 1), ((short, long), 8), ((matrix, short, long), 8)),
        *(((long, short, matrix), 8), ((matrix,), 40)),
    ):
        admitted = Admitted.of(Sentence(1, sources, options), vocabulary_size=9, eos=3)
        assert (admitted.shortest, admitted.longest) == options.bounds(length)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("beam_size", [0, -1, 1.5, True, "5", None]),
        ("n_best", [0, 6, 2.0]),
        ("length_penalty", [-0.1, 11, float("nan"), float("inf"), "1", True]),
        ("length_penalty_form", ["wu", "", None]),
        ("coverage_penalty", [-0.1, float("nan"), 11]),
        ("min_length", [-1, 257, 1.0]),
        ("max_length", [0, 2.5, None]),
        ("min_length_ratio", [-1.0, float("nan"), 101]),
        ("max_length_ratio", [-1.0, float("nan"), 101, "2"]),
        ("no_repeat_ngram_size", [-1, 1.0]),
        ("max_rounds", [-1, 2.0, True]),
        ("suppressed", [(3,), (-1,), (1.0,), [4]]),
        ("prefix", [(0,), (2,), (3,), (-1,), (True,), [4], (4,) * 257]),
    ],
)
def test_every_bound(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(OptionError) as caught:
            SearchOptions(**{field: value})
        assert caught.value.field == field and caught.value.bound


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("temperature", [0.0, -1.0, float("nan"), 101.0]),
        ("top_k", [-1, 1.0]),
        ("top_p", [0.0, 1.1, -0.1, float("nan")]),
        ("seed", [-1, 0.5, None]),
    ],
)
def test_every_bound_of_sampling(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(OptionError) as caught:
            Sampling(**{field: value})
        assert caught.value.field == f"sampling.{field}"


def test_exhaustive_sampling_is_refused() -> None:
    with pytest.raises(OptionError, match="exhaustive"):
        SearchOptions(sampling=Sampling(), exhaustive=True)


@pytest.mark.parametrize(("state", "sources"), [("pool", 1), ("rows", 2)])
def test_graphs_json_round_trip(state: str, sources: int) -> None:
    specs = table_specs(9, state, sources)
    text = specs_to_json(specs)
    json.loads(text, parse_constant=pytest.fail)  # strict JSON: no Infinity
    assert specs_from_json(text) == specs
    assert check_specs(specs) == []


def without(spec: GraphSpec, name: str) -> GraphSpec:
    return GraphSpec(
        tuple(tensor for tensor in spec.inputs if tensor.name != name),
        tuple(tensor for tensor in spec.outputs if tensor.name != name),
    )


def test_faults_of_graphs_are_all_listed() -> None:
    specs = table_specs(9, "pool", 1)
    bad = TensorSpec("state.bad", "complex64", ("row", "slots", "fixed:x"), 0.0, "pool")
    step = without(without(without(specs["step"], "banned"), "scores"), "append.entries")
    broken = {
        "encode": without(specs["encode"], "memory.tokens.0"),
        "step": replace(step, inputs=(*(t for t in step.inputs if t.name != "history"), bad)),
    }
    faults = "\n".join(check_specs(broken))
    for wanted in (
        "'banned' is missing", "'scores' is missing", "nothing is appended to 'state.entries'", "needs 'history'",
        "encode does not return 'memory.tokens.0'", "dtype must be", "'slots'", "'fixed:x'", "must be 'sentence'",
        "must be 'slot'",
    ):  # fmt: skip
        assert wanted in faults
    assert check_specs({}) == ["there is no 'encode' graph", "there is no 'step' graph"]
    rows = table_specs(9, "rows", 1)["step"]
    lost = GraphSpec(rows.inputs, tuple(t for t in rows.outputs if t.name != "state.sum"))
    assert any("'state.sum' is not returned" in fault for fault in check_specs({"step": lost}))


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 1, "graphs": {"step": {}}}', '{"format": 99}'])
def test_descriptions_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(BundleError, match=r"graphs\.json"):
        specs_from_json(text)


def test_faulty_graphs_are_refused_when_read() -> None:
    with pytest.raises(BundleError, match="there is no 'step' graph"):
        specs_from_json(specs_to_json({"encode": table_specs(9, "pool", 1)["encode"]}))


def test_imports_work_where_torch_is_not() -> None:
    program = "import sys; sys.modules['torch'] = None\nfrom tandem.models import bundle, search, text, vocabulary"
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
