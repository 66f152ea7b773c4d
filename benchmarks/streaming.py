"""What memory training's input takes for corpora of many sizes, and how fast it gives batches.

    python benchmarks/streaming.py [--pairs 1000000 10000000] [--updates 2000] [--folder FOLDER] [--json]

For every size a corpus of random symbols is written as prepared data is, in pieces, and then read by a process of its
own as training reads it: mapped into memory, planned shard by shard, collated in the background. Printed are this
process's own memory (``RssAnon``: what cannot be given back) after opening, with the first plan, and at its highest
while batches are read; the pages of the corpus that lie in memory at the end (``RssFile``: a cache, which the system
takes back when it needs the room); what the plan holds for each pair of a shard; and batches a second with nothing
else to do. The own memory does not grow with the corpus beyond one shard; a corpus of 10 million pairs takes 1.3 GB in
the folder, for the time of the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from training.data.dataset import PreparedData, TokenArray
from training.data.stream import SHARD, Share, Stream

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


def memory() -> dict[str, float]:
    """Megabytes of this process: its own, and those of mapped files."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {line[0][:-1]: int(line[1]) / 1024 for line in lines if line[0] in ("RssAnon:", "RssFile:")}


def read(folder: Path, updates: int) -> dict[str, float]:
    """Open, plan and read; the numbers of one size."""
    arrays = (
        TokenArray(
            *(np.asarray(np.load(folder / f"{side}.{part}.npy", mmap_mode="r")) for part in ("tokens", "offsets"))
        )
        for side in SIDES
    )
    source, target = arrays
    data = PreparedData.from_sides([source], target)
    stream = Stream(data, 1, Share(), None, seed=1, max_tokens=4000)
    opened = memory()["RssAnon"]
    held = stream.plan_bytes()
    started = time.perf_counter()
    groups = stream.updates()
    next(groups)
    planned, first = memory()["RssAnon"], time.perf_counter() - started
    highest, started = planned, time.perf_counter()
    padded = used = count = 0
    for group in islice(groups, updates):
        (batch,) = group.batches
        padded += batch.target_out.numel() + batch.sources[0].values.numel()
        used += batch.target_tokens + batch.source_tokens
        count += 1
        if count % 100 == 0:
            highest = max(highest, memory()["RssAnon"])
    seconds = time.perf_counter() - started
    groups.close()
    return {
        "pairs": len(data),
        "opened_mb": opened,
        "planned_mb": planned,
        "highest_mb": highest,
        "mapped_mb": memory()["RssFile"],
        "plan_bytes_a_pair": held / min(len(data), SHARD),
        "first_batch_s": first,
        "batches_a_second": count / seconds,
        "padding": 1 - used / padded,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--folder", type=Path, help="where the corpora go for a while [the system's temporary folder]")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        print(json.dumps(read(options.read, options.updates)))
        return
    rows = []
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory(prefix="tandem-streaming-", dir=options.folder) as folder:
            generate(Path(folder), pairs)
            own = [sys.executable, __file__, "--read", folder, "--updates", str(options.updates)]
            rows.append(json.loads(subprocess.run(own, check=True, capture_output=True, text=True).stdout))
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print("| " + " | ".join(rows[0]) + " |\n|" + "--:|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(f"{value:,.2f}" if value < 100 else f"{value:,.0f}" for value in row.values()) + " |")


if __name__ == "__main__":
    main()
