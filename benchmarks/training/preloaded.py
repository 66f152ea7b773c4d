"""Our trainer, or the plain step, in a process of its own whose allocator is another than the C library's."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from unittest import mock

import torch

from benchmarks.training.ours import Ours, Plain
from benchmarks.training.work import Contestant, TrainingPass, TrainingWork
from benchmarks.transformers import TransformerSize
from models.errors import ConfigError

MAKERS: dict[str, Callable[[TrainingWork, str, float], Contestant]] = {"ours": Ours, "plain": Plain}
_entered: Contestant  # in the process of its own


class Preloaded:
    """One of ours under ``LD_PRELOAD``.

    Args:
        work: what is trained.
        kind: "ours" or "plain".
        architecture: of the model.
        attention_dropout: on attention weights.
        library: the allocator's shared library, such as libtcmalloc_minimal.so.4.

    Raises:
        ConfigError: there is no such file.
    """

    def __init__(
        self, work: TrainingWork, kind: str, architecture: str, attention_dropout: float, library: Path
    ) -> None:
        if not library.is_file():
            raise ConfigError(f"{library} is no file: --preload wants an allocator's shared library")
        opened = work.folder, work.size, work.batch_tokens, work.threads
        self._process = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _enter, (opened, kind, architecture, attention_dropout)
        )
        with mock.patch.dict(os.environ, {"LD_PRELOAD": str(library)}):  # the process starts with the first call
            name, self.parameters, where = self._process.submit(_describe).result()
        if library.resolve().name not in where:
            raise ConfigError(f"{library} was not loaded: is it built for this machine?")
        self.name = f"{name}, {library.name.split('.')[0]}"

    def run(self, turn: int, warmup: int, updates: int) -> TrainingPass:
        return self._process.submit(_run, turn, warmup, updates).result()


def _enter(
    opened: tuple[Path, TransformerSize, int, int], kind: str, architecture: str, attention_dropout: float
) -> None:
    global _entered
    work = TrainingWork.open(*opened)
    torch.set_num_threads(work.threads)
    _entered = MAKERS[kind](work, architecture, attention_dropout)


def _describe() -> tuple[str, int, str]:
    """Name, parameters, and the files that this process has mapped."""
    return _entered.name, _entered.parameters, Path("/proc/self/maps").read_text(encoding="utf-8")


def _run(turn: int, warmup: int, updates: int) -> TrainingPass:
    return _entered.run(turn, warmup, updates)
