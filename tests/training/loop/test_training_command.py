"""`tandem train` as a user calls it: what goes on, and what is refused before anything is written."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit
import torch

from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.training.checkpoint import load_model_tensors, read_progress
from tandem.training.data.ancestry import read_ancestry, write_ancestry
from tandem.training.data.summary import PreparedSummary
from tandem.training.loop.commands import TrainOptions, train
from tandem.training.loop.locking import LOCK, only_one
from tandem.training.loop.reporting import read_metrics
from tandem.training.loop.trainer import Run, Trainer
from tandem.training.recipe import recipe_mapping
from tests.command import fails, succeeds
from tests.training.toy import bundle_without_graphs, toy_recipe, toy_trainer, without_graphs, write_lines

Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes the toy recipe, changed as a function says, as a file."""

    def write(change: Callable[[dict[str, Any]], object] = lambda mapping: None, **training: Any) -> Path:
        mapping = recipe_mapping(toy_recipe(**({"updates": 3} | training)))
        mapping["data"]["filters"], mapping["decoding"] = {"deduplicate": False}, {"max_length": 12}  # TOML has no null
        change(mapping)
        path = tmp_path / "toy.toml"
        path.write_text(tomlkit.dumps(mapping), encoding="utf-8")
        return path

    return write


@pytest.fixture
def run(prepared: Path, tmp_path: Path) -> Path:
    """A run's folder, with prepared data."""
    folder = tmp_path / "run"
    shutil.copytree(prepared, folder / "data")
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def other_text(mapping: dict[str, Any]) -> None:
    mapping["data"]["corpora"][0]["target"] = "toy/{split}.fr"


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_data_that_was_prepared_for_another_recipe_is_not_trained_on(
    resume: tuple[str, ...], run: Path, written: Written
) -> None:
    before = contents(run)
    said = fails("train", written(other_text), "--run", run, *resume, status=2)
    assert (
        "was prepared for another recipe: data.corpora.0.target is 'toy/{split}.fr', but was 'toy/{split}.en'" in said
    )
    assert "run tandem prepare with --force, or with another --run" in said
    assert said.count("\n") == 1
    assert contents(run) == before


def test_text_that_nothing_here_can_rewrite_is_not_trained_on(run: Path, written: Written) -> None:
    def noisy(mapping: dict[str, Any]) -> None:
        mapping["data"] |= {"noise": {"typos": 0.5}, "vocabulary": {"size": 330}}

    with pytest.raises(ConfigError, match="noise and augmentation need the extra 'augmentation': its folder"):
        train(TrainOptions(written(noisy), run))
    assert not (run / "checkpoints").exists()
    train(TrainOptions(written(), run))
    assert read_progress(run / "checkpoints" / "checkpoint-3.safetensors")[0].update == 3


def test_a_checkpoint_of_another_recipe_is_left_as_it_is(run: Path, written: Written) -> None:
    succeeds("train", written(), "--run", run)
    before = contents(run)
    said = fails("train", written(other_text, updates=6), "--run", run, "--resume", status=1)
    assert "checkpoint-3.safetensors was trained with another recipe: data.corpora.0.target is" in said
    assert contents(run) == before


def test_other_seeds_share_prepared_data(run: Path, written: Written) -> None:
    assert "trained after update 3" in succeeds("train", written(seed=7), "--run", run)


def test_the_best_checkpoint_is_gone_on_from_where_no_other_is_left(run: Path, written: Written) -> None:
    """And is not overwritten by a run that begins anew."""
    succeeds("train", written(), "--run", run)
    (run / "checkpoints/checkpoint-3.safetensors").unlink()
    assert "already holds checkpoints: add --resume" in fails("train", written(), "--run", run, status=1)
    said = succeeds("train", written(updates=4), "--run", run, "--resume")
    assert "continuing after update 3\nupdate 4 " in said


@pytest.mark.parametrize(
    ("asked", "times", "line"),
    [
        ("auto", 4.7, "precision: bf16 (products 4.7 times as fast as in float32 here)\n"),
        ("auto", 0.5, "precision: float32 (products 2.0 times as fast as in bf16 here)\n"),
        ("bf16", 0.5, "products in float32 are 2.0 times as fast as in bf16 here"),
        ("float32", 0.5, "toy: "),
    ],
)
def test_it_says_what_it_computes_in(
    asked: str, times: float, line: str, run: Path, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.training.optimisation.precision.speedup", lambda narrow: times)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert succeeds("train", written(precision=asked), "--run", run).startswith(line)
    assert "continuing after update 3" in succeeds(
        "train", written(precision="float32", updates=4), "--run", run, "--resume"
    )


def test_the_process_is_set_up_before_threads_start(
    run: Path, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They inherit that subnormal numbers are flushed; what is allocated is kept from the first tensor on."""
    done: list[Any] = []
    monkeypatch.setattr("tandem.training.loop.commands.keep_freed_memory", lambda: done.append("heap"))
    monkeypatch.setattr(torch, "set_flush_denormal", lambda wanted: done.append(wanted))
    monkeypatch.setattr(torch, "set_num_threads", lambda count: done.append(count))
    monkeypatch.setattr("tandem.training.optimisation.precision.speedup", lambda narrow: 1.0)
    succeeds("train", written(), "--run", run, "--threads", 1)
    assert done == ["heap", True, 1, False]


def test_a_run_goes_on_with_the_bundle_that_it_began_from_alone(run: Path, written: Written, tmp_path: Path) -> None:
    recipe, data = toy_recipe(), run / "data"
    other = bundle_without_graphs(toy_trainer(recipe, data, tmp_path).model, recipe, data, tmp_path / "other").path
    succeeds("train", written(), "--run", run)
    said = fails("train", written(updates=4), "--run", run, "--resume", "--from", other, status=1)
    assert "run began from random weights, but" in said
    assert "leave --from out to go on" in said
    write_ancestry(run, Bundle.load(other).manifest.training)
    assert "continuing after update 3" in succeeds(
        "train", written(updates=4), "--run", run, "--resume", "--from", other
    )
    assert Run(run).newest == run / "checkpoints/checkpoint-4.safetensors"


def test_a_bundle_of_another_model_is_nothing_to_begin_from(run: Path, written: Written, tmp_path: Path) -> None:
    """For one, weights of the same shapes, which other heads read. What is dropped in training may differ."""
    recipe, data = toy_recipe(), run / "data"
    other = bundle_without_graphs(toy_trainer(recipe, data, tmp_path).model, recipe, data, tmp_path / "other").path
    heads = written(lambda mapping: mapping["model"].update(heads=1))
    said = fails("train", heads, "--run", run, "--from", other, status=2)
    assert f"{other} holds another model than the recipe describes: heads is 1, but was 2; give [model] its" in said
    assert said.count("\n") == 1
    assert not Run(run).checkpoints.exists()
    dropout = written(lambda mapping: mapping["model"].update(dropout=0.3))
    assert "trained after update 3" in succeeds("train", dropout, "--run", run, "--from", other)


def given(data: Path) -> None:
    """Mark prepared data as made with the vocabularies of a bundle, as `tandem prepare --from` does."""
    record = data / "prepared.json"
    mapping = json.loads(record.read_text(encoding="utf-8"))
    mapping["identity"]["vocabularies"] = ["0", "0"]
    record.write_text(json.dumps(mapping), encoding="utf-8")


@pytest.fixture
def start(run: Path, tmp_path: Path) -> Path:
    """A bundle of the toy model with the vocabularies of the run's data."""
    recipe, data = toy_recipe(), run / "data"
    return bundle_without_graphs(toy_trainer(recipe, data, tmp_path).model, recipe, data, tmp_path / "start").path


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    return load_model_tensors(checkpoint)


def test_a_recipe_names_what_it_starts_from(run: Path, written: Written, start: Path) -> None:
    """Its weights, as with --from, which may say the same; not random ones, silently."""
    from_recipe = written(lambda mapping: mapping.update(start=str(start)), updates=1)
    succeeds("train", from_recipe, "--run", run)
    assert read_ancestry(run).corpora == Bundle.load(start).manifest.training.corpora
    found = weights(run / "checkpoints/checkpoint-1.safetensors")
    shutil.rmtree(run / "checkpoints")
    succeeds("train", from_recipe, "--run", run, "--from", start)
    assert all(tensor.equal(found[name]) for name, tensor in weights(Run(run).newest).items())  # type: ignore[arg-type]
    said = succeeds("train", written(lambda m: m.update(start="moved"), updates=2), "--run", run, "--resume")
    assert "continuing after update 1" in said, "what has begun needs the bundle no longer"


def test_two_starts_are_refused_by_name(run: Path, written: Written, start: Path) -> None:
    recipe = written(lambda mapping: mapping.update(start="bundles/other"))
    for command in ("prepare", "train"):
        said = fails(command, recipe, "--run", run, "--from", start, status=2)
        assert f"the recipe has start = 'bundles/other', but --from is {start}" in said.replace("\n", " ")
    assert not (run / "checkpoints").exists()


def test_given_vocabularies_are_not_trained_from_random_weights_unasked(
    run: Path, written: Written, start: Path
) -> None:
    given(run / "data")
    before = contents(run)
    said = fails("train", written(), "--run", run, status=2)
    assert "has the vocabularies of a bundle (tandem prepare --from), but none is named to begin from" in said
    said = fails("train", written(), "--run", run, "--from", start, "--scratch", status=2)
    assert "--scratch is for random weights, but" in said
    assert contents(run) == before
    assert "trained after update 3" in succeeds("train", written(), "--run", run, "--scratch")
    assert "trained after update 4" in succeeds("train", written(updates=4), "--run", run, "--resume")
    said = succeeds("train", written(updates=4), "--run", run, "--resume", "--updates", 2)
    assert "nothing was trained: update 4 is past the 2 asked for" in said
    assert "trained after" not in said.replace("nothing was trained", "")


def test_adapters_need_a_bundle_to_begin_from(run: Path, written: Written, start: Path) -> None:
    recipe = written(adapter_rank=2)
    said = fails("train", recipe, "--run", run, status=2)
    assert "adapter_rank is for fine-tuning: name the bundle to begin from with --from" in said
    assert " frozen)" in succeeds("train", recipe, "--run", run, "--from", start)
    newest = Run(run).newest
    assert newest is not None and any(name.endswith(".adapter.up") for name in weights(newest))


def test_a_second_training_in_a_folder_is_refused(run: Path, written: Written) -> None:
    with only_one(run):
        before = contents(run)
        said = fails("train", written(), "--run", run, status=1)
        assert f"{run} is being trained in by another process (pid {os.getpid()})" in said.replace("\n", " ")
        assert contents(run) == before


def test_what_a_killed_training_was_writing_is_removed(run: Path, written: Written) -> None:
    (run / "checkpoints").mkdir()
    (run / "checkpoints/.tmpx1").write_bytes(b"half")
    (run / "checkpoints/checkpoint-2.partial").write_bytes(b"half")
    succeeds("train", written(), "--run", run)
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["best.safetensors", "checkpoint-3.safetensors"]
    assert not (run / LOCK).exists()


def test_it_says_why_it_ended_early(run: Path, written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses 3, 2, 2.5, 2.5: the best is that after update 2."""
    losses = iter([3.0, 2.0, 2.5, 2.5])
    monkeypatch.setattr(Trainer, "validation_loss", lambda self: next(losses))
    recipe = written(updates=9, validate_every=1, patience=2)
    said = succeeds("train", recipe, "--run", run).replace("\n", " ")
    told = "ended after update 4: loss has not improved in 2 validations (patience = 2); the best was update 2, best.sa"
    assert told in said
    assert told in succeeds("train", recipe, "--run", run, "--resume").replace("\n", " ")


def test_a_falling_rate_that_ends_training_is_named(
    run: Path, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([1.0, 2.0, 3.0])
    monkeypatch.setattr(Trainer, "validation_loss", lambda self: next(losses))
    optimiser = {"name": "nag", "learning_rate": 0.05, "schedule": "plateau", "warmup": 0, "stop_below": 0.001}
    recipe = written(lambda mapping: mapping.update(optimiser=optimiser), updates=9, validate_every=1)
    said = succeeds("train", recipe, "--run", run).replace("\n", " ")
    assert "ended after update 3: the learning rate has fallen below stop_below = 0.001; the best was update 1" in said


def recipe_of(checkpoint: Path | None) -> Any:
    assert checkpoint is not None
    return read_progress(checkpoint)[1]


def test_what_was_set_holds_when_the_run_goes_on(run: Path, written: Written) -> None:
    """Bit for bit: three updates and three more are the six of a run that was not interrupted, with the same set."""
    changed = ("--set", "optimiser.warmup=2", "--set", "training.label_smoothing=0.2", "--seed", 7)
    succeeds("train", written(updates=6), "--run", run, *changed)
    whole = Run(run).newest
    assert (recipe_of(whole)["training"]["seed"], recipe_of(whole)["optimiser"]["warmup"]) == (7, 2)
    found = weights(run / "checkpoints/checkpoint-6.safetensors")
    shutil.rmtree(run / "checkpoints")
    succeeds("train", written(), "--run", run, *changed)
    assert "continuing after update 3" in succeeds("train", written(updates=6), "--run", run, "--resume")
    assert all(tensor.equal(found[name]) for name, tensor in weights(Run(run).newest).items())  # type: ignore[arg-type]
    succeeds("train", written(updates=7), "--run", run, "--resume", "--set", "optimiser.clip_norm=0.5")
    assert recipe_of(Run(run).newest)["optimiser"]["clip_norm"] == 0.5
    assert recipe_of(Run(run).newest)["training"]["seed"] == 7
    said = fails("train", written(updates=9), "--run", run, "--resume", "--seed", 8, status=1)
    assert "was trained with another recipe: training.seed is 8, but was 7" in said.replace("\n", " ")


def test_a_run_begun_anew_forgets_what_was_set(run: Path, written: Written) -> None:
    succeeds("train", written(), "--run", run, "--seed", 7)
    assert (run / "experiment.json").exists()
    shutil.rmtree(run / "checkpoints")
    succeeds("train", written(), "--run", run)
    assert not (run / "experiment.json").exists()
    assert recipe_of(Run(run).newest)["training"]["seed"] == 1


def test_runs_share_prepared_data(prepared: Path, tmp_path: Path, written: Written) -> None:
    shared, first, second = tmp_path / "shared", tmp_path / "first", tmp_path / "second"
    shutil.copytree(prepared, shared)
    succeeds("train", written(), "--run", first, "--data", shared)
    succeeds("train", written(), "--run", second, "--data", shared, "--set", "model.width=24")
    assert not (first / "data").exists()
    assert "continuing after update 3" in succeeds("train", written(updates=4), "--run", first, "--resume")
    said = fails("train", written(other_text), "--run", tmp_path / "third", "--data", shared, status=2)
    assert f"{shared} was prepared for another recipe: data.corpora.0.target is" in said.replace("\n", " ")
    assert "or with another --run or --data" in said.replace("\n", " ")
    assert not list(tmp_path.glob("third/*"))
    bundle = tmp_path / "bundle"
    said = fails("export", second, "--out", bundle, "--set", "model.width=16", status=2)
    assert "the weights were trained with the rest as it was: model.width is 16, but was 24" in said
    with without_graphs():
        succeeds("export", second, "--out", bundle, "--set", "decoding.beam_size=2", "--set", "licence=CC0")
    manifest = Bundle.load(bundle).manifest
    assert (manifest.decoding.beam_size, manifest.licence, manifest.config["width"]) == (2, "CC0", 24)


def test_data_is_prepared_where_it_is_asked_for(tmp_path: Path, written: Written) -> None:
    corpora, shared = tmp_path / "corpora", tmp_path / "shared"
    for split in ("train", "valid", "test"):
        lines = [f"a {letter} {split}" for letter in "bcdefgh"]
        write_lines(corpora / f"toy/{split}.de", lines)
        write_lines(corpora / f"toy/{split}.en", lines)
    succeeds("prepare", written(), "--corpora", corpora, "--data", shared, "--set", "data.max_source_tokens=9")
    assert PreparedSummary.load(shared).identity["data"]["max_source_tokens"] == 9
    said = fails("train", written(), "--run", tmp_path / "run", "--data", shared, status=2)
    assert "data.max_source_tokens is 12, but was 9" in said.replace("\n", " ")


def test_preparing_says_how_many_sources_were_cut(tmp_path: Path, written: Written) -> None:
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"corpora/toy/{split}.de", [f"{'a ' * 20}{letter}" for letter in "bcdefgh"])
        write_lines(tmp_path / f"corpora/toy/{split}.en", [f"a {letter}" for letter in "bcdefgh"])
    cut = ("--set", "data.max_source_tokens=9", "--set", "data.truncate_source=true")
    said = succeeds("prepare", written(), "--corpora", tmp_path / "corpora", "--data", tmp_path / "shared", *cut)
    assert "dropped: none; 7 sources cut" in said


def test_a_cooldown_that_is_longer_than_training_is_told(run: Path, written: Written) -> None:
    said = succeeds("train", written(), "--run", run, "--set", "optimiser.cooldown=500")
    assert "note: cooldown is 500, more than the 3 updates: the learning rate falls from the beginning" in said


def test_fewer_updates_have_a_cooldown_of_the_same_share(run: Path, written: Written) -> None:
    """The rate stays what the recipe says until it falls; more updates leave the cooldown as it is."""
    steady = ("--set", "optimiser.schedule=constant", "--set", "optimiser.warmup=0", "--set", "optimiser.cooldown=6")
    recipe = written(updates=9, log_every=1)
    said = succeeds("train", recipe, "--run", run, *steady, "--updates", 3)
    assert "note: cooldown is 2 instead of 6: the recipe's is for 9 updates, and these are 3" in said
    rates = [line["rate"] for line in read_metrics(run / "metrics.jsonl") if line["group"] == "train"]
    peak = toy_recipe().optimiser.learning_rate
    assert rates == pytest.approx([peak, peak * 2 / 3, peak / 3])
    said = succeeds("train", recipe, "--run", run, "--resume", "--updates", 12)
    assert "note: cooldown" not in said
    rates = [line["rate"] for line in read_metrics(run / "metrics.jsonl") if line["group"] == "train"]
    assert rates[3:6] == pytest.approx([peak] * 3) and rates[6] < peak


def test_it_says_first_what_is_trained_on_what(run: Path, written: Written) -> None:
    said = succeeds("train", written(seed=3, log_every=50), "--run", run, "--threads", 1)
    first, second, *_ = (line for line in said.splitlines() if line.startswith(("toy: ", "update ")))
    found = re.fullmatch(
        r"toy: ([\d,]+) parameters, 160 pairs in about (\d) batches an epoch, 3 updates \(about (0\.\d) epochs\),"
        r" float32, 1 threads, seed 3",
        first,
    )
    assert found
    newest = Run(run).newest
    assert newest is not None
    assert int(found[1].replace(",", "")) == sum(tensor.numel() for tensor in weights(newest).values())
    assert int(found[2]) in (3, 4, 5), "five are planned, with padding"
    assert second.startswith("update 1  epoch 0  loss "), "long before the first interval is over"
    assert [line["group"] for line in read_metrics(run / "metrics.jsonl")] == ["valid"]


@pytest.mark.parametrize("name", ["train.source0.tokens.npy", "target.words", "valid.target.offsets.npy"])
def test_prepared_data_that_a_disk_has_damaged_is_not_trained_on(name: str, run: Path, written: Written) -> None:
    path = run / "data" / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    said = fails("train", written(), "--run", run, status=1).replace("\n", " ")
    assert f"data is damaged: {name} has another checksum" in said
    assert "Prepare it again (tandem prepare --force), or copy it again" in said
    assert not (run / "checkpoints").exists()


def test_data_of_an_earlier_version_is_trained_on_as_before(run: Path, written: Written) -> None:
    record = run / "data/prepared.json"
    mapping = json.loads(record.read_text(encoding="utf-8"))
    assert set(mapping.pop("checksums")) == {
        path.relative_to(run / "data").as_posix() for path in (run / "data").rglob("*") if path.is_file()
    } - {"prepared.json"}
    record.write_text(json.dumps(mapping), encoding="utf-8")
    assert "trained after update 3" in succeeds("train", written(), "--run", run)
