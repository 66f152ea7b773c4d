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
from models.registry import ARCHITECTURES, build_model, load_config
from models.search import SearchOptions, translate_batch
from tests.models.architectures import BOS, EOS, FIRST, LEARNERS, AnyModel

TYPES, LONGEST, UPDATES, RATE = 12, 6, 500, 5e-3
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


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_learns(architecture: str, task: str) -> None:
    settings = LEARNERS[architecture]
    sizes = {"source_vocabularies": [TYPES] * settings.get("sources", 1), "target_vocabulary": TYPES, "dropout": 0.0}
    config = load_config(architecture, settings | sizes, architecture)
    model = build_model(architecture, config)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(1)
    for update in range(UPDATES):
        rate = RATE * min(1.0, (update + 1) / 50, (UPDATES - update) / 150)
        optimiser.param_groups[0]["lr"] = rate
        loss_of(model, pairs(64, task, generator)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    model.prepare_for_inference()

    held_out = pairs(200, task, generator)
    sources = [(F.pad(source, (0, 1), value=EOS).numpy(),) * len(sizes["source_vocabularies"]) for source, _ in held_out]
    found = translate_batch(TorchGraphs(model), sources, SearchOptions(beam_size=1, max_length=2 * LONGEST))
    exact = sum(hypotheses[0].tokens == tuple(target.tolist()) for hypotheses, (_, target) in zip(found, held_out, strict=True))
    assert exact >= 190, f"{exact} of 200 held-out sequences"
