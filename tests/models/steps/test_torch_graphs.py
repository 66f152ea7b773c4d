"""The four graphs of every architecture: what they declare, and that beam search over them scores as the model does.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, V vocabulary, J bans, C candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tandem.models.search import (
    Array,
    DecodeBatch,
    Hypothesis,
    SearchOptions,
    Sentence,
    align,
    check_specs,
    specs_from_json,
    specs_to_json,
    translate_batch,
)
from tandem.models.steps.continuations import best_per_row, largest
from tandem.models.steps.numbers import LEAST_BLOCKED
from tandem.models.steps.torch_graphs import GRAPH_NAMES, TorchGraphs
from tests.models.architectures.examples import (
    BOS,
    EOS,
    TARGET_TYPES,
    AnyModel,
    Case,
    arrays,
    batch,
    every_case,
    every_case_slowly,
    first_cases,
    needs_training,
    sentences,
    targets,
)
from tests.models.search.tables import assert_same_hypotheses

LENGTHS = (5, 2, 7, 4)
OPTIONS = SearchOptions(beam_size=3, n_best=3, max_length=6)
pytestmark = pytest.mark.usefixtures("no_gradients")


class Checked(TorchGraphs):
    """Checks every tensor that goes in or comes out against what the specs declare."""

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        outputs = super().run(graph, inputs)
        spec, sizes = self.specs[graph], dict[str, int]()
        for tensors, values in ((spec.inputs, inputs), (spec.outputs, outputs)):
            assert {tensor.name for tensor in tensors} == set(values)
            for tensor in tensors:
                value = np.asarray(values[tensor.name])
                assert str(value.dtype) == tensor.dtype, tensor.name
                assert value.ndim == len(tensor.axes), tensor.name
                for axis, size in zip(tensor.axes, value.shape, strict=True):
                    expected = int(axis[6:]) if axis.startswith("fixed:") else sizes.setdefault(axis, size)
                    assert size == expected, f"{graph} {tensor.name}: {axis}"
        return outputs


def log_probabilities(model: AnyModel, source: tuple[Tensor, ...], hypothesis: Hypothesis) -> Tensor:
    """Of each token of a hypothesis and its EOS, by teacher forcing."""
    tokens = torch.tensor([BOS, *hypothesis.tokens, EOS])
    logits_TV = model.score(tokens[None, :-1], model.encode(batch([source])))[0]
    return torch.log_softmax(logits_TV, -1).gather(1, tokens[1:, None]).squeeze(1)


@every_case
def test_specs_fit_together_and_survive_json(case: Case) -> None:
    specs = TorchGraphs(case.build(torch.float32)).specs
    assert tuple(specs) == GRAPH_NAMES
    assert check_specs(specs) == []
    assert specs_from_json(specs_to_json(specs)) == specs


@every_case
def test_beam_search_finds_the_scores_of_the_model(case: Case) -> None:
    """Every hypothesis has the sum of its log-probabilities under teacher forcing, alone and unpadded."""
    model = case.build(torch.float32)
    made = sentences(model, LENGTHS)
    found = translate_batch(Checked(model), arrays(made), OPTIONS)
    for source, hypotheses in zip(made, found, strict=True):
        assert len(hypotheses) == 3
        for hypothesis in hypotheses:
            expected = log_probabilities(model, source, hypothesis)
            np.testing.assert_allclose(hypothesis.token_scores, expected.numpy(), atol=1e-4, rtol=0)
            assert hypothesis.score == pytest.approx(float(expected.sum()), abs=1e-4)


@every_case_slowly
def test_greedy_takes_the_most_probable_symbol(case: Case) -> None:
    model = case.build(torch.float32)
    made = sentences(model, LENGTHS)
    found = translate_batch(TorchGraphs(model), arrays(made), SearchOptions(beam_size=1, max_length=6))
    for source, (hypothesis,) in zip(made, found, strict=True):
        memory, prefix = model.encode(batch([source])), [BOS]
        while len(prefix) <= 6 and prefix[-1] != EOS:
            prefix.append(int(model.score(torch.tensor([prefix]), memory)[0, -1].argmax()))
        assert list(hypothesis.tokens) == [token for token in prefix[1:] if token != EOS]


@first_cases
def test_who_joins_late_or_leaves_early_changes_no_one_else(case: Case) -> None:
    """Rows of different age share a batch, and places and slots are used again."""
    model = case.build(torch.float32)
    graphs, made = TorchGraphs(model), arrays(sentences(model, (5, 2, 7, 4, 9, 1)))
    options = replace(OPTIONS, min_length=4)  # none is done before it is to leave
    alone = [translate_batch(graphs, [one], options)[0] for one in made]
    running = DecodeBatch(graphs, beam_size=3)
    arrivals = {0: [0, 1], 1: [2], 3: [3, 4], 4: [5]}
    found: dict[Any, tuple[Hypothesis, ...]] = {}
    for step in range(40):
        joiners = arrivals.get(step, [])
        if joiners:
            running.join([Sentence(index, made[index], options) for index in joiners])
        if step == 2:
            running.remove([0])
        found |= {finished.id: finished.hypotheses for finished in running.step()} if len(running) else {}
    assert set(found) == {1, 2, 3, 4, 5}
    for index, hypotheses in found.items():
        assert_same_hypotheses([hypotheses], [alone[index]])


@first_cases
def test_sampling_graph_and_search_graph_agree(case: Case) -> None:
    model = case.build(torch.float32)
    graphs = TorchGraphs(model)
    inputs = _first_step(graphs, model)
    shared = {tensor.name: inputs[tensor.name] for tensor in graphs.specs["step_logits"].inputs}
    logits_RV = graphs.run("step_logits", shared)["logits"].astype(np.float64)
    outputs = graphs.run("step", inputs)
    lse_R = np.log(np.exp(logits_RV).sum(-1))
    np.testing.assert_allclose(outputs["logsumexp"], lse_R, atol=1e-5)
    totals_RV = logits_RV - lse_R[:, None] + inputs["score"][:, None]
    best_RC = np.sort(totals_RV, axis=-1)[:, ::-1][:, :4]
    np.testing.assert_allclose(outputs["scores"], best_RC, atol=1e-5)
    np.testing.assert_array_equal(outputs["tokens"], np.argsort(-totals_RV, axis=-1)[:, :4])
    assert not outputs["parents"].any()


@first_cases
def test_probabilities_that_are_not_finite_show_in_the_log_sum_exp(case: Case) -> None:
    needs_training(case)
    model = case.build(torch.float32)
    model.prepare_for_inference()  # from then on the output layer's weight is a parameter, not derived from some
    weight, _ = model.output_parameters()
    weight[7] = math.nan
    graphs = TorchGraphs(model)
    assert np.isnan(graphs.run("step", _first_step(graphs, model))["logsumexp"]).all()


@every_case
def test_align_graph_is_the_models_alignment(case: Case) -> None:
    model = case.build(torch.float32)
    made = sentences(model, (5, 3))
    hypotheses = [[(5, 6), (7,)], [(8, 9, 4), ()]]
    for source, tokens, attentions in zip(
        made, hypotheses, align(Checked(model), arrays(made), hypotheses), strict=True
    ):
        for one, attention in zip(tokens, attentions, strict=True):
            expected = model.alignment(torch.tensor([[BOS, *one]]), model.encode(batch([source])))
            for found, alignment_RTS in zip(attention, expected, strict=True):
                np.testing.assert_allclose(found, alignment_RTS[0].numpy(), atol=1e-5)


@first_cases
def test_the_graphs_follow_the_weights(case: Case) -> None:
    """Validation makes them anew, but nothing may be frozen into them."""
    model = case.build(torch.float32)
    graphs = TorchGraphs(model)
    inputs = _first_step(graphs, model)
    before = graphs.run("step", inputs)["scores"]
    for parameter in model.parameters():
        parameter.mul_(1.5)
    assert not np.allclose(before, graphs.run("step", inputs)["scores"])


ROWS, SIZE = 3, 9
logit = st.floats(-5, 5, allow_nan=False, width=32)


@given(
    logits=st.lists(st.lists(logit, min_size=SIZE, max_size=SIZE, unique=True), min_size=ROWS, max_size=ROWS),
    banned=st.lists(st.lists(st.integers(0, SIZE), min_size=4, max_size=4), min_size=ROWS, max_size=ROWS),
    forced=st.lists(st.sampled_from([-1, -1, 0, 5]), min_size=ROWS, max_size=ROWS),
    count=st.integers(1, 12),
)
def test_best_per_row(logits: list[list[float]], banned: list[list[int]], forced: list[int], count: int) -> None:
    """Against a sort: what is banned never comes, what is forced comes alone, the rest is -inf."""
    given = torch.tensor(logits)
    best_RC, token_RC, lse_R = best_per_row(given, torch.tensor(banned), torch.tensor(forced), count)
    torch.testing.assert_close(lse_R, given.logsumexp(-1))
    scores = torch.log_softmax(given, dim=-1).tolist()
    for row in range(ROWS):
        allowed = [t for t in range(SIZE) if t not in banned[row]] if forced[row] < 0 else [forced[row]]
        expected = sorted((scores[row][t] for t in allowed), reverse=True)[:count]
        tokens = token_RC[row, : len(expected)].tolist()
        assert len(set(tokens)) == len(tokens)
        assert set(tokens) <= set(allowed)
        assert [scores[row][token] for token in tokens] == expected == best_RC[row, : len(expected)].tolist()
        assert (best_RC[row, len(expected) :] == -math.inf).all()


@pytest.mark.parametrize("size", [LEAST_BLOCKED, 2 * LEAST_BLOCKED, LEAST_BLOCKED + 1])
@pytest.mark.parametrize("count", [1, 10, LEAST_BLOCKED // 20])
def test_largest_of_blocks(size: int, count: int) -> None:
    """Against a sort of the whole, where many of the largest share a block and others are banned."""
    generator = torch.Generator().manual_seed(size)
    scores_RV = torch.randn(3, size, generator=generator)
    scores_RV[0, 300:340] += 9.0
    scores_RV[1, ::7] = -torch.inf
    best_RC, place_RC = largest(scores_RV, count)
    expected = scores_RV.sort(dim=-1, descending=True)
    assert best_RC.equal(expected.values[:, :count])
    assert place_RC.equal(expected.indices[:, :count])


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_not_finite_shows_in_the_log_sum_exp(wrong: float) -> None:
    logits = torch.zeros(2, SIZE)
    logits[0, 3] = wrong
    _, _, lse_R = best_per_row(logits, torch.full((2, 1), SIZE), torch.full((2,), -1), 4)
    assert torch.isfinite(lse_R).tolist() == [False, True]


def _first_step(graphs: TorchGraphs, model: AnyModel) -> dict[str, Array]:
    """The inputs of the step after one symbol, four candidates of each of two sentences, nothing banned or forced."""
    sources = batch(sentences(model, (4, 3)))
    encoded: dict[str, Array] = {}
    for index, source in enumerate(sources):
        encoded |= {f"source{index}": source.values.numpy(), f"source{index}.length": source.lengths.numpy()}
    inputs = graphs.run("encode", encoded)
    inputs |= {"token": targets(2, 1)[:, 0].numpy(), "parent": np.arange(2), "position": np.zeros(2, np.int64)}
    inputs |= {"score": np.array([-1.0, -2.5], np.float32), "banned": np.full((2, 1), TARGET_TYPES)}
    inputs |= {"forced": np.full(2, -1), "count": np.array(4)}
    for tensor in graphs.specs["step"].inputs:
        if tensor.name == "history":
            inputs["history"] = np.full((2, 1), -np.inf, np.float32)
        elif tensor.kind in ("rows", "pool"):
            sizes = [
                2 if axis in ("old_row", "sentence") else 1 for axis in tensor.axes if not axis.startswith("fixed")
            ]
            state = inputs.pop(f"init.{tensor.field}", np.zeros((*sizes, *tensor.fixed), np.float32))
            inputs[tensor.name] = state
    return inputs
