"""Checkpoints: everything comes back bit for bit, and what is damaged or foreign is refused by name."""

from __future__ import annotations

import errno
import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from tandem.models.errors import CheckpointError
from tandem.models.steps.loading import model_tensors
from tandem.training import checkpoint
from tandem.training.checkpoint import (
    TrainingProgress,
    average,
    checkpoints,
    load_into,
    load_model_tensors,
    read_progress,
    restore,
    save_checkpoint,
    save_weights,
)
from tandem.training.optimisation.optim import OptimiserConfig, build_optimiser
from tests.models.architectures.examples import FIRST_CASES, AnyModel, Case, batch, every_case, sentences, targets
from tests.posing import DEVICE, devices, posing

PROGRESS = TrainingProgress(7, 1, 3, 2, -1.25, 1, 999, 12.5, shards=(4, 9))
RECIPE = {"name": "r", "training": {"updates": 3}}
CASE = Case("transformer", "pre-learned-all")
ADAM, NAG = OptimiserConfig(), OptimiserConfig("nag", schedule="plateau")
ADADELTA = OptimiserConfig("adadelta", 1.0, "constant", epsilon=1e-6)


def trained(case: Case, config: OptimiserConfig = ADAM, *, seed: int = 1) -> tuple[AnyModel, torch.optim.Optimizer]:
    model = case.build(torch.float32, seed=seed, dropout=0.2).train()
    optimiser = build_optimiser(config, model)
    for _ in range(2):
        update(model, optimiser)
    return model, optimiser


def update(model: AnyModel, optimiser: torch.optim.Optimizer) -> None:
    optimiser.param_groups[0]["lr"] = 0.01
    model.score(targets(2, 4), model.encode(batch(sentences(model, (5, 3))))).square().mean().backward()
    optimiser.step()
    optimiser.zero_grad()


def state_of(model: AnyModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name, tensor in one.items() if not tensor.equal(other[name])] == []


EVERY_DAY = {(case, "adam") for case in FIRST_CASES} | {(CASE, name) for name in ("adam", "nag", "adadelta")}
"""Neither knows of the other: one optimiser with each architecture, and each with one."""


@pytest.mark.parametrize(
    ("case", "config"),
    [
        pytest.param(case, config, marks=[] if (case, config.name) in EVERY_DAY else pytest.mark.slow)
        for case, config in product((*FIRST_CASES, CASE), (ADAM, NAG, ADADELTA))
    ],
    ids=lambda value: value.name if isinstance(value, OptimiserConfig) else str(value),
)
def test_training_goes_on_bit_for_bit(case: Case, config: OptimiserConfig, tmp_path: Path) -> None:
    """Weights, moments and random numbers: with dropout, the next updates are the same."""
    model, optimiser = trained(case, config)
    path = tmp_path / "deep" / "checkpoint-7.safetensors"
    save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    saved = state_of(model)
    for _ in range(3):
        update(model, optimiser)

    other, other_optimiser = trained(case, config, seed=2)
    assert restore(path, other, other_optimiser) == PROGRESS
    assert_equal(state_of(other), saved)
    for _ in range(3):
        update(other, other_optimiser)
    assert_equal(state_of(other), state_of(model))


@pytest.mark.parametrize("config", [ADAM, NAG, ADADELTA], ids=lambda config: config.name)
def test_a_checkpoint_goes_from_the_cpu_to_a_device_and_back(
    config: OptimiserConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read lies where the model does, what is written on the CPU: a file knows of no device."""
    path, back = tmp_path / "checkpoint-7.safetensors", tmp_path / "checkpoint-8.safetensors"
    save_checkpoint(path, *trained(CASE, config), PROGRESS, RECIPE)
    read, written, model = load_file(path), dict[str, Tensor](), CASE.build(torch.float32)
    monkeypatch.setattr(checkpoint, "_save", lambda file, tensors, *_: (file.touch(), written.update(tensors)))
    with posing(model) as mode:
        posed = {name: mode.from_tensor(x) for name, x in read.items()}
        monkeypatch.setattr(checkpoint, "_named", lambda path, prefix, *, whole: posed)
        random = {"random.cpu": mode.from_tensor(read["random.cpu"])}  # generators are no tensors, and stay real
        monkeypatch.setattr(checkpoint, "random_states", lambda: random)
        monkeypatch.setattr(checkpoint, "set_random_states", lambda _: None)
        optimiser = build_optimiser(config, model)
        assert restore(path, model, optimiser) == PROGRESS
        state = [x for own in optimiser.state.values() for x in own.values() if x is not None]
        there = [x for x in state if x.dim() or optimiser.defaults.get("fused")]  # which counts there, too
        assert len(there) >= len(list(model.parameters()))
        assert devices([*model.parameters(), *there]) == {DEVICE}
        save_checkpoint(back, model, optimiser, PROGRESS, RECIPE)
    assert devices(written) == {torch.device("cpu")}
    assert {name: x.shape for name, x in written.items()} == {name: x.shape for name, x in read.items()}


@every_case
def test_every_variants_weights_come_back(case: Case, tmp_path: Path) -> None:
    model, path = case.build(torch.float32), tmp_path / "best.safetensors"
    save_checkpoint(path, model, build_optimiser(ADAM, model), PROGRESS, RECIPE)
    other = case.build(torch.float32, seed=9)
    load_into(other, load_model_tensors(path), str(path))
    assert_equal(state_of(other), state_of(model))


def test_shared_tensors_are_written_once(tmp_path: Path) -> None:
    model, optimiser = trained(CASE)
    save_checkpoint(tmp_path / "c.safetensors", model, optimiser, PROGRESS, RECIPE)
    names = [name for name in load_file(tmp_path / "c.safetensors") if name.startswith("model.")]
    assert len(names) == len(model_tensors(model)) < len(model.state_dict())


def test_progress_and_recipe_are_read_without_the_tensors(tmp_path: Path) -> None:
    model, optimiser = trained(CASE)
    save_checkpoint(tmp_path / "c.safetensors", model, optimiser, TrainingProgress(), RECIPE)
    assert read_progress(tmp_path / "c.safetensors") == (TrainingProgress(), RECIPE)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimiser = trained(CASE)
    path = tmp_path / "checkpoint-7.safetensors"
    save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    assert list(tmp_path.iterdir()) == [path]
    before = path.read_bytes()

    def full_disk(tensors: Any, target: Path, metadata: Any) -> None:
        target.write_bytes(b"half")
        raise SafetensorError("IoError: No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full_disk)
    with pytest.raises(
        CheckpointError, match=r"checkpoint-7.safetensors cannot be written: .*No space left.*; make room there, or"
    ):
        save_checkpoint(path, model, optimiser, TrainingProgress(), RECIPE)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_checkpoint_has_its_name_only_once_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimiser = trained(CASE)
    path = tmp_path / "checkpoint-7.safetensors"
    real = os.fsync

    def full_disk(file: int) -> None:
        assert not path.exists()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(
        CheckpointError, match=r"checkpoint-7.safetensors cannot be written: .*No space left.*; make room there, or"
    ):
        save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(os, "fsync", real)
    save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    assert read_progress(path) == (PROGRESS, RECIPE)


def damaged(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_bytes(b"not a checkpoint at all")
    elif how == "missing":
        path.unlink()
    elif how == "foreign":
        save_file({"weight": torch.zeros(2)}, path)
    else:
        other = {"progress": json.dumps({"updates": 3}), "recipe": "{}"} if how == "newer" else {"progress": "{"}
        save_file({"weight": torch.zeros(2)}, path, other)


@pytest.mark.parametrize("how", ["cut", "empty", "text", "missing", "foreign", "newer", "no JSON"])
def test_what_cannot_be_read_is_refused(how: str, tmp_path: Path) -> None:
    model, optimiser = trained(CASE)
    path = tmp_path / "checkpoint-7.safetensors"
    save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    damaged(path, how)
    for read in (read_progress, load_model_tensors, lambda path: restore(path, model, optimiser)):
        with pytest.raises(CheckpointError, match=r"checkpoint-7\.safetensors: not a readable checkpoint"):
            read(path)


def rewrite(path: Path, change: dict[str, Tensor | None]) -> None:
    tensors: dict[str, Any] = load_file(path) | change
    metadata = {"progress": json.dumps({"update": 1}), "recipe": "{}"}
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path, metadata)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random.cpu": None}, "the optimiser's state does not fit"),
        ({"optimiser.999.exp_avg": torch.zeros(3)}, "the optimiser's state does not fit"),
        ({"optimiser.0.exp_avg": torch.zeros(1, 1)}, "the optimiser's state does not fit"),
        ({"model.decoder.0.query.weight": None}, r"lacks decoder\.0\.query\.weight"),
        ({"model.more": torch.zeros(3)}, "has an unknown tensor more"),
        ({"model.decoder.0.query.weight": torch.zeros(3)}, r"query\.weight has shape \(3,\) instead of \(8, 8\)"),
    ],
)
def test_what_belongs_to_another_model_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    model, optimiser = trained(CASE)
    save_checkpoint(tmp_path / "c.safetensors", model, optimiser, PROGRESS, RECIPE)
    rewrite(tmp_path / "c.safetensors", change)
    with pytest.raises(CheckpointError, match=message):
        restore(tmp_path / "c.safetensors", model, optimiser)


def test_every_misfit_is_listed_and_nothing_is_copied() -> None:
    model = CASE.build(torch.float32)
    before, tensors = state_of(model), {name: torch.zeros_like(x) for name, x in model_tensors(model).items()}
    tensors["more"] = tensors.pop("target_embedding")
    with pytest.raises(
        CheckpointError, match=r"^x does not fit the model: lacks target_embedding; has an unknown tens"
    ):
        load_into(model, tensors, "x")
    assert_equal(state_of(model), before)


def test_checkpoints_come_in_order_of_their_updates(tmp_path: Path) -> None:
    assert checkpoints(tmp_path / "none") == []
    for name in ("checkpoint-900", "checkpoint-1000", "checkpoint-20", "checkpoint-old", "best"):
        (tmp_path / f"{name}.safetensors").touch()
    (tmp_path / "checkpoint-2000.partial").touch()
    assert [path.stem for path in checkpoints(tmp_path)] == ["checkpoint-20", "checkpoint-900", "checkpoint-1000"]


def test_average(tmp_path: Path) -> None:
    paths, states = [], []
    for seed in (1, 2, 3):
        model, optimiser = trained(CASE, seed=seed)
        paths.append(tmp_path / f"checkpoint-{seed}.safetensors")
        save_checkpoint(paths[-1], model, optimiser, PROGRESS, RECIPE)
        states.append(model_tensors(model))
    mean = average(paths)
    for name, tensor in mean.items():
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, torch.stack([s[name].detach() for s in states]).mean(0))
    assert_equal(average(paths[:1]), {name: tensor.detach() for name, tensor in states[0].items()})


def test_averaging_nothing_or_different_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint to average"):
        average([])
    paths = [tmp_path / f"{name}.safetensors" for name in ("one", "other", "wider")]
    for path, case in zip(paths, (CASE, Case("dpn", "both-both"), CASE), strict=True):
        model, optimiser = trained(case)
        save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    rewrite(paths[2], {"model.decoder.0.query.weight": torch.zeros(8, 1)})
    for other in paths[1:]:
        with pytest.raises(CheckpointError, match="belongs to another model than"):
            average([paths[0], other])


def test_weights_alone_are_a_checkpoint_in_16_bits(tmp_path: Path) -> None:
    model, _ = trained(CASE)
    expected, path = state_of(model), tmp_path / "sent" / "weights.safetensors"
    save_weights(path, model_tensors(model), PROGRESS, RECIPE)
    assert read_progress(path) == (PROGRESS, RECIPE)
    found = average([path])
    assert found.keys() == model_tensors(model).keys()
    assert all(tensor.equal(expected[name].half().float()) for name, tensor in found.items())
    assert path.stat().st_size < 2.2 * sum(tensor.numel() for tensor in found.values()) + 20_000


def test_weights_that_16_bits_do_not_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"must be below 65,504 to be written in 16 bits, but are not in large"):
        save_weights(tmp_path / "weights", {"fine": torch.ones(2), "large": torch.tensor([7e4])}, PROGRESS, RECIPE)
    assert not (tmp_path / "weights").exists()


def test_what_a_gpu_has_drawn_is_nothing_to_a_cpu(tmp_path: Path) -> None:
    """A checkpoint with the state of a GPU's random numbers goes on where there is none."""
    model, optimiser = trained(CASE)
    path = tmp_path / "checkpoint"
    save_checkpoint(path, model, optimiser, PROGRESS, RECIPE, {"random.cuda": torch.zeros(16, dtype=torch.uint8)})
    expected = torch.rand(3)
    other, optimiser = trained(CASE, seed=2)
    assert restore(path, other, optimiser) == PROGRESS
    assert torch.rand(3).equal(expected)


def test_a_checkpoint_can_be_read_by_whom_the_users_other_files_can(tmp_path: Path) -> None:
    model, optimiser = trained(CASE)
    before = os.umask(0o022)
    try:
        save_checkpoint(tmp_path / "c.safetensors", model, optimiser, PROGRESS, RECIPE)
    finally:
        os.umask(before)
    assert (tmp_path / "c.safetensors").stat().st_mode & 0o777 == 0o644


def flipped(path: Path, place: int) -> None:
    """One bit of a file, as a disk may have it."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["model.", "optimiser.", "random.cpu"])
def test_a_flipped_bit_in_a_tensor_is_found_before_anything_is_restored(kind: str, tmp_path: Path) -> None:
    model, optimiser = trained(CASE)
    path = tmp_path / "checkpoint-7.safetensors"
    save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    content = path.read_bytes()
    header = int.from_bytes(content[:8], "little")
    places = json.loads(content[8 : 8 + header])
    name, place = next((name, one) for name, one in places.items() if name.startswith(kind))
    flipped(path, 8 + header + place["data_offsets"][0])
    other, other_optimiser = trained(CASE, seed=2)
    before = state_of(other)
    with pytest.raises(CheckpointError, match="is damaged") as raised:
        restore(path, other, other_optimiser)
    assert f"{name} has another checksum than when it was written. Delete it: --resume then goes on" in str(
        raised.value
    )
    assert_equal(state_of(other), before)
    if kind == "model.":
        with pytest.raises(CheckpointError, match="is damaged"):
            load_model_tensors(path)


@pytest.mark.parametrize("kind", ["progress", "recipe"])
def test_a_flipped_bit_in_progress_or_recipe_is_found(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-7.safetensors"
    save_checkpoint(path, *trained(CASE), PROGRESS, RECIPE)
    content = path.read_bytes()
    value = {"progress": b'"target_tokens\\": ', "recipe": b'"recipe":"{'}[kind]
    flipped(path, content.index(value) + len(value) + (0 if kind == "progress" else 3))
    with pytest.raises(CheckpointError, match="damaged: its progress and recipe has another checksum"):
        read_progress(path)


def test_a_checkpoint_of_an_earlier_version_has_none(tmp_path: Path) -> None:
    """And is gone on from as before."""
    model, optimiser = trained(CASE)
    path, old = tmp_path / "checkpoint-7.safetensors", tmp_path / "checkpoint-6.safetensors"
    save_checkpoint(path, model, optimiser, PROGRESS, RECIPE)
    with safe_open(path, framework="pt") as file:
        metadata = {name: value for name, value in file.metadata().items() if name != "checksums"}
    assert metadata.keys() == {"progress", "recipe", "format"}
    save_file(load_file(path), old, metadata)
    other, other_optimiser = trained(CASE, seed=2)
    assert restore(old, other, other_optimiser) == PROGRESS
    assert_equal(state_of(other), state_of(model))
