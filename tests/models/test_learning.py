"""Every architecture learns to copy and to reverse: attention, order and the end of a sentence all have to work.

Shape suffixes: B sentences, S source positions, T target positions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from models.graphs import TorchGraphs
from models.protocol import Padded
from models.registry import build_model, load_config
from models.search import SearchOptions, translate_batch
from tests.models.architectures import BOS, EOS, FIRST, FIRST_CASES, LEARNERS, AnyModel, Case, needs_training

TYPES, LONGEST, UPDATES, RATE = 12, 6, 300, 1e-2
TASKS: dict[str, Callable[[Tensor], Tensor]] = {"copy": lambda ids: ids, "reverse": lambda ids: ids.flip(0)}


def pairs(count: int, task: str, generator: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    """Random sequences of one to six symbols without EOS, and what should become of them."""
    lengths = torch.randint(1, LONGEST + 1, (count,), generator=generator).tolist()
    sources = [torch.randint(FIRST, TYPES, (length,), generator=generator) for length in lengths]
    return [(source, TASKS[task](source)) for source in sources]


def loss_of(model: AnyModel, examples: list[tuple[Tensor, Tensor]]) -> Tensor:
    size = max(len(source) for source, _ in examples) + 1
    source_BS, target_BT = (torch.zeros(len(examples), size, dtype=torch.int64) for _ in range(2))
    for row, (source, target) in enumerate(examples):
        source_BS[row, : len(source) + 1] = F.pad(source, (0, 1), value=EOS)
        target_BT[row, : len(target) + 1] = F.pad(target, (0, 1), value=EOS)
    lengths = torch.tensor([len(source) + 1 for source, _ in examples])
    sources = tuple(Padded(source_BS, lengths) for _ in model.config.source_vocabularies)
    shifted_BT = torch.cat([torch.full((len(examples), 1), BOS), target_BT[:, :-1]], dim=1)
    logits_BTV = model.score(shifted_BT, model.encode(sources))
    return F.cross_entropy(logits_BTV.flatten(0, 1), target_BT.flatten(), ignore_index=0)


def train(architecture: str, sources: int, task: str, generator: torch.Generator) -> AnyModel:
    sizes = {"source_vocabularies": [TYPES] * sources, "target_vocabulary": TYPES, "dropout": 0.0}
    model = build_model(architecture, load_config(architecture, LEARNERS[architecture] | sizes, architecture))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98))
    for update in range(UPDATES):
        optimiser.param_groups[0]["lr"] = RATE * min(1.0, (update + 1) / 50, (UPDATES - update) / 150)
        loss_of(model, pairs(64, task, generator)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    model.prepare_for_inference()
    return model


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("case", FIRST_CASES, ids=lambda case: case.architecture)
def test_learns(case: Case, task: str) -> None:
    """Greedy search gets 95% of 200 unseen sequences exactly right."""
    needs_training(case)
    generator = torch.Generator().manual_seed(1)
    count = len(case.build().config.source_vocabularies)
    model = train(case.architecture, count, task, generator)
    held_out = pairs(200, task, generator)
    sources = [(F.pad(source, (0, 1), value=EOS).numpy(),) * count for source, _ in held_out]
    found = translate_batch(TorchGraphs(model), sources, SearchOptions(beam_size=1, max_length=2 * LONGEST))
    expected = [tuple(target.tolist()) for _, target in held_out]
    exact = sum(hypotheses[0].tokens == target for hypotheses, target in zip(found, expected, strict=True))
    assert exact >= 190, f"{exact} of 200 held-out sequences"
