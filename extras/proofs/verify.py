"""`tandem verify`: the service's runtimes beside PyTorch."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.proofs.proof import Proof, proof_table
from tandem.extras.proofs.proof import verify as prove
from tandem.extras.shared.runtime import RuntimeOptions, directed
from tandem.extras.shared.sentences import proof_sentences
from tandem.models.bundle import Bundle, extend_bundle
from tandem.models.command import AsJson, BundleFolder, Without, WrittenLanguage, command_line, report
from tandem.models.errors import ConfigError
from tandem.models.translation.translator import Column
from tandem.service.runtimes import open_graphs
from tandem.training.data.features import read_columns
from tandem.training.export.bundle import TORCHSCRIPT, add_precision


def verify(
    path: BundleFolder,
    gpu: Annotated[RuntimeOptions, Without({"runtime", "precision", "threads", "device"})],
    texts: Annotated[
        list[Path] | None, typer.Option("--text", help="Source sentences to prove on, one a line. [built-in ones]")
    ] = None,
    references: Annotated[Path | None, typer.Option(help="Their references, for the loss by quantisation.")] = None,
    device: Annotated[
        str, typer.Option("--device", help="Also prove the search there: cpu, cuda, cuda:N or auto. [nowhere]")
    ] = "",
    target: WrittenLanguage = "",
    record: Annotated[bool, typer.Option(help="Store the proof in the bundle's manifest.")] = False,
    as_json: AsJson = False,
) -> None:
    """Prove a bundle: files intact, and every runtime gives PyTorch's beam search results.

    The exit status is 1 where it fails.

    Example: tandem verify bundles/de-fr-en --text valid.de --references valid.en
    """
    whole = Bundle.load(path, weights=True)
    searched = replace(gpu, runtime="torch", precision="float32", device=device or "cpu").placed()
    bundle = directed(whole, target=target)
    if record and bundle.manifest.target_language != whole.manifest.target_language:
        raise ConfigError(f"--record keeps the proof into {whole.manifest.target_language!r}: leave it or --target out")
    lines, gold = _proving_text(bundle, texts or [], references)
    with tempfile.TemporaryDirectory(prefix="tandem-verify-") as folder:
        copy = Path(folder) / bundle.manifest.name
        shutil.copytree(path, copy, ignore=shutil.ignore_patterns("float32", TORCHSCRIPT))
        for precision in ("float32", TORCHSCRIPT):
            add_precision(copy, precision, report=report)
        own = directed(Bundle.load(copy), target=target)
        exact = {
            "onnx float32": partial(open_graphs, own, "onnx", "float32"),
            "torchscript float32": partial(open_graphs, own, "torchscript", "float32"),
        }
        if device:
            exact[str(searched)] = partial(searched.open_graphs, own)
        quantised = {
            f"onnx {precision}": partial(open_graphs, own, "onnx", precision)
            for precision in bundle.precisions
            if precision != "float32"
        }
        if searched.device != "cpu":
            narrow = replace(searched, precision="float16")
            quantised[str(narrow)] = partial(narrow.open_graphs, own)
        proof = prove(own, exact, quantised, lines, gold, report=report)
    if record:
        _record(whole, proof)
    print(json.dumps(proof.mapping(), indent=1, ensure_ascii=False) if as_json else proof_table(proof))
    if not proof.passed:
        raise typer.Exit(1)


def _proving_text(bundle: Bundle, texts: list[Path], references: Path | None) -> tuple[list[Column], list[str]]:
    """Source lines or feature matrices, one list per source, and their references where given."""
    languages = bundle.manifest.source_languages
    if not texts:
        if references is not None:
            raise ConfigError("--references needs the --text that it translates")
        if any(bundle.feature_widths):
            raise ConfigError(f"{bundle.path} reads feature matrices: give --text for each source, .npy for those")
        read = languages if len(bundle.sources) > 1 else languages[:1]  # several languages may share one source
        return [proof_sentences(language) for language in read], []
    if len(texts) != len(bundle.sources):
        raise ConfigError(f"{bundle.path} has {len(bundle.sources)} sources, but --text is given {len(texts)} times")
    columns = read_columns([*texts, *([references] if references else [])], bundle.feature_widths)
    return (columns[:-1], list(columns[-1])) if references else (columns, [])


def _record(bundle: Bundle, proof: Proof) -> None:
    """Store the proof and this very command in the manifest."""
    mapping = {"command": command_line(), **proof.mapping()}
    extend_bundle(bundle.path, {}, replace(bundle.manifest, proof=mapping))
