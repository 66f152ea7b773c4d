"""What a run may change when it is continued, and the random generators of processes that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from tandem.models.errors import CheckpointError, ConfigError
from tandem.training.checkpoint import random_states, read_progress, set_random_states
from tandem.training.data.dataset import vocabulary_digest
from tandem.training.data.summary import BATCHING_FIELDS, differences_beside, listed_differences
from tandem.training.optimisation.determinism import seed_of
from tandem.training.parallel import Processes
from tandem.training.recipe import Recipe, recipe_from_mapping, recipe_mapping

# Training may be lengthened, validated, batched or computed otherwise, and slowed where it diverges.
_FREE = {
    *("about", "decoding", "licence", "published", "start"),
    *(f"data.{key}" for key in BATCHING_FIELDS),
    *(f"training.{key}" for key in ("updates", "validate_every", "validation_sentences", "save_every", "keep")),
    *(f"training.{key}" for key in ("average", "log_every", "patience", "max_skipped", "recompute", "deterministic")),
    *("training.compile", "training.precision", "training.start_share"),
    *(f"optimiser.{key}" for key in ("learning_rate", "cooldown", "clip_norm")),
}


def check_recipe(path: Path, recipe: Recipe) -> None:
    """Refuse to continue a checkpoint with a recipe that differs from its own where it matters.

    Raises:
        CheckpointError: the checkpoint cannot be read, or belongs to another recipe; the message names the keys and
            both values of the first of them.
    """
    _, own = read_progress(path)
    with suppress(ConfigError):  # keys that were not known then had the values that are defaults now
        own = recipe_mapping(recipe_from_mapping(own, str(path)))
    if differing := differences_beside(_FREE, own, recipe_mapping(recipe)):
        raise CheckpointError(
            f"{path} was trained with another recipe: {listed_differences(differing)}; go on with the values that"
            " it had, or train anew in another folder (--run)"
        )


def check_vocabularies(path: Path, data: Path) -> None:
    """Refuse weights that belong to other vocabularies than prepared data's, each of whose numbers means another piece.

    Raises:
        CheckpointError: they do, or the checkpoint cannot be read.
    """
    own = read_progress(path)[0].vocabularies
    if own and own != vocabulary_digest(data):
        raise CheckpointError(
            f"{path} was trained with other vocabularies than those of {data}, which was prepared anew since or"
            " elsewhere: put the data there that it was trained on, or train anew in another folder (--run)"
        )


def check_same_update(processes: Processes, update: int) -> None:
    """Refuse to go on where the processes stand at different updates.

    Raises:
        CheckpointError: they have found different checkpoints; the message lists the updates by rank.
    """
    updates = processes.differing(update)
    if updates:
        raise CheckpointError(
            f"the processes must continue from one checkpoint, but by rank they found the updates {list(updates)}:"
            " the run's folder must be the same on every machine"
        )


def seed_process(seed: int, processes: Processes, update: int = 0) -> None:
    """Give every process but the first random numbers of its own, or all would drop out the same units."""
    if not processes.first:
        torch.manual_seed(seed_of(seed, processes.rank, update))


def states_of_others(processes: Processes) -> dict[str, Tensor]:
    """The states of the other processes' random generators, by their names in a checkpoint."""
    gathered = {name: processes.gather(state) for name, state in random_states().items()}
    return {f"{name}.{rank}": state for name, states in gathered.items() for rank, state in enumerate(states) if rank}


def restore_own_states(tensors: Mapping[str, Tensor], seed: int, processes: Processes, update: int) -> None:
    """Set the generators of a process that is not the first; one that is new is seeded by its rank and the update."""
    end = f".{processes.rank}"
    states = {name.removesuffix(end): state for name, state in tensors.items() if name.endswith(end)}
    if not processes.first:
        seed_process(seed, processes, update)
        set_random_states({name: state for name, state in states.items() if name.startswith("random.")})
