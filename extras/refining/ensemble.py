"""Bundles that share their vocabularies put together: one bundle of one model, which averages their probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tandem.extras.shared.sentences import proof_sentences
from tandem.models.architectures.ensemble import ARCHITECTURE, Ensemble, EnsembleConfig, MemberConfig
from tandem.models.architectures.registry import load_config
from tandem.models.bundle import Bundle, Limits, Manifest, check_free, write_bundle
from tandem.models.command import ReplaceBundle, report
from tandem.models.config import to_mapping
from tandem.models.errors import BundleError, ConfigError, CorpusError
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.translation.translator import Column
from tandem.training.data.ancestry import together
from tandem.training.data.features import read_columns
from tandem.training.export.bundle import PRECISIONS, Report, built_graphs, calibration_sources, check_precisions


def ensemble(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE BUNDLE...", help="Bundles to put together.")],
    out: Annotated[Path, typer.Option(help="Bundle folder to write.")],
    name: Annotated[str, typer.Option(help="Name of the new bundle. [of its folder]")] = "",
    texts: Annotated[
        list[Path] | None,
        typer.Option("--text", help="Sentences to calibrate int8 graphs on, one a line, for each source. [built-in]"),
    ] = None,
    force: ReplaceBundle = False,
) -> None:
    """Make one bundle of several that share task, languages and vocabularies: the mean of their probabilities.

    Example: tandem ensemble bundles/seed-1 bundles/seed-2 bundles/seed-3 --out bundles/three
    """
    widths = Bundle.load(bundles[0]).feature_widths
    if texts and len(texts) != len(widths):
        raise ConfigError(f"{bundles[0]} has {len(widths)} sources, but --text is given {len(texts)} times")
    lines = read_columns(texts, widths) if texts else ()
    bundle = ensemble_bundle(bundles, out, Assembly(name, lines, overwrite=force), report)
    print(f"{bundle.path}: {len(bundles)} models, {bundle.size / 1e6:.1f} MB")


@dataclass(frozen=True, slots=True)
class Assembly:
    """What an ensemble's bundle is told beyond its members.

    Attributes:
        name: the bundle's; empty for the last part of its path.
        lines: text to calibrate 8-bit graphs on, one list of lines (or of feature matrices) per source; built-in
            sentences where there is none.
        precisions: of the ONNX graphs that ship.
        overwrite: replace a bundle at the same path.
    """

    name: str = ""
    lines: Sequence[Column] = ()
    precisions: tuple[str, ...] = ("int8",)
    overwrite: bool = False


def ensemble_bundle(
    paths: Sequence[Path], out: Path, assembly: Assembly = Assembly(), report: Report = lambda line: None
) -> Bundle:
    """Write the bundle of an ensemble.

    It has the first member's decoding options, the smallest limits, every member's corpora, all licences, and no scores
    yet.

    Args:
        paths: the members' bundles, at least two.
        out: the new bundle's folder.
        assembly: name, text and the like.
        report: told what is being done.

    Raises:
        BundleError: a bundle is not sound; they differ in what an ensemble must share, and every difference is named;
            or there is already something at ``out``.
        ConfigError: fewer than two bundles, one that is an ensemble itself, an unknown precision, or no built-in
            sentences in a source's language.
        CorpusError: text that is not parallel.
    """
    if len(paths) < 2:
        raise ConfigError(f"an ensemble needs at least two bundles, but {len(paths)} is given")
    check_precisions(assembly.precisions, PRECISIONS)
    _check_paths(paths, out, assembly.overwrite)
    bundles = [Bundle.load(path) for path in paths]
    faults = [fault for bundle in bundles[1:] for fault in _differences(bundles[0], bundle)]
    if faults:
        raise BundleError(out, faults)
    config = _config(bundles)
    manifest = _manifest(assembly.name or out.resolve().name, config, bundles)
    lines = _text(bundles[0], assembly) if "int8" in assembly.precisions else ()
    if any(bundle.manifest.decoding != manifest.decoding for bundle in bundles):
        report(f"decoding options differ: those of {bundles[0].manifest.name} are kept")
    model = Ensemble(config, [load_bundle_model(bundle) for bundle in bundles])
    model.prepare_for_inference()
    sources = calibration_sources([(bundles[0].sources, lines)] if lines else [], manifest.limits)
    files = built_graphs(model, assembly.precisions, sources, manifest.limits.max_target_tokens, report)
    # Any member's is as good: they share their vocabularies and languages.
    files |= {name: bundles[0].file(name) for name in manifest.further_files}
    report(f"writing {out}")
    weights = {key: tensor.detach().numpy() for key, tensor in model_tensors(model).items()}
    files_of = [*manifest.vocabularies.sources, manifest.vocabularies.target]
    read = [*bundles[0].source_vocabularies, bundles[0].target_vocabulary]
    vocabularies = {one.file: vocabulary for one, vocabulary in zip(files_of, read, strict=True)}
    return write_bundle(out, manifest, weights, vocabularies, files, overwrite=assembly.overwrite)


def _check_paths(paths: Sequence[Path], out: Path, overwrite: bool) -> None:
    """What can be said before a graph is exported. Raises ConfigError or BundleError."""
    places = [path.resolve() for path in paths]
    twice = [str(path) for path, place in zip(paths, places, strict=True) if places.count(place) > 1]
    if twice:
        raise ConfigError(f"the members of an ensemble must differ, but {twice[0]} is given twice")
    if out.resolve() in places:
        raise ConfigError(f"an ensemble needs a folder of its own, but {out} is one of its members")
    check_free(out, overwrite=overwrite)


def _differences(first: Bundle, other: Bundle) -> Iterator[str]:
    """What two bundles must share and do not, one sentence each."""
    one, two = first.manifest, other.manifest
    for name in ("task", "source_languages", "target_language", "target_form", "keep_unknown", "normalisation"):
        if getattr(one, name) != getattr(two, name):
            values = (getattr(two, name), getattr(one, name))
            yield f"{other.path} has the {name} {values[0]!r}, but {first.path} has {values[1]!r}"
    if first.feature_widths != other.feature_widths:
        yield f"{other.path} reads other feature vectors than {first.path}"
    mine, theirs = _vocabularies(first), _vocabularies(other)
    for side in dict.fromkeys((*mine, *theirs)):
        if mine.get(side) != theirs.get(side):
            yield f"{other.path} has another {side} vocabulary than {first.path}"
    if first.dictionary != other.dictionary:
        yield f"{other.path} has another dictionary than {first.path}"


def _vocabularies(bundle: Bundle) -> dict[str, bytes]:
    """The content of each side's vocabulary."""
    sources = {f"source{number}": v.to_bytes() for number, v in enumerate(bundle.source_vocabularies)}
    return {**sources, "target": bundle.target_vocabulary.to_bytes()}


def _config(bundles: Sequence[Bundle]) -> EnsembleConfig:
    first = bundles[0].manifest
    sizes = load_config(first.architecture, first.config, f"{first.name} manifest.json [config]")
    members = tuple(MemberConfig(bundle.manifest.architecture, dict(bundle.manifest.config)) for bundle in bundles)
    return EnsembleConfig(tuple(sizes.source_vocabularies), sizes.target_vocabulary, members)


def _manifest(name: str, config: EnsembleConfig, bundles: Sequence[Bundle]) -> Manifest:
    manifests = [bundle.manifest for bundle in bundles]
    limits = [manifest.limits for manifest in manifests]
    recipe: dict[str, Any] = {"members": [{"name": one.name, "recipe": one.training.recipe} for one in manifests]}
    return replace(
        manifests[0],
        name=name,
        architecture=ARCHITECTURE,
        config=to_mapping(config),
        limits=Limits(min(one.max_source_tokens for one in limits), min(one.max_target_tokens for one in limits)),
        training=replace(together([manifest.training for manifest in manifests]), recipe=recipe),
        licence=" AND ".join(dict.fromkeys(manifest.licence for manifest in manifests if manifest.licence)),
        scores=(),
        proof={},
        confidence=None,
        further_confidence={},
    )


def _text(bundle: Bundle, assembly: Assembly) -> Sequence[Column]:
    """The text to calibrate on, parallel."""
    if not assembly.lines and any(bundle.feature_widths):
        raise ConfigError(f"{bundle.path} reads feature matrices: give text for each source to calibrate on")
    lines = assembly.lines or [proof_sentences(language) for language in bundle.manifest.source_languages]
    if assembly.lines and not len(assembly.lines[0]):
        raise CorpusError("the text to calibrate on is empty: give some sentences, or leave it out")
    if len(lines) != len(bundle.sources) or len({len(column) for column in lines}) != 1:
        sizes = [len(column) for column in lines]
        raise CorpusError(
            f"{bundle.path} has {len(bundle.sources)} sources of equally many lines, but given are {sizes}"
        )
    return lines
