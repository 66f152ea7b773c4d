"""`tandem bench training`: what it counts, and that its pieces do what they say. No time is asserted."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.options import TrainingOptions
from benchmarks.training import huggingface
from benchmarks.training import products as products_module
from benchmarks.training.joey import Joey, write_corpus
from benchmarks.training.joey_runner import noting
from benchmarks.training.ours import Ours, Plain
from benchmarks.training.pipeline import load_epoch
from benchmarks.training.preloaded import Preloaded
from benchmarks.training.products import Products, floor
from benchmarks.training.speed import measure, show
from benchmarks.training.work import Count, TrainingPass, TrainingWork, padded
from benchmarks.transformers import TransformerSize
from deploy.cli import main
from deploy.report import as_json
from models.errors import ConfigError
from tests.determinism import one_thread, seeded
from tests.training.conftest import prepared
from training.data.dataset import PreparedData

__all__ = ["one_thread", "prepared", "seeded"]
TINY = TransformerSize(layers=1, width=16, hidden=24, heads=2, positions=16)


@pytest.fixture
def work(prepared: Path) -> TrainingWork:
    return TrainingWork.open(prepared, TINY, 100, 1)


def test_both_forms_train_on_the_same_batches_and_count_their_symbols(work: TrainingWork) -> None:
    ours, plain = Ours(work, "transformer", 0.0), Plain(work, "transformer", 0.0)
    before = [parameter.detach().clone() for parameter in plain.model.parameters()]
    passes = [one.run(1, 2, 3) for one in (ours, plain)]
    with closing(ours.trainer.stream.updates(epoch=1)) as groups:
        batches = [group.batches[0] for group in islice(groups, 5)][2:]
    expected = Count(
        sum(int((batch.sources[0].values != 0).sum()) for batch in batches),
        sum(batch.sources[0].values.numel() for batch in batches),
        sum(int((batch.target_out != 0).sum()) for batch in batches),
        sum(batch.target_out.numel() for batch in batches),
    )
    assert [one.count for one in passes] == [expected] * 2
    assert all(one.seconds > (one.waited or 0.0) >= 0.0 and one.updates == 3 for one in passes)
    assert ours.parameters == plain.parameters
    changed = [not torch.equal(a, b) for a, b in zip(before, plain.model.parameters(), strict=True)]
    assert all(changed)


@pytest.mark.parametrize("architecture", ["transformer", "dpn", "convs2s"])
def test_the_plain_step_has_the_same_loss_without_dropout(work: TrainingWork, architecture: str) -> None:
    ours, plain = Ours(work, architecture, 0.0), Plain(work, architecture, 0.0)
    plain.model.load_state_dict(ours.trainer.model.state_dict())
    assert any(isinstance(module, nn.Dropout) and module.p == 0.1 for module in plain.model.modules())
    with closing(ours.trainer.stream.updates()) as groups:
        (batch,) = next(groups).batches
    for module in (*plain.model.modules(), *ours.trainer.model.modules()):
        for rate in ("p", "rate"):
            if hasattr(module, rate):
                setattr(module, rate, 0.0)
    loss, _ = ours.trainer.stepper.objective.train()(batch)
    assert plain.loss(batch).item() == pytest.approx(loss.item() / batch.target_tokens, rel=5e-3)


def test_an_epoch_is_read_once_and_its_padding_is_that_of_the_plan(work: TrainingWork) -> None:
    stream = Ours(work, "transformer", 0.0).trainer.stream
    loaded = load_epoch(stream, 1000)
    plans = list(stream.plans(0))
    pairs = [[pair for item in plan.items for pair in item] for plan in plans]
    everything = np.arange(len(work.data))
    assert loaded.count == padded(work.data.lengths_of(everything), pairs)
    assert loaded.batches == len(plans) and sorted(chain(*pairs)) == everything.tolist()
    assert loaded.count.target == int(work.data.target_lengths.sum()) > loaded.tokens
    assert load_epoch(stream, 2).batches == 2
    assert loaded.summary(None)["times_training"] is None


def test_padding_counts_every_place() -> None:
    lengths = np.array([2, 5, 3]), np.array([4, 4, 1])
    count = padded(lengths, [[0, 1], [2]])
    assert count == Count(10, 13, 9, 9)
    assert count.padding() == pytest.approx({"source": 3 / 13, "target": 0.0, "both": 3 / 22})


def test_products_are_noted_with_their_operations_and_made_again() -> None:
    layer, x = nn.Linear(8, 4), torch.randn(3, 8, requires_grad=True)
    with Products() as products:
        layer(x).sum().backward()
    assert products.flops == 3 * 2 * 3 * 8 * 4 and len(products) == 3  # forward, and both gradients
    assert products.seconds(1) > 0.0


def test_the_floor_counts_all_products_of_an_update(work: TrainingWork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products_module, "SIDE", 16)
    ours = Ours(work, "dpn", 0.0)
    with closing(ours.trainer.stream.updates()) as groups:
        (batch,) = next(groups).batches
    found = floor([lambda: ours.step(batch)], 1)
    with FlopCounterMode(display=False) as counter:
        ours.step(batch)
    assert found["gflop"] == pytest.approx(counter.get_total_flops() / 1e9) and found["products"] > 10
    assert found["products_share"] == pytest.approx(found["products_ms"] / found["step_ms"])


def test_joey_reads_the_same_symbols(work: TrainingWork, tmp_path: Path) -> None:
    write_corpus(work, tmp_path)
    sources = (tmp_path / "train.source").read_text().splitlines()
    targets = (tmp_path / "train.target").read_text().splitlines()
    words = (tmp_path / "target.vocabulary").read_text().split()
    assert len(sources) == len(targets) == len(work.data) and len(words) == work.vocabularies[1]
    for index in (0, len(work.data) - 1):
        assert [words.index(word) for word in targets[index].split()] == work.data.target(index).tolist()
        assert len(sources[index].split()) + 1 == len(work.data.sources(index)[0])
    assert (tmp_path / "valid.target").read_text().splitlines() == targets[:10]


def test_joey_is_run_by_its_own_interpreter(work: TrainingWork, tmp_path: Path) -> None:
    python = tmp_path / "python"
    noted = {"parameters": 7, "starts": [0.0, 5.0, 6.0, 8.0], "counts": [[9, 9, 9, 9], [1, 2, 3, 4], [1, 1, 1, 1]]}
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && echo 2.3 || echo \'{json.dumps(noted)}\' > "$3"\n')
    python.chmod(0o755)
    joey = Joey(work, python, tmp_path, 0.0, "bf16")
    assert joey.run(0, 1, 2) == TrainingPass(2, 3.0, Count(2, 3, 4, 5))
    assert (joey.parameters, joey.version) == (7, "2.3")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["training"]["updates"] == 4 and config["model"]["encoder"]["num_layers"] == 1
    with pytest.raises(ConfigError, match="cannot be run"):
        Joey(work, tmp_path / "nothing", tmp_path, 0.0, "bf16")
    python.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    with pytest.raises(ConfigError, match="failed: broken"):
        joey.run(0, 1, 2)


def test_the_runner_notes_every_update_of_joey() -> None:
    class Batch:
        src, trg = torch.zeros(2, 5), torch.zeros(2, 4)
        src_mask, ntokens = torch.ones(2, 1, 3), 6

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.1)

    class Manager:
        def __init__(self) -> None:
            self.model = nn.Sequential(Attention(), nn.Dropout(0.1), nn.Linear(2, 3))

        def _train_step(self, batch: Any) -> str:
            return f"trained {batch.ntokens}"

    manager = noting(Manager, Attention, 0.0)()
    assert [manager._train_step(Batch()) for _ in range(2)] == ["trained 6"] * 2
    assert manager.noted["counts"] == [[6, 10, 6, 8]] * 2 and manager.noted["parameters"] == 9
    assert manager.noted["starts"] == sorted(manager.noted["starts"]) and len(manager.noted["starts"]) == 2
    assert [module.p for module in manager.model.modules() if isinstance(module, nn.Dropout)] == [0.0, 0.1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and /proc are Linux's")
def test_a_preloaded_library_is_in_the_process_that_trains(work: TrainingWork) -> None:
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8").split()
    library = next(Path(name) for name in mapped if "/libm.so" in name or "/libm-" in name)  # harmless
    one = Preloaded(work, "plain", "transformer", 0.0, library)
    here = Plain(work, "transformer", 0.0)
    assert (one.name, one.parameters) == (f"plain bf16 step, {library.name.split('.')[0]}", here.parameters)
    assert one.run(1, 1, 2).count == here.run(1, 1, 2).count


def test_an_allocator_that_is_not_there_is_refused(work: TrainingWork, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--preload wants"):
        Preloaded(work, "ours", "transformer", 0.0, tmp_path / "libnone.so")


def test_what_is_missing_is_said_and_the_rest_is_measured(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None if name == "accelerate" else object())
    monkeypatch.setattr(products_module, "SIDE", 16)
    monkeypatch.setitem(sys.modules, "transformers", None)  # importing it fails
    size: dict[str, Any] = {"layers": 1, "width": 16, "hidden": 24, "heads": 2, "threads": 1, "batch_tokens": 100}
    options = TrainingOptions(run=prepared.parent, updates=2, warmup=1, repeats=2, floor_repeats=1, **size)
    result = json.loads(as_json(measure(options)))
    assert list(result["contestants"]) == ["ours", "plain"]
    assert "accelerate not installed" in result["left_out"]["huggingface"]
    assert "--preload" in result["left_out"]["ours-preloaded"] and "plain-preloaded" in result["left_out"]
    assert "--joeynmt" in result["left_out"]["joeynmt"] and "joeynmt-float32" in result["left_out"]
    assert result["contestants"]["ours"]["ours_is_times_as_fast"] == 1.0
    assert 0.0 <= result["contestants"]["ours"]["waited_share"] < 1.0
    assert result["pipeline"]["benchmark"]["times_training"] > 0
    assert set(result["padding_of_an_epoch"]) == {"ours"}
    show(result)
    table = capsys.readouterr().out
    assert "plain bf16 step" in table and "joeynmt: no --joeynmt PYTHON was given" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "holds no prepared data"),
        (("--warmup", "0"), "--warmup"),
        (("--architecture", "x"), "--architecture must be of transformer, dpn, convs2s, but is x"),
        (("--contestants", "x"), "--contestants must be of ours, plain"),
    ],
)
def test_wrong_options_are_refused(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["tandem", "bench", "training", "--run", str(tmp_path), *arguments])
    with pytest.raises(SystemExit):
        main()
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_data_of_several_sources_is_refused(work: TrainingWork, monkeypatch: pytest.MonkeyPatch) -> None:
    two = PreparedData(work.data.source_sides * 2, work.data.target_side)
    monkeypatch.setattr(PreparedData, "open", classmethod(lambda cls, folder, split: two))
    with pytest.raises(ConfigError, match="must have one source"):
        TrainingWork.open(work.folder, TINY, 100, 1)
