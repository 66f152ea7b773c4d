"""How the rows of a table learnt, as figure 1 of Libovický and Helcl draws it: a line for each, by updates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from tandem.extras.evaluation.plots import save_figure
from tandem.training.loop.reporting import read_metrics

Curves = dict[str, list[tuple[int, float]]]


def learning(runs: Mapping[str, Sequence[Path]]) -> tuple[str, Curves]:
    """The validations of rows that have any: BLEU where all of them decoded sentences, perplexity otherwise.

    Args:
        runs: by row the folders of its runs; those that have gone are left out.

    Returns:
        The name of the metric, and by row its value after each update, the mean over the runs that have one there.
    """
    lines = {row: [line for folder in folders for line in _validations(folder)] for row, folders in runs.items()}
    every = [line for found in lines.values() for line in found]
    metric = "bleu" if every and all("bleu" in line for line in every) else "perplexity"
    return metric, {row: _means(found, metric) for row, found in lines.items() if found}


def _validations(folder: Path) -> list[dict[str, Any]]:
    file = folder / "metrics.jsonl"
    return [line for line in read_metrics(file) if line["group"] == "valid"] if file.exists() else []


def _means(lines: Sequence[Mapping[str, Any]], metric: str) -> list[tuple[int, float]]:
    values: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        values[line["update"]].append(line[metric])
    return [(update, mean(found)) for update, found in sorted(values.items())]


def draw_learning(name: str, runs: Mapping[str, Sequence[Path]], folder: Path) -> list[Path]:
    """Draw a table's curves into a folder; nothing where no run of it is there."""
    metric, curves = learning(runs)
    if not curves:
        return []
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for row, points in curves.items():
        updates, values = zip(*points, strict=True)
        axes.plot(updates, values, label=row, marker=".")
    axes.set_yscale("log" if metric == "perplexity" else "linear")
    axes.set_ylabel(f"{'BLEU' if metric == 'bleu' else metric} of the validation set")
    axes.set_xlabel("updates")
    axes.legend(fontsize=8)
    return save_figure(figure, folder / name)
