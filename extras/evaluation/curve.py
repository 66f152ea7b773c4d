"""How a run learnt: its validations as a table and a picture, from ``metrics.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
from matplotlib.figure import Figure
from rich.console import Console

from tandem.extras.evaluation.plots import save_figure
from tandem.models.errors import CheckpointError
from tandem.training.loop.reporting import read_metrics

Rows = list[dict[str, Any]]


def learning_curve(path: Path, metric: str) -> Rows:
    """A row for every validation: ``tokens`` (millions of target symbols), ``loss``, and the metric.

    Of several corpora there is a column for each kind: the mean over those whose names begin alike up to the first "-"
    (``tatoeba`` for ``tatoeba-de-en`` and ``tatoeba-fr-en``, whichever way they are used).

    Args:
        path: a run's ``metrics.jsonl``.
        metric: ``"chrf"``, ``"bleu"`` or another one that validations have.

    Raises:
        CheckpointError: the file is missing or has no validation with that metric.
    """
    try:
        lines = [line for line in read_metrics(path) if line.get("group") == "valid" and metric in line]
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}): train first") from error
    if not lines:
        raise CheckpointError(f"{path}: has no validation with {metric!r}: set validation_sentences, or wait for one")
    return [_row(line, metric) for line in lines]


def _row(line: Mapping[str, Any], metric: str) -> dict[str, Any]:
    kinds: dict[str, list[float]] = {}
    for name, value in line.items():
        if name.startswith(f"{metric}/"):
            kinds.setdefault(name.removeprefix(f"{metric}/").split("-")[0], []).append(value)
    place = {"update": line["update"], "tokens": line["target_tokens"] / 1e6, "loss": line["loss"]}
    return {**place, metric: line[metric], **{kind: mean(values) for kind, values in kinds.items()}}


def curve_table(rows: Rows) -> str:
    """The rows in Markdown."""
    names = list(rows[-1])
    shown = {"update": "{:,}", "tokens": "{:.1f}M", "loss": "{:.3f}"}
    body = ["| " + " | ".join(shown.get(name, "{:.1f}").format(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(names) + " |", "|" + "--:|" * len(names), *body])


def draw_curve(rows: Rows, metric: str, path: Path) -> Sequence[Path]:
    """Loss above, the metric and its kinds below, over target symbols; written as PNG and SVG."""
    figure = Figure(figsize=(7, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    tokens = [row["tokens"] for row in rows]
    upper.plot(tokens, [row["loss"] for row in rows], color="black")
    upper.set_ylabel("validation loss, nats a symbol")
    for name in list(rows[-1])[3:]:
        width = 2.0 if name == metric else 1.0
        lower.plot(tokens, [row[name] for row in rows], label=name, linewidth=width)
    lower.set_ylabel(metric)
    lower.set_xlabel("target symbols read, millions")
    lower.legend(fontsize=8)
    return save_figure(figure, path)


def curve(
    run: Annotated[Path, typer.Argument(help="Folder of a run, such as runs/mine.")],
    metric: Annotated[str, typer.Option(help="A score that validations have: chrf, bleu, rouge.")] = "chrf",
    out: Annotated[
        Path | None, typer.Option(help="Draw it too: where, without the ending (.png and .svg are written).")
    ] = None,
) -> None:
    """Print how a run learnt, as Markdown: loss and scores of each kind of text, by target symbols read.

    Example: tandem curve runs/mine --out curve
    """
    rows = learning_curve(run / "metrics.jsonl", metric)
    console = Console()
    console.print(curve_table(rows), highlight=False, soft_wrap=True)
    for written in draw_curve(rows, metric, out) if out is not None else ():
        console.print(f"drawn: {written}", highlight=False, soft_wrap=True)
