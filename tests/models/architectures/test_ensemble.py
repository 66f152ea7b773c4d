"""Ensembles: the mean of the members' probabilities, and nothing else of their own.

Shape suffixes: B sentences, T target positions, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tandem.models.architectures.ensemble import Ensemble, EnsembleConfig, MemberConfig, log_mean
from tandem.models.architectures.records import Record
from tandem.models.architectures.registry import build_model, load_config
from tandem.models.errors import ConfigError
from tandem.models.search import Hypothesis, SearchOptions, align, translate_batch
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import (
    FIRST_CASES,
    TARGET_TYPES,
    VARIANTS,
    AnyModel,
    Case,
    arrays,
    batch,
    sentences,
    targets,
)
from tests.models.search.tables import assert_same_hypotheses

LENGTHS = (5, 2, 7)
DPN, TRANSFORMER = Case("dpn", "both-both"), Case("transformer", "pre-learned-none")
pytestmark = pytest.mark.usefixtures("no_gradients")


def ensemble_of(members: Sequence[AnyModel], cases: Sequence[Case]) -> Ensemble:
    """The members as one model."""
    listed = tuple(MemberConfig(case.architecture, VARIANTS[case.architecture][case.variant]) for case in cases)
    sizes = (members[0].config.source_vocabularies, members[0].config.target_vocabulary)
    return Ensemble(EnsembleConfig(*sizes, listed), members).eval()


def pair() -> tuple[Ensemble, list[AnyModel]]:
    """An ensemble of two architectures, and its members."""
    members = [case.build() for case in (DPN, TRANSFORMER)]
    return ensemble_of(members, (DPN, TRANSFORMER)), members


def probabilities(model: AnyModel, target_BT: Tensor) -> NDArray[np.float64]:
    """What a model gives every symbol of the vocabulary, by NumPy."""
    logits_BTV = model.score(target_BT, model.encode(batch(sentences(model, LENGTHS)))).numpy()
    power_BTV = np.exp(logits_BTV - logits_BTV.max(-1, keepdims=True))
    found: NDArray[np.float64] = power_BTV / power_BTV.sum(-1, keepdims=True)
    return found


def searched(model: AnyModel) -> list[list[Hypothesis]]:
    """Beam search over the model's graphs."""
    options = SearchOptions(beam_size=3, n_best=3, max_length=8, coverage_penalty=0.3)
    return translate_batch(TorchGraphs(model), arrays(sentences(model, LENGTHS)), options)


def test_it_predicts_the_mean_of_the_probabilities() -> None:
    cases = (DPN, TRANSFORMER, Case("dpn", "san-cnn"))
    members = [case.build(seed=seed) for seed, case in enumerate(cases)]
    target_BT = targets(3, 6)
    expected_BTV = np.mean([probabilities(member, target_BT) for member in members], axis=0)
    model = ensemble_of(members, cases)
    logits_BTV = model.score(target_BT, model.encode(batch(sentences(model, LENGTHS))))
    np.testing.assert_allclose(logits_BTV.exp().numpy(), expected_BTV, atol=1e-12)


def test_the_mean_of_tiny_probabilities_is_finite() -> None:
    """Far below what a float32 holds: what is forced may be as improbable as it likes."""
    found = log_mean([torch.tensor([[-200.0, -300.0]]), torch.tensor([[-201.0, -500.0]])])
    expected = [[-200 + math.log((1 + math.exp(-1)) / 2), -300 - math.log(2)]]
    torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("case", [one for one in FIRST_CASES if one.trainable], ids=str)
def test_an_ensemble_of_one_is_its_member(case: Case) -> None:
    member = case.build(torch.float32)
    assert_same_hypotheses(searched(ensemble_of([member], [case])), searched(member), 1e-5)


def test_records_are_the_members_side_by_side() -> None:
    """Every tensor of a member is there under a name of its own, declared as the member declares it."""
    model, members = pair()
    sources = batch(sentences(model, LENGTHS))
    memory = model.encode(sources)

    def declared(record: Record, prefix: str = "") -> dict[str, Any]:
        return {f"{prefix}{name}": (dict(item.metadata), tensor.shape) for name, item, tensor in record.tensors()}

    memories = [member.encode(sources) for member in members]
    assert declared(memory) == declared(memories[0], "member0_") | declared(memories[1], "member1_")
    states = [member.init_state(part, 2) for member, part in zip(members, memories, strict=True)]
    common = ("position_R", "history_RP")
    own = [
        {f"member{k}_{name}": value for name, value in declared(state).items() if name not in common}
        for k, state in enumerate(states)
    ]
    shared = {name: value for name, value in declared(states[0]).items() if name in common}
    assert declared(model.init_state(memory, 2)) == shared | own[0] | own[1]


def test_attention_is_the_members_and_alignment_their_mean() -> None:
    model, members = pair()
    sources, target_BT = batch(sentences(model, LENGTHS)), targets(3, 4)
    found = model.attention(target_BT, model.encode(sources))
    parts = [member.attention(target_BT, member.encode(sources)) for member in members]
    assert list(found) == [f"member{k}_{name}" for k, part in enumerate(parts) for name in part]
    for number, part in enumerate(parts):
        for name, weight in part.items():
            torch.testing.assert_close(found[f"member{number}_{name}"], weight, atol=1e-12, rtol=0)
    (alignment,) = model.alignment(target_BT, model.encode(sources))
    own = [member.alignment(target_BT, member.encode(sources))[0] for member in members]
    torch.testing.assert_close(alignment, (own[0] + own[1]) / 2, atol=1e-12, rtol=0)


def test_a_recurrent_member_makes_it_recurrent() -> None:
    """Then attention is read position by position, of members that could do it at once too."""
    cases = (DPN, Case("memd", "3-encoders-3-decoders"))
    model = ensemble_of([case.build(torch.float32) for case in cases], cases)
    assert model.recurrent
    assert not ensemble_of([DPN.build()], [DPN]).recurrent
    (source,) = sentences(model, (5,))
    tokens = [[(5, 6), (7, 8, 9)]]
    (found,) = align(TorchGraphs(model), [tuple(ids.numpy() for ids in source)], tokens)
    for hypothesis, (attention,) in zip(tokens[0], found, strict=True):
        (expected,) = model.alignment(torch.tensor([[2, *hypothesis]]), model.encode(batch([source])))
        np.testing.assert_allclose(attention, expected[0].numpy(), atol=1e-5)


def test_one_members_nonsense_shows() -> None:
    """A probability that is not finite must not be averaged away."""
    cases = (DPN, TRANSFORMER)
    members = [case.build(torch.float32) for case in cases]
    members[1].output_parameters()[0][7] = math.nan
    model = ensemble_of(members, cases)
    memory = model.encode(batch(sentences(model, LENGTHS)))
    logits_RV, _ = model.step(torch.full((3,), 2), model.init_state(memory, 1), memory)
    assert not logits_RV.logsumexp(-1).isfinite().any()


def test_training_it_as_a_whole_is_refused() -> None:
    with pytest.raises(ConfigError, match="train its members apart"):
        ensemble_of([DPN.build()], [DPN]).output_parameters()


def test_parameters_are_counted_by_member() -> None:
    model, members = pair()
    parts = model.parameter_parts()
    assert parts["member0.cnn_encoder"] == members[0].parameter_parts()["cnn_encoder"]
    assert sum(parts.values()) == sum(sum(member.parameter_parts().values()) for member in members)


def test_members_take_the_ensembles_vocabularies() -> None:
    small = {"width": 8, "hidden": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_positions": 9}
    members = [{"architecture": "transformer", "config": small | {"max_positions": n}} for n in (16, 9)]
    mapping = {"source_vocabularies": [20], "target_vocabulary": TARGET_TYPES, "members": members}
    config = load_config("ensemble", mapping, "x")
    assert isinstance(config, EnsembleConfig)
    assert [one.target_vocabulary for one in config.configs()] == [TARGET_TYPES] * 2
    assert config.max_positions == 9
    assert isinstance(build_model("ensemble", config), Ensemble)


SIZES = {"source_vocabularies": [20], "target_vocabulary": TARGET_TYPES}
WRONG: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no members": ([], "at least one member"),
    "unknown architecture": ([{"architecture": "dnp"}], "unknown architecture 'dnp'"),
    "unknown key": ([{"architecture": "dpn", "config": {"widht": 1}}], r"members\[0\] config has no key 'widht'"),
    "other vocabulary": (
        [{"architecture": "dpn"}, {"architecture": "dpn", "config": {"target_vocabulary": 5}}],
        r"member 1 has the vocabularies \(\(20,\), 5\)",
    ),
    "an ensemble": (
        [{"architecture": "ensemble", "config": {"members": [{"architecture": "dpn"}]}}],
        "member 0 is an ensemble itself",
    ),
}


@pytest.mark.parametrize(("members", "message"), WRONG.values(), ids=list(WRONG))
def test_members_that_do_not_fit_are_refused(members: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config("ensemble", SIZES | {"members": members}, "x")


def test_the_records_of_equal_members_are_of_one_kind() -> None:
    """Records are compared, selected and rebuilt by their type."""
    one, other = (ensemble_of([DPN.build(seed=seed)], [DPN]) for seed in (1, 2))
    sources = batch(sentences(one, LENGTHS))
    assert type(one.encode(sources)) is type(other.encode(sources))
    memory = one.encode(sources)
    assert type(replace(memory)) is type(memory)
