"""Commands that give a bundle a further file: which bundle they change, and the text that it is learnt from."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError, ConfigError, CorpusError
from tandem.training.data.corpus import read_parallel

TrainingSources: TypeAlias = Annotated[
    list[Path],
    typer.Option("--source", help="Training text, one segment a line (.xz, .gz, plain); one for each text source."),
]
TrainingTargets: TypeAlias = Annotated[
    list[Path], typer.Option("--target", help="Its other side. Further corpora: --source and --target again.")
]
TextDirections: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--direction",
        help="For a bundle of several directions: languages of a --source and its --target, as de-en; once for each.",
    ),
]
InPlace: TypeAlias = Annotated[bool, typer.Option("--in-place", help="Change the bundle itself.")]


def check_changed(out: Path | None, in_place: bool) -> None:
    """Raises ConfigError where neither or both are asked for, and BundleError where there is something already."""
    if (out is None) != in_place:
        raise ConfigError("say either --out, where a copy of the bundle goes, or --in-place")
    if out is not None and out.exists():
        raise BundleError(out, ["there is already something at this path; remove it or take another one"])


def changed_bundle(path: Path, out: Path | None) -> Path:
    """The bundle to change: a copy of it at ``out``, or itself."""
    if out is None:
        return path
    shutil.copytree(path, out)
    return out


def read_training_text(bundle: Bundle, sources: Sequence[Path], targets: Sequence[Path]) -> list[list[str]]:
    """The lines of each text source of a bundle and of its target, one corpus after another.

    Raises:
        CorpusError: as many files of each are not given, or they are not parallel.
    """
    texts = len(bundle.source_vocabularies)
    if len(sources) != texts * len(targets):
        wanted = f"{texts} --source for each --target (text sources only)"
        raise CorpusError(f"{bundle.path} needs {wanted}, but {len(sources)} and {len(targets)} are given")
    columns: list[list[str]] = [[] for _ in range(texts + 1)]
    for number, target in enumerate(targets):
        files = [*sources[number * texts : (number + 1) * texts], target]
        for column, lines in zip(columns, read_parallel(files), strict=True):
            column += lines
    return columns


def text_by_direction(
    bundle: Bundle, sources: Sequence[Path], targets: Sequence[Path], directions: Sequence[str]
) -> dict[str, list[list[str]]]:
    """The lines of source and target for each direction of a bundle, such as "de-en".

    Raises:
        ConfigError: not one direction for each file, one that the bundle has not, or one without text.
        CorpusError: as of :func:`read_training_text`.
    """
    known = ["-".join(pair) for pair in bundle.manifest.pairs]
    if len(directions) != len(targets) or {*directions} != {*known}:
        raise ConfigError(
            f"{bundle.path} translates {', '.join(known)}: say --direction once for each --target, with text of all of"
            f" them, but for {len(targets)} --target there are {', '.join(directions) or 'none'}"
        )
    text: dict[str, list[list[str]]] = {}
    for direction in known:
        own = [number for number, one in enumerate(directions) if one == direction]
        text[direction] = read_training_text(bundle, [sources[n] for n in own], [targets[n] for n in own])
    return text
