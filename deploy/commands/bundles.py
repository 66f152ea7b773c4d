"""`tandem export` and `tandem verify`."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from models.bundle import MANIFEST, Bundle, extend_bundle
from models.errors import CheckpointError, ConfigError
from models.graphs import AnyModel
from models.registry import build_model
from models.translator import Column
from service.runtimes import open_graphs
from training.ancestry import read_ancestry
from training.checkpoint import average as average_checkpoints
from training.checkpoint import checkpoints, load_into, read_progress
from training.data.features import read_columns
from training.data.summary import PreparedSummary
from training.export.bundle import TORCHSCRIPT, Shipping, add_precision, export_bundle, renew_graphs
from training.export.proof import Proof, proof_table, verify
from training.export.sentences import proof_sentences
from training.recipe import Recipe, recipe_from_mapping
from training.trainer import Run

console = Console(stderr=True)


def export_command(
    source: Path, out: Path | None, checkpoint: Path | None, average: int | None, add: str | None, force: bool
) -> None:
    """Make a bundle of a run, or add graphs to a bundle."""
    if (source / MANIFEST).exists():
        if add is None:
            raise ConfigError(f"{source} is a bundle: say with --add which graphs to build, float32 or torchscript")
        print(add_precision(source, add, report=_report))
        return
    if add is not None:
        raise ConfigError(f"{source} is no bundle: --add builds further graphs of one")
    run = Run(source)
    found = checkpoints(run.checkpoints)
    chosen = [checkpoint] if checkpoint is not None else found
    if not chosen:
        raise CheckpointError(f"{source} holds no checkpoint: train first, or name a run")
    progress, mapping = read_progress(chosen[-1])
    recipe = recipe_from_mapping(mapping, str(chosen[-1]))
    count = 1 if checkpoint is not None else average or recipe.training.average
    _report(f"weights of {', '.join(path.name for path in chosen[-count:])}")
    model = _model(recipe, source / "data")
    load_into(model, average_checkpoints(chosen[-count:]), str(chosen[-1]))
    shipping = Shipping(progress=progress, ancestry=read_ancestry(run.folder), overwrite=force)
    bundle = export_bundle(model, recipe, source / "data", out or Path("bundles") / recipe.name, shipping, _report)
    size = sum((bundle.path / name).stat().st_size for name in bundle.manifest.files)
    print(f"{bundle.path}: {size / 1e6:.1f} MB")


def renew_command(path: Path, texts: list[Path]) -> None:
    """Make a bundle's graphs again, as this version writes them."""
    bundle = Bundle.load(path)
    if len(texts) != len(bundle.sources):
        wanted = f"one --renew TEXT for each of its {len(bundle.sources)} sources"
        raise ConfigError(f"{path} needs {wanted}, but {len(texts)} are given")
    print(renew_graphs(path, read_columns(texts, bundle.feature_widths), _report).path)


def verify_command(path: Path, texts: list[Path], references: Path | None, record: bool, as_json: bool) -> None:
    """Prove a bundle, print the proof, and end with status 1 where it fails."""
    bundle = Bundle.load(path, weights=True)
    lines, gold = _proving_text(bundle, texts, references)
    with tempfile.TemporaryDirectory(prefix="tandem-verify-") as folder:
        copy = Path(folder) / bundle.manifest.name
        shutil.copytree(path, copy, ignore=shutil.ignore_patterns("float32", TORCHSCRIPT))
        for precision in ("float32", TORCHSCRIPT):
            add_precision(copy, precision, report=_report)
        own = Bundle.load(copy)
        exact = {
            "onnx float32": partial(open_graphs, own, "onnx", "float32"),
            "torchscript float32": partial(open_graphs, own, "torchscript", "float32"),
        }
        quantised = {f"onnx {one}": partial(open_graphs, own, "onnx", one) for one in _quantised(bundle)}
        proof = verify(own, exact, quantised, lines, gold, report=_report)
    if record:
        _record(bundle, proof)
    print(json.dumps(proof.mapping(), indent=1, ensure_ascii=False) if as_json else proof_table(proof))
    if not proof.passed:
        sys.exit(1)


def _quantised(bundle: Bundle) -> list[str]:
    return [precision for precision in bundle.precisions if precision != "float32"]


def _proving_text(bundle: Bundle, texts: list[Path], references: Path | None) -> tuple[list[Column], list[str]]:
    """Source lines or feature matrices, one list per source, and their references where given."""
    languages = bundle.manifest.source_languages
    if not texts:
        if references is not None:
            raise ConfigError("--references needs the --text that it translates")
        if any(bundle.feature_widths):
            raise ConfigError(f"{bundle.path} reads feature matrices: give --text for each source, .npy for those")
        return [proof_sentences(language) for language in languages], []
    if len(texts) != len(languages):
        raise ConfigError(f"{bundle.path} has {len(languages)} sources, but --text is given {len(texts)} times")
    columns = read_columns([*texts, *([references] if references else [])], bundle.feature_widths)
    return (columns[:-1], list(columns[-1])) if references else (columns, [])


def _record(bundle: Bundle, proof: Proof) -> None:
    """Store the proof and this very command in the manifest."""
    mapping = {"command": shlex.join(["tandem", *sys.argv[1:]]), **proof.mapping()}
    extend_bundle(bundle.path, {}, replace(bundle.manifest, proof=mapping))


def _model(recipe: Recipe, prepared: Path) -> AnyModel:
    config = recipe.prepared_config(PreparedSummary.load(prepared))
    torch.manual_seed(0)
    return build_model(recipe.architecture, config)


def _report(line: str) -> None:
    console.print(line, highlight=False, markup=False)
