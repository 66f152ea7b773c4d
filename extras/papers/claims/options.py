"""What `tandem bench claims` is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from tandem.extras.shared.report import Measurement
from tandem.models.command import CorporaFolder


@dataclass(frozen=True, kw_only=True)
class ClaimsOptions(Measurement):
    """Train what a paper's table compares, small and alike, and set its rows beside ours: mean and deviation of BLEU.

    A variant has the data, updates and widths of a recipe for Multi30k (docs/corpora.md) and the switches of the
    published one; extras/papers/claims/claims.toml lists the tables. Ctrl-C stops and saves, the same command goes on.

    Example: tandem bench claims --families dpn-paths,convs2s-attention --seeds 3
    """

    families: Annotated[str, Option(help="Tables, with commas. [all]")] = ""
    rows: Annotated[str, Option(help="Rows of these tables, with commas, such as dpn-m1,dpn-m9. [all]")] = ""
    seeds: Annotated[int, Option(min=1, help="Runs of each variant.")] = 3
    updates: Annotated[int | None, Option(min=1, help="Of each run. [the recipe's]")] = None
    precision: Annotated[str | None, Option(help="Of training, such as float32. [the recipe's]")] = None
    corpora: CorporaFolder = Path("corpora")
    runs: Annotated[Path, Option(help="Folder of the runs; what is there is not made again.")] = Path("runs/claims")
    scores: Annotated[
        Path | None, Option(help="JSON file of the scores; what has one is not trained. [RUNS/scores.json]")
    ] = None
    curves: Annotated[
        Path | None, Option(help="Draw into this folder how the rows learnt, a figure for each table, of runs in RUNS.")
    ] = None
    no_train: Annotated[bool, Option("--no-train", help="Print what has a score already, and train nothing.")] = False
    threads: Annotated[int, Option(min=1, help="Of training and of decoding.")] = 1
