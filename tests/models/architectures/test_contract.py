"""The contract of models/architectures/protocol.py, demanded of every registered architecture and variant.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, S source positions, T target positions, V vocabulary.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tandem.models.architectures.protocol import count_parameters
from tandem.models.architectures.records import Memory, State
from tandem.models.architectures.registry import ARCHITECTURES, build_model, load_config
from tandem.models.errors import DecodingError
from tests.models.architectures.examples import (
    BOS,
    CASES,
    FIRST,
    FIRST_CASES,
    FRESH,
    LEARNERS,
    RARE,
    TARGET_TYPES,
    VARIANTS,
    AnyModel,
    Case,
    batch,
    every_case,
    every_case_slowly,
    first_cases,
    needs_training,
    random_ids,
    sentences,
    targets,
)

LENGTHS = (5, 2, 7)
pytestmark = pytest.mark.usefixtures("no_gradients")


def test_every_registered_architecture_is_tested() -> None:
    assert set(VARIANTS) == set(LEARNERS) == set(FRESH) == set(ARCHITECTURES)
    assert {str(case) for case in CASES if case not in FIRST_CASES}.issuperset(RARE)


class Beam:
    """Rows that are stepped, reordered, repeated and dropped, with each row's own prefix remembered."""

    def __init__(self, model: AnyModel, memory: Memory, count: int) -> None:
        self.model, self.memory = model, memory
        self.sentence_R = torch.arange(count)
        self.prefix_RT = torch.full((count, 1), BOS)
        self.state: State = model.init_state(memory, 1)

    def step(self) -> Tensor:
        """Logits of each row after its prefix."""
        logits_RV, self.state = self.model.step(self.prefix_RT[:, -1], self.state, self.memory)
        return logits_RV

    def reorder(self, parent_R: Tensor, seed: int) -> None:
        """Continue the chosen rows with random symbols."""
        self.state = self.state.select(parent_R)
        self.sentence_R = self.sentence_R[parent_R]
        symbols_R1 = random_ids(TARGET_TYPES, len(parent_R), 1, seed=seed)
        self.prefix_RT = torch.cat([self.prefix_RT[parent_R], symbols_R1], dim=1)

    def choose(self, rows: int, seed: int) -> Tensor:
        """``rows`` random parents of each sentence: some twice, some never, in any order."""
        count = int(self.sentence_R.max()) + 1
        old = len(self.sentence_R) // count
        chosen_BK = torch.randint(old, (count, rows), generator=torch.Generator().manual_seed(seed))
        return (chosen_BK + torch.arange(count)[:, None] * old).reshape(-1)

    def walk(self, rows: tuple[int, ...]) -> None:
        """One step and one random reordering for each entry: so many rows a sentence follow."""
        for seed, count in enumerate(rows):
            self.step()
            self.reorder(self.choose(count, seed), seed)


@pytest.mark.parametrize(
    ("case", "dtype", "tolerance"),
    [pytest.param(case, torch.float64, 1e-9, id=f"{case}-f64") for case in CASES]
    + [pytest.param(case, torch.float32, 1e-5, id=f"{case}-f32") for case in FIRST_CASES],
)
def test_step_gives_the_logits_of_score(case: Case, dtype: torch.dtype, tolerance: float) -> None:
    """In a padded batch, whatever the beam did, each row has the logits that its sentence and prefix have alone."""
    model = case.build(dtype)
    made = sentences(model, LENGTHS)
    beam = Beam(model, model.encode(batch(made, extra=2, filler=5)), len(made))
    alone = [model.encode(batch([one])) for one in made]
    for seed, rows in enumerate((3, 3, 4, 1, 2)):
        logits_RV = beam.step()
        assert logits_RV.dtype == dtype
        for sentence, memory in enumerate(alone):
            own_R = beam.sentence_R == sentence
            prefix_KT = beam.prefix_RT[own_R]
            expected_KTV = model.score(prefix_KT, memory.select(torch.zeros(len(prefix_KT), dtype=torch.int64)))
            torch.testing.assert_close(logits_RV[own_R], expected_KTV[:, -1], atol=tolerance, rtol=0)
        beam.reorder(beam.choose(rows, seed), seed)


@every_case_slowly
def test_step_returns_float32_from_lower_precision(case: Case) -> None:
    model = case.build(torch.float32)
    memory = model.encode(batch(sentences(model, LENGTHS)))
    with torch.autocast("cpu", torch.bfloat16):
        logits_RV, _ = model.step(torch.full((3,), BOS), model.init_state(memory, 1), memory)
    assert logits_RV.dtype == torch.float32


@every_case
def test_select_commutes_with_step(case: Case) -> None:
    model = case.build()
    beam = Beam(model, model.encode(batch(sentences(model, LENGTHS))), 3)
    beam.walk((3, 3, 3))
    token_R, parent_R = beam.prefix_RT[:, -1], beam.choose(2, seed=11)
    logits_RV, after = model.step(token_R, beam.state, beam.memory)
    selected_RV, selected = model.step(token_R[parent_R], beam.state.select(parent_R), beam.memory)
    torch.testing.assert_close(selected_RV, logits_RV[parent_R], atol=1e-12, rtol=0)

    # The two states hold the same histories, if in other slots.
    next_R = random_ids(TARGET_TYPES, len(parent_R), seed=12)
    one_RV, _ = model.step(next_R, after.select(parent_R), beam.memory)
    other_RV, _ = model.step(next_R, selected, beam.memory)
    torch.testing.assert_close(one_RV, other_RV, atol=1e-12, rtol=0)


@every_case_slowly
def test_memory_select_reorders_repeats_and_drops(case: Case) -> None:
    model = case.build()
    memory = model.encode(batch(sentences(model, LENGTHS)))
    chosen, target_BT = torch.tensor([2, 0, 2]), targets(3, 4)
    logits_BTV = model.score(target_BT, memory.select(chosen))
    expected_BTV = _by_row(model, target_BT, memory, chosen)
    torch.testing.assert_close(logits_BTV, expected_BTV, atol=1e-12, rtol=0)
    for name, _, tensor in memory.tensors():
        assert tensor.size(0) == 3, f"{name} is not sentence-first"


@every_case
def test_batch_mates_and_padding_change_nothing(case: Case) -> None:
    """Not even symbols left over in the padding."""
    model = case.build()
    made, target_BT = sentences(model, LENGTHS), targets(3, 6)
    together_BTV = model.score(target_BT, model.encode(batch(made, extra=3, filler=6)))
    for row, one in enumerate(made):
        alone_TV = model.score(target_BT[row : row + 1], model.encode(batch([one])))[0]
        torch.testing.assert_close(together_BTV[row], alone_TV, atol=1e-12, rtol=0)


@every_case
def test_no_position_sees_what_follows(case: Case) -> None:
    model = case.build()
    memory = model.encode(batch(sentences(model, LENGTHS)))
    target_BT = targets(3, 6)
    another_BT = FIRST + (target_BT - FIRST + 1) % (TARGET_TYPES - FIRST)
    other_BT = torch.cat([target_BT[:, :3], another_BT[:, 3:]], dim=1)
    one_BTV, other_BTV = model.score(target_BT, memory), model.score(other_BT, memory)
    torch.testing.assert_close(one_BTV[:, :3], other_BTV[:, :3], atol=1e-12, rtol=0)
    assert (one_BTV[:, 3:] - other_BTV[:, 3:]).abs().amax(-1).min() > 1e-6


@every_case_slowly
def test_the_source_and_the_prefix_matter(case: Case) -> None:
    """The other tests would hold of a model that ignored its inputs."""
    model = case.build()
    target_BT = targets(2, 4)
    logits_BTV = model.score(target_BT, model.encode(batch(sentences(model, (6, 6)))))
    other_BTV = model.score(target_BT, model.encode(batch(sentences(model, (6, 6), seed=90))))
    assert (logits_BTV - other_BTV).abs().amax(-1).min() > 1e-6


@every_case
@torch.enable_grad()
def test_every_parameter_gets_a_gradient(case: Case) -> None:
    model = case.build().train()
    target_BT = targets(3, 5)
    logits_BTV = model.score(target_BT, model.encode(batch(sentences(model, LENGTHS))))
    F.cross_entropy(logits_BTV.flatten(0, 1), random_ids(TARGET_TYPES, 15, seed=1)).backward()
    without = [
        name
        for name, parameter in model.named_parameters()
        # A bias of the keys moves all logits of a softmax alike: its gradient is 0 but for rounding.
        if parameter.grad is None or (not parameter.grad.any() and not name.endswith("source_keys.bias"))
    ]
    assert without == []


@every_case
def test_prepare_for_inference_changes_no_output(case: Case) -> None:
    model = case.build(dropout=0.3).train()
    made, target_BT = sentences(model, LENGTHS), targets(3, 5)
    expected_BTV = model.eval().score(target_BT, model.encode(batch(made)))
    folded = case.build(dropout=0.3).train()
    folded.prepare_for_inference()
    assert not folded.training
    torch.testing.assert_close(folded.score(target_BT, folded.encode(batch(made))), expected_BTV, atol=1e-12, rtol=0)
    assert not [name for name in folded.state_dict() if name.endswith("gain")]
    folded.prepare_for_inference()  # a second time does nothing
    torch.testing.assert_close(folded.score(target_BT, folded.encode(batch(made))), expected_BTV, atol=1e-12, rtol=0)


@every_case_slowly
def test_dropout_acts_in_training_alone(case: Case) -> None:
    needs_training(case)
    model = case.build(torch.float32, dropout=0.3)
    made, target_BT = sentences(model, LENGTHS), targets(3, 5)

    def score() -> Tensor:
        return model.score(target_BT, model.encode(batch(made)))

    assert score().equal(score())
    model.train()
    assert not score().equal(score())
    torch.manual_seed(5)
    first = score()
    torch.manual_seed(5)
    assert score().equal(first)


@every_case_slowly
def test_attention_weights_are_named_and_sum_to_one(case: Case) -> None:
    """Each by itself, or, where one softmax spans several things, what it gives all of them together."""
    model = case.build()
    sources = batch(sentences(model, LENGTHS), extra=2)
    memory, target_RT = model.encode(sources), targets(6, 4)
    weights = model.attention(target_RT, memory)
    lengths = {source.values.size(1): source for source in sources}
    assert lengths.keys() <= {weight_RTS.size(2) for weight_RTS in weights.values()}, "a source has no attention"
    one_RT = torch.ones(6, 4, dtype=torch.float64)
    shares: dict[str, Tensor] = {}
    for name, weight_RTS in weights.items():
        assert re.fullmatch(r"[a-z]\w*\.\d+\.\w+", name), f"{name} is not path.layer.source"
        assert weight_RTS.shape[:2] == (6, 4)
        assert (weight_RTS >= 0).all()
        if weight_RTS.size(2) in lengths:
            keep_RS = lengths[weight_RTS.size(2)].mask.repeat_interleave(2, dim=0)
            assert not weight_RTS.masked_select(~keep_RS[:, None, :]).any()
        total_RT, layer = weight_RTS.sum(-1), name.rpartition(".")[0]
        if not torch.allclose(total_RT, one_RT, atol=1e-12, rtol=0):
            shares[layer] = shares.get(layer, 0 * one_RT) + total_RT
    for layer, total_RT in shares.items():
        torch.testing.assert_close(total_RT, one_RT, atol=1e-12, rtol=0, msg=f"{layer} does not sum to one")


@every_case
def test_attention_is_that_of_score(case: Case) -> None:
    """Asking for the weights changes no output, and rows of one sentence have the weights they have alone."""
    model = case.build()
    memory, target_RT = model.encode(batch(sentences(model, LENGTHS))), targets(6, 4)
    weights = model.attention(target_RT, memory)
    alone = model.attention(target_RT, memory.select(torch.arange(3).repeat_interleave(2)))
    for name, weight_RTS in weights.items():
        torch.testing.assert_close(weight_RTS, alone[name], atol=1e-12, rtol=0)


@every_case
def test_alignment_is_one_distribution_per_source(case: Case) -> None:
    model = case.build()
    sources = batch(sentences(model, LENGTHS))
    alignments = model.alignment(targets(6, 4), model.encode(sources))
    assert len(alignments) == len(sources)
    for alignment_RTS, source in zip(alignments, sources, strict=True):
        assert alignment_RTS.shape == (6, 4, source.values.size(1))
        torch.testing.assert_close(alignment_RTS.sum(-1), torch.ones(6, 4, dtype=torch.float64), atol=1e-12, rtol=0)


@every_case_slowly
def test_parameter_parts_add_up(case: Case) -> None:
    model = case.build()
    parts = model.parameter_parts()
    assert sum(parts.values()) == count_parameters(model)
    assert min(parts.values()) >= 0
    model.prepare_for_inference()
    assert sum(model.parameter_parts().values()) == count_parameters(model)


@every_case
def test_output_parameters_give_the_logits(case: Case) -> None:
    """The loss and export project with them instead of calling ``score``."""
    needs_training(case)
    model = case.build()
    memory, target_BT = model.encode(batch(sentences(model, LENGTHS))), targets(3, 4)
    weight_VD, bias_V = model.output_parameters()
    assert weight_VD.size(0) == TARGET_TYPES
    logits_BTV = model.decode(target_BT, memory) @ weight_VD.mT + (0 if bias_V is None else bias_V)
    torch.testing.assert_close(logits_BTV, model.score(target_BT, memory), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("architecture", "positions"),
    [("dpn", {}), ("layerwise", {}), ("convs2s", {})]
    + [("transformer", {"positions": positions}) for positions in ("learned", "sinusoidal")],
)
def test_a_source_beyond_the_positions_is_refused(architecture: str, positions: dict[str, Any]) -> None:
    keys = next(iter(VARIANTS[architecture].values())) | {"max_positions": 4} | positions
    model = build_model(architecture, load_config(architecture, keys, "x"))
    with pytest.raises(DecodingError, match="5 symbols exceeds the model's 4 positions"):
        model.encode(batch(sentences(model, (5,))))


@first_cases
def test_the_seed_decides_the_initial_values(case: Case) -> None:
    config = case.build().config

    def initial(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return build_model(case.architecture, config).state_dict()

    one, same, other = initial(1), initial(1), initial(2)
    assert all(tensor.equal(same[name]) for name, tensor in one.items())
    assert any(not tensor.equal(other[name]) for name, tensor in one.items())


@first_cases
def test_a_fresh_model_predicts_nearly_evenly(case: Case) -> None:
    """The first loss is log V and what the initial scale adds: logits 1.6 times as large or small would show.

    Each symbol counts alike here, and five models together, so that little of it is chance.
    """
    config = case.build().config
    excess = []
    for seed in range(5):
        torch.manual_seed(seed)
        model = build_model(case.architecture, config).double()
        logits_BTV = model.score(targets(3, 6), model.encode(batch(sentences(model, LENGTHS))))
        excess.append(float((logits_BTV.logsumexp(-1) - logits_BTV.mean(-1)).mean()) - math.log(TARGET_TYPES))
    assert FRESH[case.architecture] / 2.5 < sum(excess) / len(excess) < FRESH[case.architecture] * 2.5


def _by_row(model: AnyModel, target_BT: Tensor, memory: Memory, chosen: Tensor) -> Tensor:
    """Each target scored against its own sentence of the whole memory."""
    count = next(tensor.size(0) for _, _, tensor in memory.tensors())
    rows = [model.score(one.expand(count, -1), memory)[row] for one, row in zip(target_BT, chosen, strict=True)]
    return torch.stack(rows)
