"""Every architecture learns to copy and to reverse: attention, order and the end of a sentence all have to work.

A model of several sources also learns what takes all of them, an ensemble what its members learnt.

Shape suffixes: B sentences, S source positions, T target positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from tandem.models.architectures.ensemble import Ensemble, EnsembleConfig, MemberConfig
from tandem.models.architectures.protocol import Padded
from tandem.models.architectures.registry import build_model, load_config
from tandem.models.search import SearchOptions, translate_batch
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import BOS, EOS, FIRST, FIRST_CASES, LEARNERS, AnyModel, Case

TYPES, LONGEST, UPDATES, RATE = 12, 6, 300, 1e-2
LEARNT = 0.02  # nats a symbol of fresh examples; five batches in a row below it end the training
pytestmark = pytest.mark.slow  # tests/test_end_to_end.py trains, and to copy, every day
Example = tuple[tuple[Tensor, ...], Tensor]
"""The sources and the target, all equally long and without EOS."""


def repeated(make: Callable[[Tensor], Tensor]) -> Callable[..., Example]:
    """A task of one sequence, which every source is."""
    return lambda *sources: ((sources[0],) * len(sources), make(sources[0]))


def halves(first: Tensor, second: Tensor) -> Example:
    """The first half of one source, the second half of the other: neither tells the whole target."""
    middle = len(first) // 2
    return (first, second), torch.cat([first[:middle], second[middle:]])


TASKS: dict[str, Callable[..., Example]] = {
    "copy": repeated(lambda ids: ids),
    "reverse": repeated(lambda ids: ids.flip(0)),
    "halves": halves,
}


def examples_of(count: int, task: str, sources: int, generator: torch.Generator) -> list[Example]:
    """Random sequences of one to six symbols, and what should become of them."""
    lengths = torch.randint(1, LONGEST + 1, (count,), generator=generator).tolist()
    drawn = [torch.randint(FIRST, TYPES, (sources, length), generator=generator) for length in lengths]
    return [TASKS[task](*one) for one in drawn]


def loss_of(model: AnyModel, examples: list[Example]) -> Tensor:
    ids_EBS = torch.stack([ended(column) for column in zip(*(sources for sources, _ in examples), strict=True)])
    target_BT = ended([target for _, target in examples])
    lengths = torch.tensor([len(target) + 1 for _, target in examples])
    shifted_BT = torch.cat([torch.full((len(examples), 1), BOS), target_BT[:, :-1]], dim=1)
    logits_BTV = model.score(shifted_BT, model.encode(tuple(Padded(ids_BS, lengths) for ids_BS in ids_EBS)))
    return F.cross_entropy(logits_BTV.flatten(0, 1), target_BT.flatten(), ignore_index=0)


def ended(sequences: Sequence[Tensor]) -> Tensor:
    """Sequences side by side, each with EOS and then zeros."""
    return pad_sequence([F.pad(one, (0, 1), value=EOS) for one in sequences], batch_first=True)


def configured(keys: dict[str, Any], sources: int) -> dict[str, Any]:
    """The keys of a model of the toy vocabularies."""
    return keys | {"source_vocabularies": [TYPES] * sources, "target_vocabulary": TYPES, "dropout": 0.0}


def train(architecture: str, keys: dict[str, Any], task: str, generator: torch.Generator) -> AnyModel:
    model = build_model(architecture, load_config(architecture, keys, architecture))
    sources = len(keys["source_vocabularies"])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98))
    losses = [math.inf]
    for update in range(UPDATES):
        if max(losses[-5:]) < LEARNT:
            break
        optimiser.param_groups[0]["lr"] = RATE * min(1.0, (update + 1) / 50, (UPDATES - update) / 150)
        loss = loss_of(model, examples_of(64, task, sources, generator))
        loss.backward()
        losses.append(float(loss.detach()))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    model.prepare_for_inference()
    return model


def check(model: AnyModel, task: str, generator: torch.Generator) -> None:
    """Greedy search gets 95% of 200 unseen sequences exactly right."""
    held_out = examples_of(200, task, len(model.config.source_vocabularies), generator)
    sources = [tuple(F.pad(source, (0, 1), value=EOS).numpy() for source in one) for one, _ in held_out]
    found = translate_batch(TorchGraphs(model), sources, SearchOptions(beam_size=1, max_length=2 * LONGEST))
    expected = [tuple(target.tolist()) for _, target in held_out]
    exact = sum(hypotheses[0].tokens == target for hypotheses, target in zip(found, expected, strict=True))
    assert exact >= 190, f"{exact} of 200 held-out sequences"


@pytest.mark.parametrize(
    ("case", "task"),
    [(case, task) for case in FIRST_CASES if case.trainable for task in ("copy", "reverse")],
    ids=str,
)
def test_learns(case: Case, task: str) -> None:
    generator = torch.Generator().manual_seed(1)
    keys = configured(LEARNERS[case.architecture], len(case.build().config.source_vocabularies))
    check(train(case.architecture, keys, task, generator), task, generator)


def test_learns_what_takes_both_sources() -> None:
    """The strategy, decoder and sentinel that the learner of all tasks does not have."""
    generator = torch.Generator().manual_seed(1)
    keys = LEARNERS["multisource"] | {"strategy": "hierarchical", "decoder": "cgru", "sentinel": True}
    check(train("multisource", configured(keys, 2), "halves", generator), "halves", generator)


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_learns_with_a_history_of_fixed_size(task: str) -> None:
    generator = torch.Generator().manual_seed(1)
    keys = configured(LEARNERS["transformer"] | {"history": "ssru"}, 1)
    check(train("transformer", keys, task, generator), task, generator)


@pytest.mark.parametrize(
    ("architecture", "layers"),
    [("layerwise", {"layers": 10}), ("transformer", {"encoder_layers": 5, "decoder_layers": 5})],
    ids=["layerwise", "transformer"],
)
def test_learns_with_ten_layers(architecture: str, layers: dict[str, int]) -> None:
    """What one or two layers learn wherever their norms stand, ten learn with them in front."""
    generator = torch.Generator().manual_seed(1)
    keys = configured(LEARNERS[architecture] | layers, 1)
    check(train(architecture, keys, "copy", generator), "copy", generator)


def test_an_ensemble_knows_what_its_members_learnt() -> None:
    generator = torch.Generator().manual_seed(1)
    listed = tuple(
        MemberConfig(one["architecture"], configured(one["config"], 1)) for one in LEARNERS["ensemble"]["members"]
    )
    members = [train(one.architecture, one.config, "copy", generator) for one in listed]
    check(Ensemble(EnsembleConfig((TYPES,), TYPES, listed), members).eval(), "copy", generator)
