"""The proof of a GPU, rehearsed on the CPU: every line that makes sense there holds."""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tandem.extras.gpu.capture import CapturedStep, Captures
from tandem.extras.gpu.memory import DeviceMemory
from tandem.extras.laboratory.gpu import equality, loan, serving, steps, training
from tandem.extras.laboratory.gpu.lines import Line, Missing, attempt
from tandem.extras.laboratory.gpu.loan import chosen, markdown, measure, plan
from tandem.extras.laboratory.gpu.subjects import REPETITION, SYSTEMS
from tandem.extras.laboratory.options import GpuOptions
from tandem.extras.shared.sentences import proof_sentences
from tandem.models.architectures.registry import ARCHITECTURES, build_model
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tests.hiding import hiding
from tests.shipped import ROOT, SHIPPED

REHEARSED = [line for line in plan(GpuOptions(device="cpu", bundle=SHIPPED)) if line.name.split()[0] != "service"]
PRESENT = {
    "torch",
    "numpy",
    "onnx",
    "onnxruntime",
    "sentencepiece",
    "safetensors",
    "sacrebleu",
    "lxml",
    "typer",
    "rich",
}
"""Of the packages that the project names those that a machine has which runs this."""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of processes that find nothing else of what the project can use."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {re.split(r"[^\w-]", one)[0] for extra in extras.values() for one in extra} - PRESENT - {"onnxruntime-gpu"}
    owned = packages_distributions().items()
    modules = {module for module, owners in owned if named.intersection(one.replace("_", "-") for one in owners)}
    absent = {module for module in modules if not module.startswith("_")}
    absent -= {"annotated_types", "pydantic", "pydantic_core"}  # newer versions of Typer bring them, and need them
    assert {"fastapi", "pydantic_settings", "structlog", "prometheus_client", "tomlkit"} <= absent
    return hiding(absent, tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=line.name, marks=[] if line.name in ("device", "equal dpn") else pytest.mark.slow)
        for line in REHEARSED
    ],
)
def test_a_line_holds_on_the_cpu(line: Line) -> None:
    """Or says why it is left out; none fails."""
    outcome, broken = attempt(line)
    assert not broken
    words, expected = line.name.split(), None
    peers = {"huggingface": "transformers", "ctranslate2": "ctranslate2"}
    if absent := [peers[word] for word in words if word in peers and find_spec(peers[word]) is None]:
        expected = f"{absent[0]} is not installed"
    if expected is None:
        assert outcome["status"] == "ok", outcome
    else:
        assert (outcome["status"], outcome["summary"]) == ("skipped", expected)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["convs2s", "multisource"])
def test_an_epoch_of_multi30k_is_trained_where_it_is_given(system: str, tmp_path: Path) -> None:
    """As much of it as fits the time; a corpus that is none fails the line, and no other."""
    draw = np.random.default_rng(0)
    for split, pairs in (("train", 600), ("val", 10), ("valid", 10), ("test", 10), ("test_2016_flickr", 10)):
        for side in ("de", "en"):
            words = ["".join(draw.choice(list("abcdefghij"), 7)) for _ in range(pairs * 6)]
            lines = [" ".join(words[6 * number : 6 * number + 6]) for number in range(pairs)]
            path = tmp_path / f"multi30k/{split}.{side}.xz"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode()))
    options = GpuOptions(device="cpu", minutes=8, corpora=tmp_path)
    (line,) = (line for line in plan(options) if line.name == f"train {system} eager")
    part, _ = attempt(replace(line, arguments={**line.arguments, "small": False, "tokens": 150, "seconds": 0.0}))
    assert part["status"] == "ok" and "% of an epoch of Multi30k" in part["summary"], part
    assert part["figures"]["epoch"] < 0.2 and part["figures"]["target_tokens_per_s"] > 0
    whole, _ = attempt(replace(line, arguments={**line.arguments, "corpora": "", "seconds": 60.0}))
    assert whole["status"] == "ok" and whole["summary"].startswith("one epoch of synthetic pairs"), whole
    (tmp_path / "none/multi30k").mkdir(parents=True)
    none, broken = attempt(replace(line, arguments={**line.arguments, "corpora": str(tmp_path / "none")}))
    assert none["status"] == "failed" and "CorpusError" in none["summary"] and not broken


@pytest.mark.slow
def test_the_service_is_loaded_beside_the_naive_one() -> None:
    pytest.importorskip("ctranslate2")
    options = GpuOptions(device="cpu", bundle=SHIPPED)
    (line,) = (line for line in plan(options) if line.name == "service")
    outcome, _ = attempt(replace(line, arguments={**line.arguments, "seconds": 0.5}))
    assert outcome["status"] == "ok" and "; naive " in outcome["summary"]
    assert outcome["figures"]["requests"] > 0 < outcome["figures"]["naive"]["requests"]


def test_every_architecture_is_proved() -> None:
    assert set(SYSTEMS) == set(ARCHITECTURES) - {"ensemble"}
    for form in (8.0, 30.0):
        names = [line.name for line in plan(GpuOptions(minutes=form))]
        assert len(names) == len(set(names))
        assert {f"{kind} {system}" for kind in ("equal", "train equal", "capture") for system in SYSTEMS} <= set(names)
    long, short = ([*plan(GpuOptions(minutes=minutes))] for minutes in (30.0, 8.0))
    assert len(long) > len(short)


def test_the_lines_are_planned_for_the_minutes_that_there_are() -> None:
    assert GpuOptions().minutes < 10
    for options in (GpuOptions(), GpuOptions(minutes=30)):
        assert sum(line.planned for line in plan(options)) <= 60 * options.minutes
    assert sum(line.planned for line in plan(GpuOptions(minutes=8))) <= 60 * 8


def test_what_matters_most_comes_first() -> None:
    kinds = [line.name.rpartition(" ")[0] or line.name for line in plan(GpuOptions())]
    first = {kind.partition(" ")[0]: place for place, kind in reversed([*enumerate(kinds)])}
    assert sorted(first, key=lambda kind: first[kind]) == [
        *("device", "equal", "train", "bundle", "capture", "step", "service", "beside")
    ]
    assert kinds.index("train equal") < kinds.index("bundle") < kinds.index("service") < kinds.index("train dpn")


def test_the_short_form_has_the_steps_that_matter() -> None:
    names = {line.name for line in plan(GpuOptions(minutes=8))}
    assert {f"step dpn {size} {how}" for size in ("64x5", "512x5") for how in ("eager", "graph")} <= names


def test_steps_are_timed_with_the_rules_of_shipped_bundles() -> None:
    assert "step dpn 512x5 graph rules" in {line.name for line in plan(GpuOptions())}
    decoding = Bundle.load(SHIPPED).manifest.decoding
    assert {name: getattr(decoding, name) for name in REPETITION} == REPETITION


def test_what_trainings_are_compared_with_is_computed_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number the machine has, which the lines after it have again."""
    used, losses = [], training._losses

    def counted(*given: Any) -> list[float]:
        used.append(torch.get_num_threads())
        return losses(*given)

    monkeypatch.setattr(training, "_losses", counted)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = training.equal(system="memd", device="cpu", small=True)
        assert (used, torch.get_num_threads()) == ([1, 1], 2)
    finally:
        torch.set_num_threads(before)
    assert found.met and found.figures["cpu_seconds"] > 0 < found.figures["device_seconds"]


@pytest.mark.parametrize("rules", [True, False])
def test_a_timed_step_says_its_rules(rules: bool) -> None:
    more: dict[str, Any] = {
        "system": "memd",
        "dtype": "float32",
        "sentences": 1,
        "beam_size": 2,
        "how": "eager",
        "rules": rules,
    }
    found = steps.speed(**more, device="cpu", small=True)
    said = "no_repeat_ngram_size 6, max_rounds 2: " if rules else "no rules: "
    assert found.summary.startswith(said) and found.figures["rules"] == (REPETITION if rules else {})


class Recorded(CapturedStep):
    """Records on the CPU what is captured on a GPU, encodings too, but for the first few."""

    refused = 0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, recorder=lambda: self, **named)
        memory = DeviceMemory(self.device)
        self._encodings = Captures(self.device, self.counters, lambda: self, 128, memory, lambda: False)

    def record(self, work: Callable[[], None]) -> Any:
        if self.counters.capture_failures < self.refused:
            raise RuntimeError("operation not permitted when stream is capturing")
        return SimpleNamespace(replay=work)

    def encode(self, sources: Any) -> Any:
        return self.encode_captured(sources)


@pytest.mark.parametrize(("refused", "captured"), [(0, 19), (1, 19), (4, 19), (38, 0)])
def test_what_cannot_be_captured_fails_the_line(refused: int, captured: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it at the first attempt only."""
    monkeypatch.setattr(steps, "CapturedStep", Recorded)
    monkeypatch.setattr(Recorded, "refused", refused)
    found = steps.capture(system="memd", device="cpu", small=True, dtype="float32")
    figures = found.figures
    assert (figures["step_sizes"], figures["encode_sizes"], figures["failed"]) == (16, 3, refused)
    assert figures["step_graphs"] + figures["encode_graphs"] == captured
    assert found.summary.startswith(
        f"{figures['step_graphs']} step graphs of 16 sizes and rules, {figures['encode_graphs']} encode graphs of 3,"
        f" {refused} failed, "
    )
    assert found.met is (refused == 0) and figures["same"] == 1.0


HALF: dict[str, Any] = {
    "bundle": str(SHIPPED),
    "source": "",
    "references": "",
    "device": "cpu",
    "small": True,
    "limit": 4,
}


def test_a_bundle_is_compared_with_the_cpu_or_by_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = equality.half(**HALF, dtype="bfloat16")
    assert found.met and found.figures["sentences"] == 4 and not found.figures["routed"]
    assert "BLEU against what float32 on the CPU writes" in found.summary
    (tmp_path / "de").write_text("Guten Morgen!\nWo ist der Bahnhof?\n")
    (tmp_path / "en").write_text("Good morning!\nWhere is the train station?\n")
    files = {"source": str(tmp_path / "de"), "references": str(tmp_path / "en")}
    judged = equality.half(**{**HALF, **files}, dtype="bfloat16")
    assert judged.met and set(judged.figures["bleu"]) == {"bfloat16", "float32"}
    monkeypatch.setattr(equality, "_on_cpu", lambda work: ["Something else."] * len(work.lines))
    assert not equality.half(**HALF, dtype="bfloat16").met
    assert not equality.half(**{**HALF, **files}, dtype="bfloat16").met


def test_lines_with_a_bundle_say_what_they_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = str(tmp_path / "none")
    said = f"there is no bundle {absent}: name one with --bundle"
    with pytest.raises(Missing, match=said):
        equality.half(**{**HALF, "bundle": absent}, dtype="float16")
    with pytest.raises(Missing, match=said):
        serving.load(bundle=absent, device="cpu", clients=1, seconds=1.0)
    monkeypatch.setattr(equality, "proof_sentences", lambda language: proof_sentences("fr"))
    with pytest.raises(Missing, match="needs --source: there are no built-in sentences in 'fr'"):
        equality.half(**{**HALF, "limit": 3}, dtype="float16")
    with pytest.raises(ConfigError, match="--references needs --source"):
        measure(GpuOptions(references=tmp_path / "en"))


def test_lines_are_chosen_by_their_first_word() -> None:
    lines = [Line(name, "", {}) for name in ("device", "equal dpn", "equal memd", "step dpn 8x5 eager")]
    assert chosen(lines, "") == lines
    assert chosen(lines, "equal, device") == lines[:3]
    with pytest.raises(ConfigError, match="--only must be of device, equal, step, but has speed"):
        chosen(lines, "speed")


def test_without_a_device(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = measure(GpuOptions(minutes=8))
    assert result["exit_status"] == 3 and not result["met"] and result["lines"] == []
    loan.show(result)
    assert capsys.readouterr().out == f"no device: 0 of {result['count']} lines run\n"


@pytest.mark.slow
def test_the_command_needs_few_packages(tmp_path: Path, bare: dict[str, str]) -> None:
    """It runs, fails line by line and writes its files where much is not installed."""
    files = ["--out", str(tmp_path / "gpu.json"), "--table", str(tmp_path / "gpu.md")]
    arguments = ["gpu", "--device", "cpu", "--minutes", "2", "--only", "device,service,beside", *files]
    done = subprocess.run(
        [sys.executable, "-m", "tandem", "bench", *arguments], env=bare, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "gpu.json").read_text())
    assert [one["status"] for one in result["lines"]] == ["ok", *["skipped"] * 3]
    assert (tmp_path / "gpu.md").read_text() == markdown(result)
    assert "1 of 4 lines ok, 3 skipped" in done.stdout


@pytest.mark.slow
def test_no_module_of_it_needs_what_a_bare_machine_lacks(bare: dict[str, str]) -> None:
    modules = [
        f"tandem.extras.laboratory.gpu.{path.stem}" for path in (ROOT / "extras/laboratory/gpu").glob("[!_]*.py")
    ]
    program = "import importlib, sys; sys.modules['pydantic'] = None"
    program += f"; [importlib.import_module(name) for name in {['tandem.extras.laboratory.cli', *modules]!r}]"
    done = subprocess.run([sys.executable, "-c", program], env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_failed_line_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcomes(lines: Any, seconds: float) -> Any:
        for line, status in zip(lines, ("ok", "failed"), strict=False):
            yield {"line": line.name, "status": status, "seconds": 0.0, "summary": "a | b", "figures": {}}

    monkeypatch.setattr(loan, "run_lines", outcomes)
    result = measure(GpuOptions(device="cpu"))
    assert result["met"] is False
    assert "| a \\| b |" in markdown(result)


def test_models_of_full_size_are_those_of_the_recipes() -> None:
    from tandem.extras.laboratory.gpu.subjects import system_config, system_recipe

    for system in SYSTEMS:
        with torch.device("meta"):
            model = build_model(system_recipe(system).architecture, system_config(system, small=False))
        assert 1e6 < sum(p.numel() for p in model.parameters()) < 40e6, system
