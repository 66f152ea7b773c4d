"""`tandem export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from models.bundle import MANIFEST, Bundle
from models.command import ReplaceBundle, report
from models.errors import CheckpointError, ConfigError
from models.registry import build_model
from training.ancestry import read_ancestry
from training.checkpoint import average as average_checkpoints
from training.checkpoint import checkpoints, load_into, read_progress
from training.data.features import read_columns
from training.data.summary import PreparedSummary
from training.export.bundle import Shipping, add_precision, export_bundle, renew_graphs
from training.recipe import recipe_from_mapping
from training.trainer import Run


def export(
    source: Annotated[Path, typer.Argument(metavar="RUN|BUNDLE", help="A run to make a bundle of, or a bundle.")],
    out: Annotated[Path | None, typer.Option(help="Bundle folder to write, for a run. [bundles/NAME]")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="One checkpoint instead of the run's newest.")] = None,
    average: Annotated[int | None, typer.Option(min=1, help="Average this many newest checkpoints.")] = None,
    add: Annotated[
        str | None, typer.Option(help="For a bundle: build float32 ONNX graphs, or torchscript, from its weights.")
    ] = None,
    renew: Annotated[
        list[Path] | None,
        typer.Option(metavar="TEXT", help="For a bundle: make its graphs again, calibrated on lines like its sources."),
    ] = None,
    force: ReplaceBundle = False,
) -> None:
    """Make a bundle of a run (weights, vocabularies, int8 ONNX graphs), add graphs to a bundle, or renew those it has.

    Examples: tandem export runs/de-en --out bundles/de-en    |    tandem export bundles/de-en --add float32    |
    tandem export bundles/de-en --renew valid.de
    """
    is_bundle = (source / MANIFEST).exists()
    if renew:
        _renew(source, renew)
    elif is_bundle and add is not None:
        print(add_precision(source, add, report=report))
    elif is_bundle:
        raise ConfigError(f"{source} is a bundle: say with --add which graphs to build, float32 or torchscript")
    elif add is not None:
        raise ConfigError(f"{source} is no bundle: --add builds further graphs of one")
    else:
        _export_run(source, out, checkpoint, average, force)


def _export_run(folder: Path, out: Path | None, checkpoint: Path | None, average: int | None, force: bool) -> None:
    run = Run(folder)
    chosen = [checkpoint] if checkpoint is not None else checkpoints(run.checkpoints)
    if not chosen:
        raise CheckpointError(f"{folder} holds no checkpoint: train first, or name a run")
    progress, mapping = read_progress(chosen[-1])
    recipe = recipe_from_mapping(mapping, str(chosen[-1]))
    count = 1 if checkpoint is not None else average or recipe.training.average
    report(f"weights of {', '.join(path.name for path in chosen[-count:])}")
    data = folder / "data"
    config = recipe.prepared_config(PreparedSummary.load(data))
    torch.manual_seed(0)
    model = build_model(recipe.architecture, config)
    load_into(model, average_checkpoints(chosen[-count:]), str(chosen[-1]))
    shipping = Shipping(progress=progress, ancestry=read_ancestry(run.folder), overwrite=force)
    bundle = export_bundle(model, recipe, data, out or Path("bundles") / recipe.name, shipping, report)
    print(f"{bundle.path}: {bundle.size / 1e6:.1f} MB")


def _renew(path: Path, texts: list[Path]) -> None:
    """Make a bundle's graphs again, as this version writes them."""
    bundle = Bundle.load(path)
    if len(texts) != len(bundle.sources):
        wanted = f"one --renew TEXT for each of its {len(bundle.sources)} sources"
        raise ConfigError(f"{path} needs {wanted}, but {len(texts)} are given")
    print(renew_graphs(path, read_columns(texts, bundle.feature_widths), report).path)
