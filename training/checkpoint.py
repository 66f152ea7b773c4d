"""Checkpoints: one safetensors file each, holding everything that continuing needs. Nothing is ever unpickled.

Tensors: ``model.<name>``, ``optimiser.<parameter index>.<name>``, ``random.cpu`` and ``random.cuda``, with ``.<rank>``
for further processes; where the recipe asks for them ``ema.<name>`` and ``ema_updates``, the moving average of the
weights, and ``scaler.<name>``, the loss scale of fp16. Metadata: the progress and the recipe as JSON, and checksums of
these and of every tensor, which are compared where they are read; files of earlier versions have none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from tandem.models.architectures.registry import stored_keys
from tandem.models.errors import CheckpointError
from tandem.models.folders import complete_file
from tandem.models.steps.loading import fill, model_tensors
from tandem.training.checksums import tensor_checksum, text_checksum

EMA = "ema."
_MODEL = "model."
_FURTHER = ("ema_", "random.", "scaler.")
_NOTHING: Mapping[str, Tensor] = {}
_CHECKSUMS = "checksums"  # in the metadata
_METADATA = ""  # the metadata's own among them


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """Where training stands after an update.

    Attributes:
        update: updates made.
        epoch: the running epoch, from 0.
        batch: batches of that epoch already used.
        plateaus: how often the learning rate was divided.
        best: best validation value so far, higher is better; None before the first validation.
        stale: validations since the best one.
        target_tokens: target symbols trained on.
        seconds: time spent training, without validations and checkpoints.
        skipped: updates that changed nothing, since their gradient was not finite.
        skipped_last: how many of the last updates in a row those are.
        vocabularies: SHA-256 of those that the weights belong to; empty in checkpoints of earlier versions.
        shards: how many batches each of the epoch's shards has that is used up: they need not be planned once more.
        validated: the update of the last validation, whose values were numbers; 0 = there was none.
        precision: of the last updates' products, where the recipe says "auto" too; empty in those checkpoints likewise.
    """

    update: int = 0
    epoch: int = 0
    batch: int = 0
    plateaus: int = 0
    best: float | None = None
    stale: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    skipped: int = 0
    skipped_last: int = 0
    vocabularies: str = ""
    shards: tuple[int, ...] = ()
    precision: str = ""
    validated: int = 0


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    progress: TrainingProgress,
    recipe: dict[str, Any],
    further: Mapping[str, Tensor] = _NOTHING,
) -> None:
    """Write a checkpoint so that a reader, and who resumes after a power cut, finds the old file or the whole new one.

    ``further`` are tensors by their names in the file: moving averages, loss scale, other processes' generators.
    """
    tensors = {f"{_MODEL}{name}": tensor for name, tensor in model_tensors(model).items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {
            f"optimiser.{index}.{key}": torch.as_tensor(value) for key, value in state.items() if value is not None
        }
    tensors |= {**random_states(), **further}
    _save(path, {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}, progress, recipe)


def save_weights(
    path: Path, tensors: Mapping[str, Tensor], progress: TrainingProgress, recipe: Mapping[str, Any]
) -> None:
    """Write weights alone, in 16 bits as a bundle has them: a checkpoint to make a bundle of, not to go on from.

    Raises:
        CheckpointError: a weight does not fit 16 bits, or the file cannot be written.
    """
    narrow = {name: tensor.half().contiguous() for name, tensor in tensors.items()}
    if wide := [name for name, tensor in narrow.items() if not bool(torch.isfinite(tensor).all())]:
        raise CheckpointError(
            f"weights must be below 65,504 to be written in 16 bits, but are not in {', '.join(wide)}"
        )
    _save(path, {f"{_MODEL}{name}": tensor for name, tensor in narrow.items()}, progress, recipe)


def _save(path: Path, tensors: dict[str, Tensor], progress: TrainingProgress, recipe: Mapping[str, Any]) -> None:
    """Write a file; what could be written of it is removed where there is no room for all. Raises CheckpointError."""
    metadata = {"progress": json.dumps(asdict(progress)), "recipe": json.dumps(recipe), "format": "1"}
    checksums = {name: tensor_checksum(tensor) for name, tensor in tensors.items()}
    checksums[_METADATA] = text_checksum(metadata["progress"], metadata["recipe"])
    metadata[_CHECKSUMS] = json.dumps(checksums)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".partial")
    try:
        unfinished.unlink(missing_ok=True)
        unfinished.touch()
        mode = unfinished.stat().st_mode  # as the user's other files have it; safetensors' own nobody else may read
        save_file(tensors, unfinished, metadata)
        unfinished.chmod(mode)
        complete_file(unfinished, path)
    except (OSError, SafetensorError) as error:
        with suppress(OSError):
            unfinished.unlink()
        remedy = "make room there, or let it be written to; what was saved before is whole"
        raise CheckpointError(f"{path} cannot be written: {error}; {remedy}") from error


def random_states() -> dict[str, Tensor]:
    """The states of this process's random generators, by their names in a checkpoint."""
    states = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # a GPU that is there and not used stays so
        states["random.cuda"] = torch.cuda.get_rng_state()
    return states


def read_progress(path: Path) -> tuple[TrainingProgress, dict[str, Any]]:
    """Progress and recipe of a checkpoint.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata, names = file.metadata(), file.keys()
        _check(path, metadata, {})
        stored, recipe = json.loads(metadata["progress"]), json.loads(metadata["recipe"])
        progress = TrainingProgress(**{**stored, "shards": tuple(stored.get("shards", ()))})
        model = stored_keys(recipe.get("architecture", ""), recipe.get("model", {}), names)
        return progress, recipe | ({"model": model} if model else {})
    except (OSError, SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: not a readable checkpoint ({error}): delete it and resume from an older one"
        ) from error


def load_model_tensors(path: Path) -> dict[str, Tensor]:
    """The weights to use of a checkpoint, by parameter name: the moving averages where it has them."""
    return _named(path, EMA if has_averages(path) else _MODEL)


def further_tensors(path: Path) -> dict[str, Tensor]:
    """What a checkpoint holds besides the model's weights and the optimiser's state, by its names in the file."""
    return {name: tensor for kind in (EMA, *_FURTHER) for name, tensor in _named(path, kind, whole=True).items()}


def has_averages(path: Path) -> bool:
    """Whether a checkpoint holds moving averages of the weights.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    read_progress(path)
    with safe_open(path, framework="pt") as file:
        return any(name.startswith(EMA) for name in file.keys())  # noqa: SIM118  # no mapping


def _named(path: Path, prefix: str, *, whole: bool = False) -> dict[str, Tensor]:
    """The tensors whose names begin so, by what follows or by the whole name; the others are not read."""
    with safe_open(path, framework="pt") as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
        tensors = {name: file.get_tensor(name) for name in names}
        _check(path, file.metadata(), tensors)
    return tensors if whole else {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


def _check(path: Path, metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    """Refuse what is no longer what was written. Raises CheckpointError."""
    checksums = json.loads(metadata.get(_CHECKSUMS, "null"))
    if checksums is None:
        return
    found = {name: tensor_checksum(tensor) for name, tensor in tensors.items()}
    found[_METADATA] = text_checksum(metadata["progress"], metadata["recipe"])
    if wrong := [name or "its progress and recipe" for name, one in found.items() if checksums.get(name) != one]:
        raise CheckpointError(
            f"{path} is damaged: {wrong[0]}{f' and {len(wrong) - 1} more' if len(wrong) > 1 else ''} has another"
            " checksum than when it was written. Delete it: --resume then goes on from the checkpoint before it, or"
            " copy it again from where it is whole; and look at the disk that it lies on"
        )


def load_into(model: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a model.

    Raises:
        CheckpointError: a tensor is missing, unknown or of another shape; the message lists them.
    """
    if faults := fill(model, tensors):
        raise CheckpointError(f"{where} does not fit the model: {'; '.join(faults)}")


def restore(path: Path, model: nn.Module, optimiser: torch.optim.Optimizer) -> TrainingProgress:
    """Put model, optimiser and random generators back to where the checkpoint was written.

    Raises:
        CheckpointError: the checkpoint is damaged or belongs to another model.
    """
    progress, _ = read_progress(path)
    tensors = _named(path, "", whole=True)
    load_into(model, {k.removeprefix(_MODEL): v for k, v in tensors.items() if k.startswith(_MODEL)}, str(path))
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            _, index, key = name.split(".", 2)
            state.setdefault(int(index), {})[key] = tensor
    packed = optimiser.state_dict()
    shapes = [parameter.shape for group in optimiser.param_groups for parameter in group["params"]]
    fits = all(index < len(shapes) and _fits(own, shapes[index]) for index, own in state.items())
    if not fits or "random.cpu" not in tensors:
        raise CheckpointError(f"{path}: the optimiser's state does not fit the model: resume from an older checkpoint")
    packed["state"] = state
    optimiser.load_state_dict(packed)
    set_random_states(tensors)
    return progress


def set_random_states(states: Mapping[str, Tensor]) -> None:
    """Set this process's random generators to what :func:`random_states` gave, as far as it is there."""
    if "random.cpu" in states:
        torch.set_rng_state(states["random.cpu"])
    if torch.cuda.is_initialized() and "random.cuda" in states:
        torch.cuda.set_rng_state(states["random.cuda"])


def _fits(state: dict[str, Tensor], shape: torch.Size) -> bool:
    return all(tensor.dim() == 0 or tensor.shape == shape for tensor in state.values())


def checkpoints(folder: Path) -> list[Path]:
    """The numbered checkpoints of a run, oldest first."""
    numbered = {path.stem.removeprefix("checkpoint-"): path for path in folder.glob("checkpoint-*.safetensors")}
    return [numbered[number] for number in sorted(filter(str.isdecimal, numbered), key=int)]


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the model tensors of several checkpoints (float64 accumulation).

    Raises:
        CheckpointError: none is given, they belong to different models, or several are given of which one holds moving
            averages: each of those is an average of its own already.
    """
    if not paths:
        raise CheckpointError("there is no checkpoint to average: train first")
    moving = [path for path in paths if len(paths) > 1 and has_averages(path)]
    if moving:
        raise CheckpointError(
            f"1 checkpoint with moving averages can be used at once, but {len(paths)} were asked for, and {moving[-1]}"
            " has them: average 1"
        )
    total = {name: tensor.double() for name, tensor in load_model_tensors(paths[0]).items()}
    for path in paths[1:]:
        tensors = load_model_tensors(path)
        if {k: t.shape for k, t in tensors.items()} != {k: t.shape for k, t in total.items()}:
            raise CheckpointError(f"{path} belongs to another model than {paths[0]}")
        for name, tensor in tensors.items():
            total[name] += tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
