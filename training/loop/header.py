"""What a training says first: how much is to be learnt from how much, and in what."""

from __future__ import annotations

import torch

from tandem.training.data.summary import PreparedSummary, SplitSummary
from tandem.training.loop.trainer import Trainer
from tandem.training.recipe import TrainingConfig


def header(trainer: Trainer) -> str:
    """The facts of a training in one line: parameters, pairs, batches, epochs, precision, threads, rewriters, seed."""
    training, train = trainer.recipe.training, PreparedSummary.load(trainer.data).splits["train"]
    parameters = list(trainer.model.parameters())
    count = sum(one.numel() for one in parameters)
    frozen = sum(one.numel() for one in parameters if not one.requires_grad)
    batches = batches_an_epoch(train, training)
    facts = [
        f"{count:,} parameters" + (f" ({frozen:,} frozen)" if frozen else ""),
        f"{train.pairs:,} pairs in about {batches:,} batches an epoch",
        f"{training.updates:,} updates (about {training.updates * training.accumulate / batches:.1f} epochs)",
        trainer.choice.precision,
        *_place(trainer),
        f"seed {training.seed}",
    ]
    return f"{trainer.recipe.name}: {', '.join(facts)}"


def batches_an_epoch(train: SplitSummary, training: TrainingConfig) -> int:
    """About how many batches all pairs make: as many as their symbols fill, without padding."""
    symbols = max(train.source_tokens, default=0) + train.target_tokens + train.pairs  # and EOS
    filled = -(-symbols // (2 * training.batch_tokens))
    full = -(-train.pairs // training.batch_sentences) if training.batch_sentences else 0
    return max(1, filled, full)


def _place(trainer: Trainer) -> list[str]:
    processes = trainer.processes
    place = processes.device if processes.device.startswith("cuda") else f"{torch.get_num_threads()} threads"
    rewriters = [f"{trainer.rewriters} rewriters"] if trainer.rewriters else []
    return [place if processes.count == 1 else f"{processes.count} processes, each {place}", *rewriters]
