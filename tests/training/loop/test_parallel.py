"""Several processes train as one does: the same losses and weights, saved once, continued on any number of them."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed

from tandem.models.errors import CheckpointError, ConfigError
from tandem.training.checkpoint import checkpoints, load_model_tensors, read_progress
from tandem.training.loop.resuming import check_same_update
from tandem.training.parallel import Processes, joined
from tandem.training.recipe import Recipe, recipe_mapping
from tests.shipped import ROOT
from tests.training.loop.worker import work
from tests.training.toy import Recorder, toy_recipe, toy_trainer

PLAIN: dict[str, Any] = {"dropout": 0.0, "updates": 7, "accumulate": 3, "validate_every": 4}


def launch(
    count: int,
    data: Path,
    folder: Path,
    training: dict[str, Any],
    *,
    resume: bool = False,
    term: tuple[int, int] = (-1, -1),
    device: str = "cpu",
) -> list[dict[str, Any]]:
    """Train in several processes and give back what every rank has left; ``term`` as the worker takes it."""
    folder.mkdir(exist_ok=True)
    context = multiprocessing.get_context("forkserver")  # torch is imported once for all
    context.set_forkserver_preload(["tests.training.loop.worker"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(count)}
    ranks = [address | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    rest = (data, folder, training, resume, term, device)
    processes = [context.Process(target=work, args=(rank, *rest), daemon=True) for rank in ranks]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * count
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(count)]


def alone(data: Path, folder: Path, training: dict[str, Any]) -> tuple[dict[str, torch.Tensor], list[Any]]:
    """The weights and log lines of one process."""
    recorder = Recorder()
    toy_trainer(recipe_of(training), data, folder, reporter=recorder).train()
    return weights(folder), recorder.updates


def recipe_of(training: dict[str, Any]) -> Recipe:
    return toy_recipe(model={"dropout": training["dropout"]}, **{k: v for k, v in training.items() if k != "dropout"})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_model_tensors(checkpoints(folder / "checkpoints")[-1])


def assert_near(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_two_processes_are_one_with_accumulated_gradients(prepared: Path, tmp_path: Path) -> None:
    """Three batches an update, which two processes share unevenly: the mean is over symbols, not over means."""
    first, second = launch(2, prepared, tmp_path / "two", PLAIN)
    expected, updates = alone(prepared, tmp_path / "one", PLAIN)
    assert_near(weights(tmp_path / "two"), expected)
    assert len(first["updates"]) == 7
    for (number, found), (expected_number, values) in zip(first["updates"], updates, strict=True):
        assert number == expected_number
        assert found == pytest.approx(values, abs=1e-5)
    # The second process says and writes nothing, and stands where the first one does.
    assert (second["updates"], second["validations"], first["validations"]) == ([], 0, 2)
    assert second["total"] == first["total"]
    assert [path.name for path in sorted((tmp_path / "two/checkpoints").iterdir())] == [
        "best.safetensors",
        "checkpoint-7.safetensors",
    ]
    assert first["first"] != second["first"]  # each drops out units of its own


@pytest.mark.slow
def test_more_processes_than_batches_share_their_rows(prepared: Path, tmp_path: Path) -> None:
    training = PLAIN | {"accumulate": 1, "updates": 4}
    launch(3, prepared, tmp_path / "three", training)
    assert_near(weights(tmp_path / "three"), alone(prepared, tmp_path / "one", training)[0])


@pytest.mark.slow
def test_saved_once_and_continued_on_other_numbers_of_processes(prepared: Path, tmp_path: Path) -> None:
    """SIGTERM reaches one process only, not the one that saves; three, then two, then one go on from there."""
    folder = tmp_path / "parts"
    short = PLAIN | {"ema_decay": 0.9}
    launch(3, prepared, folder, short, term=(2, 3))
    assert [path.stem for path in checkpoints(folder / "checkpoints")] == ["checkpoint-3"]
    launch(2, prepared, folder, short | {"updates": 5}, resume=True)
    assert read_progress(checkpoints(folder / "checkpoints")[-1])[0].update == 5
    trainer = toy_trainer(recipe_of(short), prepared, folder)
    assert trainer.resume()
    trainer.train()
    assert_near(weights(folder), alone(prepared, tmp_path / "one", short)[0])


@pytest.mark.slow
def test_two_processes_with_dropout_continue_bit_for_bit(prepared: Path, tmp_path: Path) -> None:
    """Every process gets its own random generator back."""
    training = PLAIN | {"dropout": 0.3, "accumulate": 4, "recompute": True, "precision": "fp16"}
    whole = launch(2, prepared, tmp_path / "whole", training)
    launch(2, prepared, tmp_path / "parts", training, term=(1, 4))
    rest = launch(2, prepared, tmp_path / "parts", training, resume=True)
    assert [one["total"] for one in rest] == [one["total"] for one in whole]
    assert rest[0]["updates"] == whole[0]["updates"][4:]


@pytest.mark.slow
def test_the_command_trains_under_torchrun(prepared: Path, tmp_path: Path) -> None:
    """`torchrun -m tandem train` as documented; one process prints."""
    import tomlkit  # here: tests of a GPU share this module's helpers without it

    run = tmp_path / "run"
    run.mkdir()
    (run / "data").symlink_to(prepared)
    recipe = tmp_path / "toy.toml"
    changes: dict[str, Any] = {"updates": 4, "validate_every": 2, "log_every": 2, "metric": "bleu"}
    mapping = recipe_mapping(toy_recipe(**changes, validation_sentences=4, precision="bf16"))
    mapping["data"]["filters"], mapping["decoding"] = {"deduplicate": False}, {"max_length": 12}  # TOML has no null
    recipe.write_text(tomlkit.dumps(mapping), encoding="utf-8")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "--", "tandem", "train", str(recipe), "--run", str(run)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.findall(r"^update (\d+)", done.stdout, re.MULTILINE) == ["1", "2", "4"]  # the first shows that it learns
    assert done.stdout.count("trained after update 4") == 1


def test_alone_without_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    with joined("cpu") as processes:
        assert processes == Processes()
        assert processes.first
        assert processes.total(2.0, 3.0) == [2.0, 3.0]
        assert processes.of_first(float("inf")) == [float("inf")]
        assert processes.differing(4) == []


def test_a_launcher_of_one_process_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with joined("cpu") as processes:
        assert (processes.count, processes.launched) == (1, True)


@pytest.mark.parametrize(("told", "expected"), [("2", 2), ("", 4)])
def test_how_many_are_on_this_machine_is_told_by_the_launcher(
    told: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is not told, all may be."""
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": told}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(distributed, "destroy_process_group", lambda: None)
    with joined("cpu") as processes:
        assert processes == Processes(3, 4, launched=True, local_count=expected)


def test_half_an_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(ConfigError, match="RANK, WORLD_SIZE and LOCAL_RANK must be numbers, as torchrun sets them"):
        joined("cpu").__enter__()


@pytest.mark.parametrize(("local", "gpus"), [(0, 0), (2, 2)])
def test_a_process_without_a_gpu_is_refused(local: int, gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": str(local)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(ConfigError, match=f"process {local} of this machine has no GPU, there are {gpus}"):
        joined("cuda").__enter__()


def test_processes_at_different_updates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "differing", lambda self, number: [number, 0])
    with pytest.raises(CheckpointError, match=r"by rank they found the updates \[40, 0\]"):
        check_same_update(Processes(0, 2), 40)
