"""`tandem bench streaming`: what memory training's input takes for corpora of many sizes, and how fast it gives
batches.

A corpus is mapped into memory, planned shard by shard, and collated in the background, by a process that does nothing
else. Its own memory does not grow with the corpus beyond one shard; the pages of the corpus that lie in memory are a
cache, which the system takes back when it needs the room.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import StreamingOptions
from benchmarks.training.sizes import measure_sizes, show
from deploy.loadtest.server import memory_of
from training.data.dataset import PreparedData, TokenArray
from training.data.stream import SHARD, Stream
from training.parallel import Processes

__all__ = ["measure", "show"]
PIECE = 500_000  # pairs written at once
SIDES = ("source", "target")


def generate(folder: Path, pairs: int) -> None:
    """Write both sides: lengths as those of sentences, symbols of a vocabulary of 8,000."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(2.9, 0.6, pairs), 2, 200).astype(np.int64)
    for side in SIDES:
        if side == "target":
            lengths = np.clip(lengths * rng.lognormal(0, 0.25, pairs), 2, 200).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        np.save(folder / f"{side}.offsets.npy", offsets)
        path = folder / f"{side}.tokens.npy"
        tokens = np.lib.format.open_memmap(path, "w+", np.uint16, (int(offsets[-1]),))
        for start in range(0, pairs, PIECE):
            part = slice(int(offsets[start]), int(offsets[min(start + PIECE, pairs)]))
            tokens[part] = rng.integers(4, 8000, part.stop - part.start, dtype=np.uint16)
        tokens.flush()


def measure(options: StreamingOptions) -> dict[str, Any]:
    """``environment`` and ``rows``, one for each size."""
    return measure_sizes(options.pairs, options.folder, generate, partial(read, updates=options.updates))


def own_memory() -> float:
    """Megabytes of this process that cannot be given back; 0 where the system does not tell."""
    return memory_of().get("anonymous_mb", 0.0)


def read(folder: Path, updates: int) -> dict[str, float]:
    """Open, plan and read; the numbers of one size."""
    arrays = (
        TokenArray(
            *(np.asarray(np.load(folder / f"{side}.{part}.npy", mmap_mode="r")) for part in ("tokens", "offsets"))
        )
        for side in SIDES
    )
    source, target = arrays
    data = PreparedData((source,), target)
    stream = Stream(data, 1, Processes(), None, seed=1, max_tokens=4000)
    opened = own_memory()
    held = stream.plan_bytes()
    started = time.perf_counter()
    groups = stream.updates()
    next(groups)
    planned, first = own_memory(), time.perf_counter() - started
    highest, started = planned, time.perf_counter()
    padded = used = count = 0
    for group in islice(groups, updates):
        (batch,) = group.batches
        padded += batch.target_out.numel() + batch.sources[0].values.numel()
        used += batch.target_tokens + batch.source_tokens
        count += 1
        if count % 100 == 0:
            highest = max(highest, own_memory())
    seconds = time.perf_counter() - started
    groups.close()
    return {
        "pairs": len(data),
        "opened_mb": opened,
        "planned_mb": planned,
        "highest_mb": highest,
        "mapped_mb": memory_of().get("mapped_mb", 0.0),
        "plan_bytes_a_pair": held / min(len(data), SHARD),
        "first_batch_s": first,
        "batches_a_second": count / seconds,
        "padding": 1 - used / padded,
    }
