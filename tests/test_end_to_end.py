"""The whole way with the commands a user types: prepare, train, export, verify, serve, translate."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, nullcontext
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app
from tests.command import needs
from tests.determinism import one_thread, seeded
from tests.sharing import made_once
from tests.training.toy import without_graphs

__all__ = ["one_thread", "seeded"]

RECIPE = """
name = "copy"
task = "translate"
source_languages = ["de"]
target_language = "en"
architecture = "dpn"
licence = "CC0-1.0"

[data]
max_source_tokens = 40
max_target_tokens = 40
placeholder_share = 0.0

[[data.corpora]]
name = "syllables"
source = ["{split}.de"]
target = "{split}.en"
licence = "CC0-1.0"
attribution = "made by the test"

[data.vocabulary]
size = 340

[model]
width = 64
hidden = 128
cnn_layers = 1
san_layers = 1
max_positions = 64
dropout = 0.0

[optimiser]
learning_rate = 3e-3
warmup = 50
cooldown = 80

[training]
updates = 200
batch_tokens = 500
validate_every = 100
validation_sentences = 40
save_every = 100
metric = "bleu"
precision = "float32"

[decoding]
beam_size = 3
max_length = 30
"""


def tandem(folder: Path, *arguments: str) -> str:
    """Run the command in a folder; its output. In this process: starting one for each takes longer than they do."""
    with chdir(folder):
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module", params=["torch", pytest.param("onnx", marks=pytest.mark.slow)])
def runtime(request: pytest.FixtureRequest) -> str:
    """What runs the bundle: its graphs take half a minute to make, so every day there are none."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
@made_once
def bundle(runtime: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that learnt to copy sentences of made-up syllables."""
    folder = tmp_path_factory.mktemp("copy")
    chance = random.Random(5)
    syllables = [c + v for c in "bdfgkl" for v in "aeiou"]

    def line() -> str:
        return " ".join(chance.choice(syllables) for _ in range(chance.randint(2, 7)))

    for split, size in (("train", 1500), ("valid", 60), ("test", 60)):
        text = "".join(f"{line()}\n" for _ in range(size))
        for side in ("de", "en"):
            (folder / f"{split}.{side}").write_text(text, encoding="utf-8")
    (folder / "copy.toml").write_text(RECIPE, encoding="utf-8")
    tandem(folder, "prepare", "copy.toml", "--corpora", ".")
    tandem(folder, "train", "copy.toml")
    with without_graphs() if runtime == "torch" else nullcontext():
        tandem(folder, "export", "runs/copy", "--out", "bundles/copy")
    return folder / "bundles" / "copy"


@pytest.fixture
def server(bundle: Path, runtime: str) -> Iterator[str]:
    """The address of a running `tandem serve` with that bundle."""
    command = [sys.executable, "-m", "tandem", "serve", "bundles", "--port", "0", "--runtime", runtime]
    folder = bundle.parent.parent
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                address = found[0]
                break
        assert address is not None, "the server ended before it said where it listens"
        try:
            yield address
        finally:
            process.terminate()
            process.stdout.read()
    assert process.returncode == 0, "SIGTERM must end the server cleanly"


@needs("describe")
def test_describe_tells_the_size(bundle: Path) -> None:
    described = json.loads(tandem(bundle.parent, "describe", "copy", "--json"))
    parameters = described["parameters"]
    assert parameters.pop("total") == sum(parameters.values())


@needs("evaluate")
def test_evaluate_scores_the_test_set(bundle: Path, runtime: str) -> None:
    folder = bundle.parent.parent
    arguments = ("--source", "test.de", "--references", "test.en", "--runtime", runtime, "--json")
    result = json.loads(tandem(folder, "evaluate", "bundles/copy", *arguments))
    assert result["segments"] == 60
    bleu = next(score["value"] for score in result["scores"]["copy"] if score["metric"] == "BLEU")
    assert bleu > 90


@needs("verify")
@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnx"], indirect=True)
def test_verify_proves_the_bundle(bundle: Path) -> None:
    folder = bundle.parent.parent
    proof = json.loads(tandem(folder, "verify", "bundles/copy", "--text", "test.de", "--device", "auto", "--json"))
    assert proof["passed"], proof
    assert [one["runtime"].split()[0] for one in proof["exact"]] == ["onnx", "torchscript", "torch"]


def test_train_from_a_bundle_starts_where_it_ended(bundle: Path) -> None:
    folder = bundle.parent.parent
    tandem(folder, "prepare", "copy.toml", "--corpora", ".", "--from", "bundles/copy", "--run", "runs/more")
    output = tandem(folder, "train", "copy.toml", "--from", "bundles/copy", "--run", "runs/more", "--updates", "1")
    validation = re.search(r"bleu ([\d.]+)", output)
    assert validation, output
    assert float(validation[1]) > 90


def test_the_server_translates(server: str) -> None:
    text = "ba de fi\n\n  go ku la"
    answer = httpx.post(f"{server}/translate", json={"q": text, "source": "de", "target": "en"}, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"translatedText": text}
