"""`tandem export`.

What builds graphs is imported where it is used: weights alone are written where onnx is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from tandem.models.bundle import MANIFEST, Bundle
from tandem.models.bundle.manifest import name_like
from tandem.models.command import ReplaceBundle, Without, report
from tandem.models.errors import CheckpointError, ConfigError
from tandem.models.steps.torch_graphs import AnyModel
from tandem.training.checkpoint import average as average_checkpoints
from tandem.training.checkpoint import checkpoints, load_into, read_progress, save_weights
from tandem.training.data.ancestry import chosen_start, mix_in_start, read_ancestry, start_bundle
from tandem.training.data.features import read_columns
from tandem.training.data.summary import PreparedSummary, differences_beside, listed_differences
from tandem.training.experiment import Experiment, ExperimentOptions
from tandem.training.loop.resuming import check_vocabularies
from tandem.training.loop.trainable import trainable_model
from tandem.training.loop.trainer import Run
from tandem.training.recipe import Recipe, recipe_from_mapping, recipe_mapping, set_recipe

_OF_BUNDLES = {
    "about",
    "data.keep_unknown",
    "decoding",
    "licence",
    "name",
    "published",
}  # keys that no weight depends on


def export(
    source: Annotated[Path, typer.Argument(metavar="RUN|BUNDLE", help="A run to make a bundle of, or a bundle.")],
    out: Annotated[Path | None, typer.Option(help="Bundle folder to write, for a run. [bundles/NAME]")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="One checkpoint instead of the run's newest.")] = None,
    average: Annotated[int | None, typer.Option(min=1, help="Average this many newest checkpoints.")] = None,
    add: Annotated[
        str | None, typer.Option(help="For a bundle: build float32 or float16 ONNX graphs, or torchscript.")
    ] = None,
    start: Annotated[
        Path | None, typer.Option("--from", help="The bundle that the run began from, to mix in. [the recipe's start]")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of that bundle's weights instead of the recipe's."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For a run: write only its weights, in 16 bits, which --checkpoint takes."),
    ] = None,
    renew: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="TEXT", help="For a bundle: make its graphs again, calibrated on text of each language read."
        ),
    ] = None,
    force: ReplaceBundle = False,
    options: Annotated[ExperimentOptions, Without({"seed"})] = ExperimentOptions(),
) -> None:
    """Make a bundle of a run (weights, vocabularies, int8 ONNX graphs), add graphs to a bundle, or renew those it has.

    Examples: tandem export runs/mine --out bundles/mine    |    tandem export bundles/de-fr-en --add float32    |
    tandem export bundles/de-fr-en --renew valid.de    |    tandem export runs/de-en --weights de-en.safetensors
    """
    is_bundle = (source / MANIFEST).exists()
    of_bundle = {"--out": out, "--from": start, "--share": share, "--set": options.set_fields, "--data": options.data}
    of_run = {"--checkpoint": checkpoint, "--average": average, "--weights": weights, **of_bundle}
    if renew or add is not None:
        _refuse("--renew is for all graphs" if renew else "--add is for a bundle", {**of_run, "--add": renew and add})
    if checkpoint is not None:
        _refuse("--checkpoint is one alone", {"--average": average})
    if weights is not None:
        _refuse("--weights writes no bundle", of_bundle)
    if renew:
        _renew(source, renew)
    elif is_bundle and add is not None:
        from tandem.training.export.bundle import add_precision

        print(add_precision(source, add, report=report))
    elif is_bundle:
        raise ConfigError(f"{source} is a bundle: say with --add what to build, float32, float16 or torchscript")
    elif add is not None:
        raise ConfigError(f"{source} is no bundle: --add builds further graphs of one")
    else:
        chosen = _chosen(source, checkpoint, average)
        if weights is not None:
            save_weights(weights, average_checkpoints(chosen), *read_progress(chosen[-1]))
            print(f"{weights}: {weights.stat().st_size / 1e6:.1f} MB")
        else:
            _export_run(source, out, chosen, start, share, force, options.experiment())


def _refuse(reason: str, others: Mapping[str, object]) -> None:
    """Raises ConfigError where options are given that another leaves without effect."""
    if given := [name for name, value in others.items() if value is not None]:
        raise ConfigError(f"{reason}: leave out {', '.join(given)}")


def _chosen(folder: Path, checkpoint: Path | None, average: int | None) -> list[Path]:
    """The checkpoints whose weights are wanted: those to be averaged, oldest first."""
    found = [checkpoint] if checkpoint is not None else checkpoints(Run(folder).checkpoints)
    if not found:
        raise CheckpointError(f"{folder} holds no checkpoint: train first, or name a run")
    _, mapping = read_progress(found[-1])
    recipe = recipe_from_mapping(mapping, str(found[-1]))
    count = 1 if checkpoint is not None else average or recipe.training.average
    report(f"weights of {', '.join(path.name for path in found[-count:])}")
    return found[-count:]


def _shipped_recipe(checkpoint: Path, asked: Experiment) -> Recipe:
    """The recipe of a checkpoint with what is set for its bundle, which is nothing that the weights depend on."""
    _, mapping = read_progress(checkpoint)
    trained = recipe_from_mapping(mapping, str(checkpoint))
    recipe = set_recipe(mapping, asked.settings, str(checkpoint))
    if changed := differences_beside(_OF_BUNDLES, recipe_mapping(trained), recipe_mapping(recipe)):
        raise ConfigError(
            f"--set of tandem export may change {', '.join(sorted(_OF_BUNDLES))}; the weights were trained with the"
            f" rest as it was: {listed_differences(changed)}"
        )
    return recipe


def _export_run(
    folder: Path,
    out: Path | None,
    chosen: list[Path],
    start: Path | None,
    share: float | None,
    force: bool,
    asked: Experiment,
) -> None:
    from tandem.training.export.bundle import Shipping, export_bundle

    recipe = _shipped_recipe(chosen[-1], asked)
    if share is not None:
        recipe = replace(recipe, training=replace(recipe.training, start_share=share))
    data = Experiment.load(folder).then(asked).data_of(folder)
    model = _model(chosen, recipe, data, start)
    shipping = Shipping(read_progress(chosen[-1])[0], read_ancestry(folder), overwrite=force)
    bundle = export_bundle(model, recipe, data, out or Path("bundles") / recipe.name, shipping, report)
    print(f"{bundle.path}: {bundle.size / 1e6:.1f} MB")


def bundle_without_graphs(folder: Path, out: Path, checkpoint: Path | None = None) -> Bundle:
    """A run's bundle as `tandem export` makes it, but without graphs: only PyTorch runs it, and it takes no time.

    Args:
        folder: of the run.
        out: the bundle's folder; it is called by the run's and the checkpoint's names.
        checkpoint: instead of those that the recipe has exported.

    Raises:
        TandemError: as `tandem export`.
    """
    from tandem.training.export.bundle import Shipping, export_bundle

    chosen = _chosen(folder, checkpoint, None)
    recipe = recipe_from_mapping(read_progress(chosen[-1])[1], str(chosen[-1]))
    model = _model(chosen, recipe, Run(folder).data, None)
    shipping = Shipping(read_progress(chosen[-1])[0], read_ancestry(folder), precisions=())
    named = replace(recipe, name=name_like(f"{folder.resolve().name}-{chosen[-1].stem}"))
    return export_bundle(model, named, Run(folder).data, out, shipping)


def _model(chosen: list[Path], recipe: Recipe, data: Path, start: Path | None) -> AnyModel:
    """The model of a run's checkpoints, averaged and mixed as the recipe says."""
    for path in chosen:
        check_vocabularies(path, data)
    config = recipe.prepared_config(PreparedSummary.load(data))
    torch.manual_seed(0)
    model = trainable_model(recipe, config)
    load_into(model, average_checkpoints(chosen), str(chosen[-1]))
    mixed = recipe.training.start_share
    _mix_in(model, data, chosen_start(recipe.start if mixed else "", start), mixed)
    return model


def _mix_in(model: AnyModel, data: Path, start: Path | None, share: float) -> None:
    """Mix a share of the bundle that a run began from into its weights, where that is wanted."""
    if start is None and share:
        raise ConfigError(f"{share:g} of the bundle that the run began from is to be mixed in: name it with --from")
    if start is not None and not share:
        raise ConfigError("--from names the bundle that is to be mixed in: say how much of it, such as --share 0.3")
    if start is not None:
        mix_in_start(model, start_bundle(start, data, model.config), share)


def _renew(path: Path, texts: list[Path]) -> None:
    """Make a bundle's graphs again, as this version writes them."""
    from tandem.training.export.bundle import languages_read, renew_graphs

    bundle = Bundle.load(path)
    languages = languages_read(bundle)
    if len(texts) != len(languages):
        wanted = f"{len(languages)} times --renew TEXT, in {', '.join(languages)}"
        raise ConfigError(f"{path} needs {wanted}, but {len(texts)} are given")
    together = [texts] if not bundle.manifest.pairs else [[text] for text in texts]  # parallel only where read as one
    lines = [column for files in together for column in read_columns(files, bundle.feature_widths)]
    print(renew_graphs(path, lines, report).path)
