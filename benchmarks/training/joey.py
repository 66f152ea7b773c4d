"""Joey NMT, in an environment of its own: its requirements exclude ours.

    python -m venv joey
    joey/bin/pip install torch==2.13.0 joeynmt==2.3.0 "importlib_metadata<9"

torch should be the version that the others run on; Joey NMT needs importlib_metadata without asking for it. It is
given the same symbols as words in a text file, which spares it a tokeniser, and batches by its own tokens (the longer
side, padded), the nearest to ours; it groups no lengths. See ``joey_runner.py`` for what is changed in it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.training.work import DROPOUT, RATE, SMOOTHING, Count, TrainingPass, TrainingWork
from models.errors import ConfigError
from models.vocabulary import BOS, EOS, PAD, UNK

RUNNER = Path(__file__).with_name("joey_runner.py")
SPECIAL = {UNK: "<unk>", PAD: "<pad>", BOS: "<s>", EOS: "</s>"}
SIDES = ("source", "target")


class Joey:
    """Joey NMT's training command, once a turn.

    Args:
        work: what is trained.
        python: the interpreter of its environment.
        folder: for the corpus and its models, which are removed by the caller.
        attention_dropout: on attention weights.
        precision: "bf16", or "float32", the only one that it offers on a CPU.

    Raises:
        ConfigError: the interpreter has no Joey NMT.
    """

    def __init__(
        self, work: TrainingWork, python: Path, folder: Path, attention_dropout: float, precision: str
    ) -> None:
        self._work, self._python, self._folder = work, python, folder
        self._attention_dropout, self._precision = attention_dropout, precision
        self.name = f"Joey NMT {precision}"
        self.parameters = 0
        self.version = self._call(
            "-c",
            "import joeynmt.training; from importlib.metadata import version as v;"
            "print(v('joeynmt'), 'torch', v('torch'))",
        ).strip()
        if not (folder / "train.source").exists():
            write_corpus(work, folder)

    def run(self, turn: int, warmup: int, updates: int) -> TrainingPass:
        """Start it, train, and read what it noted; it begins with the same weights every time."""
        config = self._folder / "config.json"  # JSON is YAML
        config.write_text(json.dumps(self.config(turn, warmup + updates)), encoding="utf-8")
        out = self._folder / "noted.json"
        options = ["--threads", self._work.threads, "--attention-dropout", self._attention_dropout]
        self._call(RUNNER, config, out, "--precision", self._precision, *options)
        noted = json.loads(out.read_text(encoding="utf-8"))
        self.parameters = noted["parameters"]
        starts, counts = noted["starts"], [Count(*one) for one in noted["counts"]]
        count = sum(counts[warmup : warmup + updates], Count())
        return TrainingPass(updates, starts[warmup + updates] - starts[warmup], count)

    def config(self, turn: int, updates: int) -> dict[str, Any]:
        """Its configuration; one update more than is asked for is made, whose beginning ends the last."""
        size, files = self._work.size, self._folder
        side = {
            "embeddings": {"embedding_dim": size.width, "scale": True, "dropout": DROPOUT},
            "type": "transformer",
            "hidden_size": size.width,
            "ff_size": size.hidden,
            "num_layers": size.layers,
            "num_heads": size.heads,
            "dropout": DROPOUT,
            "layer_norm": "pre",
        }
        return {
            "name": "benchmark",
            "model_dir": str(files / "model"),
            "use_cuda": False,
            "random_seed": turn + 1,
            "data": {
                "train": str(files / "train"),
                "dev": str(files / "valid"),
                **{
                    key: {"lang": name, "level": "word", "voc_file": str(files / f"{name}.vocabulary")}
                    for key, name in zip(("src", "trg"), SIDES, strict=True)
                },  # its special symbols are the same four, in an order of its own
            },
            "model": {"tied_embeddings": False, "tied_softmax": True, "encoder": side, "decoder": side},
            "training": {
                "label_smoothing": SMOOTHING,
                "optimizer": "adam",
                "adam_betas": [0.9, 0.98],
                "learning_rate": RATE,
                "learning_rate_min": 0.0,
                "learning_rate_warmup": 1000,
                "scheduling": "warmupinversesquareroot",
                "clip_grad_norm": 1.0,
                "normalization": "tokens",
                "batch_size": self._work.batch_tokens,
                "batch_type": "token",
                "epochs": 100,
                "updates": updates + 1,
                "logging_freq": 1000,
                "validation_freq": 1_000_000,
                "overwrite": True,
                "shuffle": True,
            },
            "testing": {},
        }

    def _call(self, *arguments: object) -> str:
        environment = os.environ | {"OMP_NUM_THREADS": str(self._work.threads)}
        try:
            done = subprocess.run(
                [str(self._python), *map(str, arguments)], capture_output=True, text=True, env=environment
            )
        except OSError as error:
            raise ConfigError(f"{self._python} cannot be run: {error.strerror}") from error
        if done.returncode:
            raise ConfigError(f"{self._python}: Joey NMT failed: {done.stderr.strip()[-2000:]}")
        return done.stdout


def write_corpus(work: TrainingWork, folder: Path) -> None:
    """Training text of symbols as words, ten lines of it for validation, and both vocabularies."""
    for name, size in zip(SIDES, work.vocabularies, strict=True):
        words = (SPECIAL.get(index, f"w{index}") for index in range(size))
        (folder / f"{name}.vocabulary").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    with (folder / "train.source").open("w") as sources, (folder / "train.target").open("w") as targets:
        for source, target in work.pairs():
            sources.write(_line(source[:-1].tolist()))
            targets.write(_line(target.tolist()))
    for name in SIDES:
        with (folder / f"train.{name}").open() as lines:
            (folder / f"valid.{name}").write_text("".join(next(lines, "") for _ in range(10)))


def _line(symbols: Iterable[int]) -> str:
    return " ".join(SPECIAL.get(symbol, f"w{symbol}") for symbol in symbols) + "\n"
