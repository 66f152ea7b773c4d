"""`tandem bench preparation`: what memory the preparation of a corpus takes, and how fast it is.

The text is made up: words drawn by Zipf's law, lengths as those of sentences, one pair in ten there twice; one
vocabulary of 8,000 pieces serves both sides. Memory is read in each stage of a process that does nothing else.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import PreparationOptions
from benchmarks.training.sizes import measure_sizes, show
from deploy.loadtest.server import memory_of
from training.data.config import CorpusConfig, DataConfig
from training.data.prepare import prepare

__all__ = ["measure", "show"]
WORDS = 50_000
PIECE = 100_000  # pairs written at once
LANGUAGES = ("de", "en")


def generate(folder: Path, pairs: int) -> None:
    """Write ``train.de`` and ``train.en``."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwygpbvk"))
    words = np.array(["".join(rng.choice(letters, length)) for length in rng.integers(2, 11, WORDS)])
    weights = 1 / np.arange(2, WORDS + 2)
    for language in LANGUAGES:
        with (folder / f"train.{language}").open("w", encoding="utf-8") as file:
            for start in range(0, pairs, PIECE):
                lengths = np.clip(rng.lognormal(2.5, 0.5, min(PIECE, pairs - start)), 2, 60).astype(int)
                drawn = words[rng.choice(WORDS, int(lengths.sum()), p=weights / weights.sum())].tolist()
                lines = [
                    " ".join(drawn[end - length : end]) for length, end in zip(lengths, np.cumsum(lengths), strict=True)
                ]
                lines[-len(lines) // 10 :] = lines[: len(lines) // 10]
                file.writelines(f"{line}\n" for line in lines)


def measure(options: PreparationOptions) -> dict[str, Any]:
    """``environment`` and ``rows``, one for each size."""
    return measure_sizes(options.pairs, options.folder, generate, prepare_watched)


def prepare_watched(folder: Path) -> dict[str, float]:
    """Prepare what lies in a folder; the numbers of one size."""
    stage, highest, most_disk, over = ["start"], defaultdict[str, float](float), [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            highest[stage[0]] = max(highest[stage[0]], memory_of().get("anonymous_mb", 0.0))
            most_disk[0] = max(most_disk[0], sum(path.stat().st_size for path in folder.glob(".data*/*")))

    def note(name: str, done: int, total: int) -> None:
        stage[0] = name.split()[0]

    corpus = CorpusConfig(
        "made-up", (f"{{split}}.{LANGUAGES[0]}",), f"{{split}}.{LANGUAGES[1]}", "CC0-1.0", "nobody", splits=("train",)
    )
    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    try:
        made = prepare(
            DataConfig((corpus,), placeholder_share=0.05),
            languages=LANGUAGES,
            root=folder,
            out=folder / "data",
            seed=1,
            progress=note,
        )
    finally:
        over.set()
        watcher.join()
    return {
        "pairs": made.splits["train"].pairs,
        **{f"{name}_mb": value for name, value in highest.items() if name != "start"},
        "seconds": time.perf_counter() - started,
        "disk_highest_mb": most_disk[0] / 1e6,
        "disk_mb": sum(path.stat().st_size for path in (folder / "data").rglob("*.*")) / 1e6,
    }
