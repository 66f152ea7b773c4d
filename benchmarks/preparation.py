"""What memory the preparation of a corpus takes, and how fast it is, for corpora of many sizes.

    python benchmarks/preparation.py [--pairs 1000000 4000000] [--folder FOLDER] [--json]

For every size two files of made-up sentences are written: words drawn by Zipf's law, lengths as those of sentences, one
pair in ten there twice. A process of its own prepares them as ``tandem prepare`` does, with one vocabulary of 8,000
pieces for both sides. Printed are the highest of its own memory (``RssAnon``: what cannot be given back) in each stage,
seconds in all, and what the folder takes on disk while it is made and at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from training.data.config import CorpusConfig, DataConfig
from training.data.prepare import prepare

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


def own_memory() -> float:
    """Megabytes that this process cannot give back."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return next(int(line[1]) / 1024 for line in lines if line[0] == "RssAnon:")


def measure(folder: Path) -> dict[str, float]:
    """Prepare what lies in a folder; the numbers of one size."""
    stage, highest, most_disk, over = ["start"], defaultdict[str, float](float), [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            highest[stage[0]] = max(highest[stage[0]], own_memory())
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--folder", type=Path, help="where the corpora go for a while [the system's temporary folder]")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(options.measure)))
        return
    rows = []
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory(prefix="tandem-preparation-", dir=options.folder) as folder:
            generate(Path(folder), pairs)
            own = [sys.executable, __file__, "--measure", folder]
            rows.append(json.loads(subprocess.run(own, check=True, stdout=subprocess.PIPE, text=True).stdout))
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print("| " + " | ".join(rows[0]) + " |\n|" + "--:|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(f"{value:,.0f}" for value in row.values()) + " |")


if __name__ == "__main__":
    main()
