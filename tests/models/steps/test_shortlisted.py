"""The step over shortlists against the step over the whole vocabulary.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, V vocabulary, W entries, J bans, C candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.search import Array, DecodeBatch, Hypothesis, SearchOptions, Sentence, translate_batch
from tandem.models.search.graphs import GraphSpec, check_specs
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.steps.numbers import SPREAD
from tandem.models.steps.shortlisted import log_sum_exp, mean_logit, unlisted
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import (
    EOS,
    FIRST_CASES,
    TARGET_TYPES,
    AnyModel,
    Case,
    arrays,
    every_case_slowly,
    first_cases,
    sentences,
)
from tests.models.search.tables import assert_same_hypotheses, run_out

EVERYTHING = np.arange(TARGET_TYPES)
LISTS = ([3, 4, 6, 9, 10], [0, 3, 5, 6], [3, 7])
OPTIONS = SearchOptions(beam_size=2, n_best=2, max_length=6)


def lists(*rows: Sequence[int]) -> list[Array]:
    return [np.array(row, np.int64) for row in rows]


def sources(model: AnyModel, *lengths: int) -> list[tuple[Array, ...]]:
    return arrays(sentences(model, lengths))


class Exhaustive(TorchGraphs):
    """Answers ``step_shortlist`` from ``step_logits``, in NumPy and float64."""

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if graph != "step_shortlist":
            return super().run(graph, inputs)
        plain = {spec.name: inputs[spec.name] for spec in self.specs["step_logits"].inputs}
        outputs = super().run("step_logits", plain)
        searched = search(outputs.pop("logits"), inputs)
        return {**searched, **outputs}


def search(logits_RV: Array, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What the step over shortlists is to find, row by row."""
    entries, listed_BW = inputs["entries"], inputs["listed"]
    rows = len(logits_RV) // len(listed_BW)
    total_RW = np.full((len(logits_RV), len(entries)), -np.inf)
    lse_R = np.zeros(len(logits_RV))
    for row, logits_V in enumerate(logits_RV.astype(np.float64)):
        own_W = logits_V[entries] + listed_BW[row // rows]
        left = len(logits_V) - np.isfinite(own_W).sum()
        lse_R[row] = np.log(np.exp(own_W).sum() + left * np.exp(logits_V.mean() + SPREAD))
        banned = set(inputs["banned"][row].tolist())
        for entry in range(len(entries)):
            allowed = entry not in banned if inputs["forced"][row] < 0 else entry == inputs["forced"][row]
            if allowed:
                total_RW[row, entry] = own_W[entry] - lse_R[row] + inputs["score"][row]
    flat_BX = total_RW.reshape(len(listed_BW), -1)
    place_BC = np.argsort(-flat_BX, axis=1, kind="stable")[:, : int(inputs["count"])]
    return {
        "scores": np.take_along_axis(flat_BX, place_BC, 1).astype(np.float32),
        "tokens": entries[place_BC % len(entries)],
        "parents": place_BC // len(entries),
        "logsumexp": lse_R.astype(np.float32),
    }


def decode(
    graphs: TorchGraphs, made: list[tuple[Array, ...]], own: Sequence[Array | None], options: SearchOptions
) -> list[tuple[Hypothesis, ...]]:
    """The hypotheses of sentences that share a batch, each with its own list."""
    batch = DecodeBatch(graphs, beam_size=options.beam_size)
    batch.join([Sentence(number, one, options, own[number]) for number, one in enumerate(made)])
    hypotheses = run_out(batch)
    return [hypotheses[number] for number in range(len(made))]


@every_case_slowly
def test_a_list_of_everything_changes_nothing(case: Case) -> None:
    model = case.build(torch.float32)
    made = sources(model, 5, 2, 7)
    graphs = TorchGraphs(model)
    assert_same_hypotheses(decode(graphs, made, [EVERYTHING] * 3, OPTIONS), translate_batch(graphs, made, OPTIONS))


@every_case_slowly
def test_each_token_outside_a_list_counts_as_one_of_the_mean_logit(case: Case) -> None:
    """Bans and forced tokens among them: the second word may not repeat the first, and each must begin with one."""
    model = case.build(torch.float32)
    made = sources(model, 5, 2, 7)
    options = SearchOptions(beam_size=2, n_best=2, max_length=4, min_length=2, no_repeat_ngram_size=1, prefix=(6,))
    found = decode(TorchGraphs(model), made, lists(*LISTS), options)
    assert_same_hypotheses(found, decode(Exhaustive(model), made, lists(*LISTS), options))
    for group, own in zip(found, LISTS, strict=True):
        for one in group:
            assert one.tokens[0] == 6
            assert set(one.tokens) <= {*own, 6}
            assert len(one.tokens) == len(set(one.tokens))


@first_cases
def test_batch_mates_with_other_lists_change_nothing(case: Case) -> None:
    model = case.build(torch.float32)
    graphs, made, own = TorchGraphs(model), sources(model, 5, 2, 7), lists(*LISTS)
    alone = [decode(graphs, [one], [chosen], OPTIONS)[0] for one, chosen in zip(made, own, strict=True)]
    assert_same_hypotheses(decode(graphs, made, own, OPTIONS), alone)


@first_cases
def test_sentences_with_and_without_lists_share_a_batch(case: Case) -> None:
    model = case.build(torch.float32)
    graphs, made = TorchGraphs(model), sources(model, 5, 2, 7)
    mixed = decode(graphs, made, [None, np.array([3, 7]), None], OPTIONS)
    plain = decode(graphs, made, [None] * 3, OPTIONS)
    assert_same_hypotheses([mixed[0], mixed[2]], [plain[0], plain[2]])
    assert {token for one in mixed[1] for token in one.tokens} <= {7}


@first_cases
def test_the_graph_for_shortlists_fits_the_others(case: Case) -> None:
    specs = dict(TorchGraphs(case.build(torch.float32)).specs)
    listed = specs["step_shortlist"]
    inputs = {tensor.name: tensor for tensor in listed.inputs}
    assert inputs.pop("entries").axes == ("entry",)
    assert inputs.pop("listed").axes == ("sentence", "entry")
    assert tuple(inputs.values()) == specs["step"].inputs
    assert listed.outputs == specs["step"].outputs
    lacking = GraphSpec(tuple(one for one in listed.inputs if one.name != "listed"), listed.outputs)
    assert check_specs(specs | {"step_shortlist": lacking}) == ["step_shortlist: 'listed' is missing"]
    specs.pop("step_shortlist")
    assert check_specs(specs) == []


def test_lists_are_selected_by_the_bundles_shortlist() -> None:
    model = FIRST_CASES[0].build(torch.float32)
    made = sources(model, 5, 2)
    types = model.config.source_vocabularies[0]
    shortlist = Shortlist((Table.of([[token % TARGET_TYPES] for token in range(types)], TARGET_TYPES),), *_eos())
    own = [shortlist.select(one) for one in made]
    assert own[0].tolist() != own[1].tolist()
    found = translate_batch(TorchGraphs(model), made, OPTIONS, shortlist=shortlist)
    assert_same_hypotheses(found, decode(TorchGraphs(model), made, own, OPTIONS))


def _eos() -> tuple[Array, int]:
    return np.array([EOS], np.int64), TARGET_TYPES


@given(
    values=st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=40),
    rest=st.one_of(st.just(-np.inf), st.floats(-30, 30, width=32)),
    masked=st.lists(st.integers(0, 40), max_size=30),
    seed=st.integers(0, 100),
)
def test_log_sum_exp_depends_on_no_order_and_no_mask(
    values: list[float], rest: float, masked: list[int], seed: int
) -> None:
    rest_R1 = torch.tensor([[rest]], dtype=torch.float32)
    plain = log_sum_exp(torch.tensor([values], dtype=torch.float32), rest_R1)
    spread = list(values)
    for place in masked:
        spread.insert(place, -np.inf)
    order = np.random.default_rng(seed).permutation(len(spread))
    assert log_sum_exp(torch.tensor([spread], dtype=torch.float32)[:, order], rest_R1).tolist() == plain.tolist()
    expected = torch.logsumexp(torch.tensor([[*values, rest]], dtype=torch.float64), -1)
    assert plain.item() == pytest.approx(expected.item(), abs=2e-5)


@given(values=st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=40), seed=st.integers(0, 100))
def test_the_mean_depends_on_no_order(values: list[float], seed: int) -> None:
    logits_1V = torch.tensor([values], dtype=torch.float32)
    order = np.random.default_rng(seed).permutation(len(values))
    assert mean_logit(logits_1V[:, order]).tolist() == mean_logit(logits_1V).tolist()
    assert mean_logit(logits_1V).item() == pytest.approx(np.mean(values), abs=2e-5)


def test_what_is_left_out_is_counted_by_sentence() -> None:
    """Two rows of a sentence that lists two of five tokens, and two of one that lists them all."""
    listed_BW = torch.tensor([[0.0, -np.inf, 0.0, -np.inf, -np.inf], [0.0] * 5])
    rest_R1 = unlisted(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), listed_BW, 5)
    expected = [1 + np.log(3) + SPREAD, 2 + np.log(3) + SPREAD, -np.inf, -np.inf]
    assert rest_R1.squeeze(1).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_shows_in_the_log_sum_exp(value: float) -> None:
    rows, rest_R1 = torch.tensor([[1.0, value, 2.0], [1.0, -np.inf, 2.0], [-np.inf] * 3]), torch.full((3, 1), -np.inf)
    assert torch.isfinite(log_sum_exp(rows, rest_R1)).squeeze(1).tolist() == [False, True, False]
