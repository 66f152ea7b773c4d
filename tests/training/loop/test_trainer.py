"""The training loop on a toy corpus: it learns, and stopping in any way and going on changes no bit."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tandem.models.architectures.layers.dropout import Masks
from tandem.models.architectures.registry import build_model
from tandem.models.errors import CheckpointError, CorpusError
from tandem.training.checkpoint import TrainingProgress, checkpoints, load_model_tensors, read_progress, save_checkpoint
from tandem.training.data.batches import TrainingBatch, collate
from tandem.training.data.dataset import PreparedData
from tandem.training.data.plans import BatchPlan, plan_epoch
from tandem.training.data.stream import Group
from tandem.training.data.summary import PreparedSummary
from tandem.training.export.exporting import export
from tandem.training.loop.objective import Objective
from tandem.training.loop.trainer import Trainer, Validator
from tandem.training.loop.validation import Validated
from tandem.training.optimisation.loss import smoothed_cross_entropy
from tandem.training.optimisation.optim import learning_rate
from tandem.training.recipe import Recipe, recipe_mapping
from tests.training.toy import LEARNING, NAG, Recorder, toy_recipe, toy_trainer

UPDATES = 14  # nearly three epochs


class Killed(BaseException):
    """Stands for a power cut: nothing is caught, nothing is saved."""


def kill() -> None:
    raise Killed


def everything(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Tensor], TrainingProgress]:
    """Weights, optimiser state and progress but for the time it took."""
    states = trainer.optimiser.state_dict()["state"].items()
    moments = {f"{index}.{key}": x.clone() for index, state in states for key, x in state.items()}
    weights = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    return weights, moments, replace(trainer.progress, seconds=0.0)


def assert_identical(one: Trainer, other: Trainer) -> None:
    *tensors, progress = everything(one)
    *tensors_2, progress_2 = everything(other)
    assert progress == progress_2
    for found, expected in zip(tensors, tensors_2, strict=True):
        assert found.keys() == expected.keys()
        assert [name for name, tensor in found.items() if not tensor.equal(expected[name])] == []


def trained(recipe: Recipe, data: Path, folder: Path, when: dict[int, Callable[[], None]] | None = None) -> Trainer:
    trainer = toy_trainer(recipe, data, folder, reporter=Recorder(when or {}))
    trainer.train()
    return trainer


def update(trainer: Trainer, batches: list[TrainingBatch]) -> None:
    trainer._update(Group(tuple(batches), 0, len(batches)), sum(batch.target_tokens for batch in batches))


def scaled(*factors: float) -> Callable[[Objective, TrainingBatch], tuple[Tensor, Tensor]]:
    """The objective's forward pass, its loss multiplied by one factor after the other (the last for good)."""
    whole, left = Objective.forward, list(factors)

    def forward(self: Objective, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        factor = left.pop(0) if len(left) > 1 else left[0]
        loss, nll = whole(self, batch)
        return loss * factor, nll

    return forward


def resumed(recipe: Recipe, data: Path, folder: Path) -> Trainer:
    trainer = toy_trainer(recipe, data, folder)
    assert trainer.resume()
    return trainer


@pytest.mark.parametrize("precision", ["float32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_the_loss_falls(precision: str, prepared: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    recipe = toy_recipe(updates=160, validate_every=40, precision=precision, log_every=10, **LEARNING)
    trainer = toy_trainer(recipe, prepared, tmp_path, reporter=recorder)
    progress = trainer.train()
    losses = [values["loss"] for _, values in recorder.validations]
    assert len(losses) == 4
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.5 < 2.0 < recorder.updates[0][1]["nll"]
    assert progress.update == 160
    assert progress.best == -min(losses)
    assert [update for update, _ in recorder.updates] == list(range(10, 161, 10))
    assert set(recorder.updates[0][1]) == {"loss", "nll", "rate", "gradient_norm"}


def test_the_plain_loop(prepared: Path, tmp_path: Path) -> None:
    """Nothing that a recipe does not ask for has touched the numbers: a loop of a dozen lines gives the same bits."""
    recipe = toy_recipe(updates=7, accumulate=2, precision="bf16")
    found = trained(recipe, prepared, tmp_path)
    torch.manual_seed(recipe.training.seed)
    model = build_model("dpn", recipe.prepared_config(PreparedSummary.load(prepared))).train()
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    data = PreparedData.open(prepared, "train")
    lengths = (data.source_lengths, data.target_lengths)
    plans = [p for epoch in range(4) for p in plan_epoch(*lengths, epoch=epoch, seed=1, max_tokens=250)]
    for update in range(7):
        batches = [collate(data, plan) for plan in plans[2 * update : 2 * update + 2]]
        tokens = sum(batch.target_tokens for batch in batches)
        for batch in batches:
            with Masks().shared(), torch.autocast("cpu", torch.bfloat16):
                features = model.decode(batch.target_in, model.encode(batch.sources))
            weight_and_bias = model.output_parameters()
            loss, _ = smoothed_cross_entropy(
                features, *weight_and_bias, batch.target_out, smoothing=0.1, low_precision=True
            )
            (loss / tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimiser.param_groups[0]["lr"] = learning_rate(recipe.optimiser, update + 1, 7, 0)
        optimiser.step()
        optimiser.zero_grad()
    assert [n for n, p in found.model.named_parameters() if not p.equal(dict(model.named_parameters())[n])] == []


def test_the_same_recipe_gives_the_same_weights(prepared: Path, tmp_path: Path) -> None:
    recipe = toy_recipe(updates=UPDATES)
    one, other = (trained(recipe, prepared, tmp_path / name) for name in "ab")
    assert_identical(one, other)
    different = trained(toy_recipe(updates=UPDATES, seed=2), prepared, tmp_path / "c")
    assert not everything(one)[0]["target_embedding"].equal(everything(different)[0]["target_embedding"])


@pytest.fixture(
    scope="module",
    params=[("adam", 1), ("nag", 2), *(pytest.param(one, marks=pytest.mark.slow) for one in (("adam", 2), ("nag", 1)))],
    ids=lambda given: f"{given[0]}-{given[1]}",
)
def whole(request: pytest.FixtureRequest, prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    """Trained without an interruption, by each optimiser, with and without accumulated gradients."""
    optimiser, accumulate = request.param
    changes: dict[str, Any] = {"optimiser": NAG} if optimiser == "nag" else {}
    recipe = toy_recipe(updates=UPDATES, accumulate=accumulate, validate_every=4, **changes)
    return trained(recipe, prepared, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("stop", [2, 5, 9])
def test_interrupted_and_resumed_is_bit_equal(stop: int, whole: Trainer, prepared: Path, tmp_path: Path) -> None:
    """Ctrl-C finishes the update and saves; within an epoch, at its end, with dropout and validation in between."""
    recipe = whole.recipe
    stopped = trained(recipe, prepared, tmp_path / "parts", {stop: partial(os.kill, os.getpid(), signal.SIGINT)})
    assert stopped.progress.update == stop
    assert [path.stem for path in checkpoints(tmp_path / "parts" / "checkpoints")] == [f"checkpoint-{stop}"]
    torch.manual_seed(77)  # what the process did in between is of no account
    again = resumed(recipe, prepared, tmp_path / "parts")
    assert_identical(again, stopped)
    again.train()
    assert_identical(again, whole)


def test_killed_loses_only_what_followed_the_last_checkpoint(prepared: Path, tmp_path: Path) -> None:
    recipe = toy_recipe(updates=UPDATES, save_every=3)
    whole = trained(recipe, prepared, tmp_path / "whole")
    with pytest.raises(Killed):
        trained(recipe, prepared, tmp_path / "parts", {8: kill})
    (tmp_path / "parts/checkpoints/checkpoint-9.partial").write_bytes(b"half a checkpoint")
    again = resumed(recipe, prepared, tmp_path / "parts")
    assert again.progress.update == 6
    again.train()
    assert_identical(again, whole)


def test_lengthened_training_goes_on(prepared: Path, tmp_path: Path) -> None:
    """What a run may change when it is resumed: its length, and how it validates, saves and logs."""
    short = trained(toy_recipe(updates=5), prepared, tmp_path)
    again = resumed(toy_recipe(updates=8, save_every=2, patience=3, keep=9), prepared, tmp_path)
    assert_identical(again, short)
    assert again.train().update == 8
    whole = trained(toy_recipe(updates=8), prepared, tmp_path / "whole")
    assert everything(again)[0]["target_embedding"].equal(everything(whole)[0]["target_embedding"])


def test_resuming_what_is_done_does_nothing(prepared: Path, tmp_path: Path) -> None:
    done = trained(toy_recipe(updates=5), prepared, tmp_path)
    again = resumed(toy_recipe(updates=5), prepared, tmp_path)
    again.train()
    assert_identical(again, done)


def test_a_checkpoint_older_than_a_key_is_resumed(prepared: Path, tmp_path: Path) -> None:
    done = trained(toy_recipe(updates=2), prepared, tmp_path)
    recipe = recipe_mapping(done.recipe)
    del recipe["data"]["corpora"][0]["valid_split"], recipe["training"]["seed"]
    save_checkpoint(
        tmp_path / "checkpoints/checkpoint-2.safetensors", done.model, done.optimiser, done.progress, recipe
    )
    assert resumed(toy_recipe(updates=4), prepared, tmp_path).progress.update == 2


def test_without_a_checkpoint_there_is_nothing_to_resume(prepared: Path, tmp_path: Path) -> None:
    assert not toy_trainer(toy_recipe(), prepared, tmp_path).resume()


def test_another_recipe_is_refused_by_name(prepared: Path, tmp_path: Path) -> None:
    trained(toy_recipe(updates=2), prepared, tmp_path)
    other = toy_recipe(updates=2, batch_tokens=300, model={"kernel": 5}, optimiser=NAG)
    message = (
        r"with another recipe: model\.kernel is 5, but was None; optimiser\.momentum is 0\.9, but was 0\.99;"
        r" optimiser\.name is 'nag', but was 'adam'; .*; also other: training\.batch_tokens; go on with the values"
    )
    with pytest.raises(CheckpointError, match=message):
        toy_trainer(other, prepared, tmp_path).resume()


def test_a_run_that_diverges_may_go_on_more_slowly(prepared: Path, tmp_path: Path) -> None:
    trained(toy_recipe(updates=2), prepared, tmp_path)
    slower = toy_recipe(updates=4, optimiser=replace(toy_recipe().optimiser, learning_rate=1e-4, clip_norm=0.25))
    recorder = Recorder()
    trainer = toy_trainer(slower, prepared, tmp_path, reporter=recorder)
    assert trainer.resume()
    trainer.train()
    assert [values["rate"] for _, values in recorder.updates] == [
        learning_rate(slower.optimiser, update, 4, plateaus=0) for update in (3, 4)
    ]
    assert {group["lr"] for group in trainer.optimiser.param_groups} == {recorder.updates[-1][1]["rate"]}


def test_weights_of_other_vocabularies_are_refused(prepared: Path, tmp_path: Path) -> None:
    """Of the same size, so that nothing else tells them apart: text that was prepared anew."""
    trained(toy_recipe(updates=2), prepared, tmp_path)
    other = shutil.copytree(prepared, tmp_path / "data")
    words = (other / "source0.words").read_text(encoding="utf-8").splitlines()
    (other / "source0.words").write_text("".join(f"{word}\n" for word in [*words[:-2], *words[:-3:-1]]))
    message = r"checkpoint-2\.safetensors was trained with other vocabularies than those of .*data"
    with pytest.raises(CheckpointError, match=message):
        toy_trainer(toy_recipe(updates=4), other, tmp_path).resume()
    with pytest.raises(CheckpointError, match=message):
        export(tmp_path, tmp_path / "bundle")


def test_a_checkpoint_older_than_the_names_of_vocabularies_is_resumed(prepared: Path, tmp_path: Path) -> None:
    done = trained(toy_recipe(updates=2), prepared, tmp_path)
    former, recipe = replace(done.progress, vocabularies=""), recipe_mapping(done.recipe)
    save_checkpoint(tmp_path / "checkpoints/checkpoint-2.safetensors", done.model, done.optimiser, former, recipe)
    assert resumed(toy_recipe(updates=4), prepared, tmp_path).progress == done.progress


def test_a_damaged_checkpoint_is_refused(prepared: Path, tmp_path: Path) -> None:
    trained(toy_recipe(updates=2), prepared, tmp_path)
    path = tmp_path / "checkpoints/checkpoint-2.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=r"checkpoint-2\.safetensors: not a readable checkpoint"):
        toy_trainer(toy_recipe(updates=2), prepared, tmp_path).resume()


def test_unprepared_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="holds no prepared data"):
        toy_trainer(toy_recipe(), tmp_path / "nothing", tmp_path)


def test_accumulated_batches_are_one_big_batch(prepared: Path, tmp_path: Path) -> None:
    """The loss is normalised by all target symbols of the update, so batches of different sizes weigh alike."""
    recipe = toy_recipe(model={"dropout": 0.0}, optimiser=NAG)
    apart, together = (toy_trainer(recipe, prepared, tmp_path) for _ in range(2))
    plans = [BatchPlan(tuple((i,) for i in range(*span)), 12, 12) for span in ((0, 3), (3, 30), (30, 37))]
    data = PreparedData.open(prepared, "train")
    for trainer, groups in ((apart, plans), (together, [BatchPlan(tuple((i,) for i in range(37)), 12, 12)])):
        update(trainer, [collate(data, plan) for plan in groups])
        assert trainer.progress.update == 1
    assert apart.progress.target_tokens == together.progress.target_tokens
    for one, other in zip(apart.model.parameters(), together.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_an_update_may_take_more_batches_than_an_epoch_has(prepared: Path, tmp_path: Path) -> None:
    recipe = toy_recipe(updates=3, accumulate=7)
    trainer = toy_trainer(recipe, prepared, tmp_path)
    per_epoch = len(list(trainer.stream.plans(0)))
    assert per_epoch < 7
    progress = trainer.train()
    assert progress.update == 3
    assert progress.epoch * per_epoch + progress.batch == 21


def test_the_update_is_the_gradient_of_the_mean_loss(prepared: Path, tmp_path: Path) -> None:
    """One NAG update by hand, clipping included."""
    optimiser = replace(NAG, clip_norm=0.01, momentum=0.0)
    recorder = Recorder()
    trainer = toy_trainer(
        toy_recipe(model={"dropout": 0.0}, optimiser=optimiser), prepared, tmp_path, reporter=recorder
    )
    batch = collate(PreparedData.open(prepared, "train"), BatchPlan(tuple((i,) for i in range(20)), 12, 12))
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    logits_BTV = trainer.model.score(batch.target_in, trainer.model.encode(batch.sources))
    loss = torch.nn.functional.cross_entropy(
        logits_BTV.flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1
    )
    gradients = torch.autograd.grad(loss, list(trainer.model.parameters()))
    norm = float(torch.stack([g.square().sum() for g in gradients]).sum().sqrt())
    update(trainer, [batch])
    assert recorder.updates[0][1]["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
    assert recorder.updates[0][1]["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    for (name, parameter), gradient in zip(trainer.model.named_parameters(), gradients, strict=True):
        expected = before[name] - 0.05 * gradient * min(1.0, 0.01 / norm)
        torch.testing.assert_close(parameter.detach(), expected, atol=1e-6, rtol=1e-4)


def test_a_gradient_that_is_not_finite_changes_nothing(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = toy_trainer(toy_recipe(), prepared, tmp_path)
    batch = collate(trainer.train_data, next(trainer.stream.plans(0)))
    before = everything(trainer)[0]
    monkeypatch.setattr(Objective, "forward", scaled(float("inf")))
    update(trainer, [batch])
    assert (trainer.progress.update, trainer.progress.skipped) == (1, 1)
    after = everything(trainer)[0]
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    assert all(p.grad is None for p in trainer.model.parameters())


def test_validation_loss_is_the_mean_over_symbols(prepared: Path, tmp_path: Path) -> None:
    """However the validation set is cut into batches; without smoothing and dropout."""
    losses = []
    for batch_tokens in (30, 1000):
        trainer = toy_trainer(toy_recipe(batch_tokens=batch_tokens, model={"dropout": 0.5}), prepared, tmp_path)
        losses.append(trainer.validation_loss())
    data = PreparedData.open(prepared, "valid")
    total, count = 0.0, 0
    for index in range(len(data)):
        batch = collate(data, BatchPlan(((index,),), 12, 12))
        with torch.no_grad():
            logits_BTV = trainer.model.score(batch.target_in, trainer.model.encode(batch.sources))
        log_p = torch.log_softmax(logits_BTV[0].double(), -1)
        total -= float(log_p.gather(1, batch.target_out[0, :, None]).sum())
        count += batch.target_tokens
    assert losses == pytest.approx([total / count] * 2, rel=1e-5)


def test_validation_leaves_no_trace(prepared: Path, tmp_path: Path) -> None:
    def draws(model: Any) -> Validated:
        return Validated({"bleu": float(torch.rand(()))})

    often, never = toy_recipe(updates=6, validate_every=1), toy_recipe(updates=6)
    one = toy_trainer(often, prepared, tmp_path / "a", validator=draws)
    one.train()
    other = trained(never, prepared, tmp_path / "b")
    assert all(a.equal(b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))


def scripted(values: list[float]) -> Validator:
    left = iter(values)
    return lambda model: Validated({"bleu": next(left)})


def test_the_best_checkpoint_is_the_metrics(prepared: Path, tmp_path: Path) -> None:
    recipe = toy_recipe(updates=5, validate_every=1, metric="bleu", validation_sentences=1)
    recorder = Recorder()
    trainer = toy_trainer(recipe, prepared, tmp_path, reporter=recorder, validator=scripted([1.0, 5.0, 3.0, 5.0, 4.0]))
    trainer.train()
    progress, _ = read_progress(trainer.run.best)
    assert (progress.update, progress.best) == (2, 5.0)
    assert [reported.stale for reported, _ in recorder.validations] == [0, 0, 1, 2, 3]
    assert not load_model_tensors(trainer.run.best)["target_embedding"].equal(
        everything(trainer)[0]["target_embedding"]
    )


def test_patience_ends_training(prepared: Path, tmp_path: Path) -> None:
    recipe = toy_recipe(updates=30, validate_every=2, patience=2, metric="bleu", validation_sentences=1)
    trainer = toy_trainer(recipe, prepared, tmp_path, validator=scripted([1.0, 2.0, 1.5, 1.0, 9.0]))
    assert trainer.train().update == 8
    assert [path.stem for path in checkpoints(trainer.run.checkpoints)] == ["checkpoint-8"]
    assert resumed(recipe, prepared, tmp_path).train().update == 8
    longer = toy_recipe(updates=9, validate_every=2, patience=3, metric="bleu", validation_sentences=1)
    assert resumed(longer, prepared, tmp_path).train().update == 9


@pytest.mark.parametrize(
    ("scores", "rates"),
    [
        pytest.param([1.0, 0.5, 2.0, 1.0], [0.05] * 4 + [0.005] * 4, id="parted"),
        pytest.param([1.0, 0.5, 0.7, 2.0], [0.05] * 4 + [0.005] * 2, id="in a row"),
    ],
)
def test_plateaus_lower_the_rate_until_training_ends(
    prepared: Path, tmp_path: Path, scores: list[float], rates: list[float]
) -> None:
    """0.05, then 0.005, then 0.0005, which is below the floor."""
    recipe = toy_recipe(
        updates=30, validate_every=2, metric="bleu", validation_sentences=1, optimiser=replace(NAG, stop_below=0.001)
    )
    recorder = Recorder()
    trainer = toy_trainer(recipe, prepared, tmp_path, reporter=recorder, validator=scripted(scores))
    assert trainer.train().update == len(rates)
    assert [values["rate"] for _, values in recorder.updates] == pytest.approx(rates)
    assert trainer.progress.plateaus == 2


def test_after_a_plateau_the_rate_may_fall_with_every_epoch(prepared: Path, tmp_path: Path) -> None:
    """Four updates an epoch; what the loss does after the first plateau is of no account, and the end is validated."""
    optimiser = replace(NAG, anneal="epochs", stop_below=1e-5)
    recipe = toy_recipe(updates=30, validate_every=3, metric="bleu", validation_sentences=1, optimiser=optimiser)
    recorder = Recorder()
    scores = [1.0, 0.5, 0.7, 2.0, 0.1, 0.1]
    trainer = toy_trainer(recipe, prepared, tmp_path, reporter=recorder, validator=scripted(scores))
    assert trainer.train().update == 17
    rates = [0.05] * 6 + [0.005] * 2 + [5e-4] * 4 + [5e-5] * 4 + [5e-6]
    assert [values["rate"] for _, values in recorder.updates] == pytest.approx(rates)
    assert [progress.update for progress, _ in recorder.validations] == [3, 6, 9, 12, 15, 17]


def test_old_checkpoints_are_removed_and_the_last_update_is_kept(prepared: Path, tmp_path: Path) -> None:
    trainer = trained(toy_recipe(updates=7, save_every=2, keep=2), prepared, tmp_path)
    assert [path.stem for path in checkpoints(trainer.run.checkpoints)] == ["checkpoint-6", "checkpoint-7"]
    assert trainer.run.best.exists()


def test_starting_from_given_weights(prepared: Path, tmp_path: Path) -> None:
    source = trained(toy_recipe(updates=2), prepared, tmp_path / "a")
    tensors = load_model_tensors(tmp_path / "a/checkpoints/checkpoint-2.safetensors")
    trainer = toy_trainer(toy_recipe(seed=5), prepared, tmp_path / "b")
    trainer.initialise_from(tensors, "bundle")
    assert all(a.equal(b) for a, b in zip(trainer.model.parameters(), source.model.parameters(), strict=True))
    wider = toy_trainer(toy_recipe(model={"width": 20}), prepared, tmp_path / "c")
    with pytest.raises(CheckpointError, match="bundle does not fit the model"):
        wider.initialise_from(tensors, "bundle")


def test_starting_from_folded_weights_as_a_bundle_has_them(prepared: Path, tmp_path: Path) -> None:
    source = trained(toy_recipe(updates=2), prepared, tmp_path / "a").model
    source.prepare_for_inference()
    trainer = toy_trainer(toy_recipe(seed=5), prepared, tmp_path / "b")
    trainer.initialise_from(dict(source.named_parameters()), "bundle")
    batch = collate(trainer.train_data, next(trainer.stream.plans(0)))
    scores = [m.eval().score(batch.target_in, m.encode(batch.sources)) for m in (source, trainer.model)]
    torch.testing.assert_close(scores[0], scores[1], atol=1e-5, rtol=0)


def test_log_lines_hold_means_over_the_symbols_since_the_last(prepared: Path, tmp_path: Path) -> None:
    every, third = Recorder(), Recorder()
    for log_every, recorder in ((1, every), (3, third)):
        toy_trainer(toy_recipe(updates=6, log_every=log_every), prepared, tmp_path, reporter=recorder).train()
    sizes = []
    plan = toy_trainer(toy_recipe(), prepared, tmp_path).stream.plans
    data = PreparedData.open(prepared, "train")
    for epoch in (0, 1):
        sizes += [collate(data, one).target_tokens for one in plan(epoch)]
    assert [update for update, _ in third.updates] == [3, 6]
    for start, (_, values) in zip((0, 3), third.updates, strict=True):
        for name in ("loss", "nll"):
            total = sum(every.updates[n][1][name] * sizes[n] for n in range(start, start + 3))
            assert values[name] == pytest.approx(total / sum(sizes[start : start + 3]), rel=1e-6)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_and_are_given_back(number: signal.Signals, prepared: Path, tmp_path: Path) -> None:
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    trainer = trained(toy_recipe(), prepared, tmp_path, {3: partial(os.kill, os.getpid(), number)})
    assert trainer.progress.update == 3
    assert read_progress(trainer.run.checkpoints / "checkpoint-3.safetensors")[0].update == 3
    assert {n: signal.getsignal(n) for n in before} == before


def test_a_second_signal_does_not_wait(prepared: Path, tmp_path: Path) -> None:
    def twice() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        trained(toy_recipe(), prepared, tmp_path, {3: twice})
    assert signal.getsignal(signal.SIGINT) is before
    assert checkpoints(tmp_path / "checkpoints") == []


def test_trains_outside_the_main_thread(prepared: Path, tmp_path: Path) -> None:
    """Where no signal handler can be set."""
    found: list[Trainer] = []
    thread = threading.Thread(target=lambda: found.append(trained(toy_recipe(updates=3), prepared, tmp_path)))
    thread.start()
    thread.join()
    assert found[0].progress.update == 3


def test_no_thread_outlives_training(prepared: Path, tmp_path: Path) -> None:
    before = threading.active_count()
    trained(toy_recipe(updates=3), prepared, tmp_path)
    assert threading.active_count() == before
