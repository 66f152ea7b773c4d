"""Processes that rewrite training text ahead of a trainer that is faster than one thread of it.

One core rewrites fewer tokens a second than a large GPU trains on, and threads would share the trainer's interpreter.
Each process maps the prepared folder for itself and is sent the numbers of pairs; the text comes back as arrays. Pairs
are cut where their blocks are, so that who rewrites them changes nothing (:mod:`extras.augmentation.augmentation`).

Spawned, not forked: a fork would copy what CUDA cannot share, and the locks of the trainer's threads. They import no
torch, which would take each of them two seconds and 200 MB.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tandem.extras.augmentation.augmentation import BLOCK, Augmentation, load_augmentation, with_texts
from tandem.extras.shared.workers import deaf_to_interruption, serve_parent
from tandem.models.errors import TandemError
from tandem.training.data.dataset import PreparedData, TokenArray

if TYPE_CHECKING:
    from tandem.training.data.stream import TextRewriting
    from tandem.training.parallel import Processes
    from tandem.training.recipe import Recipe

PART = 8  # blocks that a process rewrites at once: a third of a second
_MOST = 16  # more than the largest GPU has use for
_OWN = 2  # cores that a training process keeps: for its main thread, and for those that plan and collate


class RewriterDied(TandemError):
    """A process that rewrites ended by itself, or was ended by somebody."""


@dataclass(frozen=True, slots=True)
class Rewriters:
    """Who rewrites the training split of a prepared folder.

    Attributes:
        folder: which every process opens.
        count: processes; 0 = none but the one that asks.
    """

    folder: Path
    count: int = 0


def open_augmentation(
    recipe: Recipe, folder: Path, asked: int | None, cores: int, processes: Processes
) -> TextRewriting:
    """What a recipe wants done to its training pairs, as :data:`training.loop.commands.OpenAugmentation`."""
    from tandem.training.data.stream import TextRewriting  # here: it imports torch

    rewriters = Rewriters(folder, rewriters_here(asked, cores, processes))
    return TextRewriting(partial(ShardRewriter, load_augmentation(recipe, folder), rewriters), rewriters.count)


def rewriters_here(asked: int | None, cores: int, processes: Processes) -> int:
    """How many processes rewrite for this training process.

    Args:
        asked: how many on this machine, shared out among those that train here; None = what suits the device: none on
            a CPU, whose cores are busy with training, and beside a GPU as many as the cores allow.
        cores: of this machine that may be used.
        processes: those that train together.
    """
    if asked is not None:
        return asked // processes.local_count
    if not processes.device.startswith("cuda"):
        return 0
    return max(0, min(_MOST, cores // processes.local_count - _OWN))


class ShardRewriter:
    """Rewrites pairs for one stream, until it is closed (see :class:`training.data.stream.TextRewriter`).

    Args:
        augmentation: what to do.
        rewriters: who does it. Processes start when they are first needed.
    """

    def __init__(self, augmentation: Augmentation, rewriters: Rewriters) -> None:
        self._augmentation = augmentation
        self._executor: ProcessPoolExecutor | None = None
        if rewriters.count:
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(rewriters.count, context, _start, (augmentation, rewriters.folder))

    def rewrites(self, epoch: int) -> bool:
        return self._augmentation.rewrites(epoch)

    def rewritten(self, data: PreparedData, pairs: NDArray[np.int64], epoch: int) -> PreparedData:
        """As :meth:`Augmentation.rewritten`, to the byte, whoever does it.

        Raises:
            RewriterDied: a process is gone.
        """
        if self._executor is None:
            return self._augmentation.rewritten(data, pairs, epoch)
        try:
            with deaf_to_interruption():  # the first work starts the processes
                parts = self._executor.map(partial(_texts, epoch), parts_of(pairs))
            return with_texts(data, pairs, list(parts))
        except BrokenProcessPool as error:  # found out by whichever looks first, who submits or who waits
            raise RewriterDied(
                "a process that rewrites training text has ended, perhaps for want of memory: go on with --resume, and"
                " fewer --rewriters (0 = none)"
            ) from error

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


def parts_of(pairs: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Pairs in rising order, cut at the borders of every so-many blocks that they are of."""
    blocks = np.unique(pairs // BLOCK)
    yield from np.split(pairs, np.searchsorted(pairs, blocks[PART::PART] * BLOCK))


_source: tuple[Augmentation, Path] | None = None  # a worker's own


def _start(augmentation: Augmentation, folder: Path) -> None:
    global _source
    _source = augmentation, folder
    serve_parent()
    if hasattr(os, "setsid"):  # what ends a trainer with a SIGTERM for its group (`timeout`) is the trainer's to heed
        os.setsid()


@cache
def _opened(folder: Path) -> PreparedData:
    """Opened at the first work, not at the start, from where an error would not reach the trainer as itself."""
    return PreparedData.open(folder, "train")


def _texts(epoch: int, pairs: NDArray[np.int64]) -> tuple[TokenArray, ...]:
    if _source is None:
        raise RuntimeError("pairs came before what to do with them")
    augmentation, folder = _source
    return augmentation.rewritten_texts(_opened(folder), pairs, epoch)
