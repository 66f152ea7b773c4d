"""`tandem lexicon`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.rewriting.building import build_lexicon
from tandem.extras.rewriting.lexicon import FILE, STAGE, Lexicon
from tandem.extras.shared.extending import (
    InPlace,
    TrainingSources,
    TrainingTargets,
    changed_bundle,
    check_changed,
    read_training_text,
)
from tandem.models.bundle import Bundle, extend_bundle
from tandem.models.command import BundleFolder, report
from tandem.models.errors import ConfigError


def lexicon(
    path: BundleFolder,
    sources: TrainingSources,
    targets: TrainingTargets,
    out: Annotated[Path | None, typer.Option(help="Folder of a copy of the bundle that gets the lexicon.")] = None,
    in_place: InPlace = False,
) -> None:
    """Give a bundle a lexicon: translations of words and short phrases that stand alone, learnt from its training text.

    Models that learn from sentences translate single words badly, and idioms word by word; a server looks them up
    instead where a bundle has a lexicon. The text is in the bundle's first languages; where it translates both ways
    between them, so does the lexicon. One that the bundle has is replaced.

    Example: tandem lexicon bundles/de-fr-en --source train.de.xz --target train.en.xz --in-place
    """
    check_changed(out, in_place)
    bundle = Bundle.load(path)
    if bundle.manifest.task != "translate" or len(bundle.source_vocabularies) != 1 or any(bundle.feature_widths):
        raise ConfigError(f"{path} must be a translator of one text, for which words can be looked up")
    column, target_column = read_training_text(bundle, sources, targets)
    source, target = bundle.manifest.source_languages[0], bundle.manifest.target_language
    entries, turned = build_lexicon(column, target_column)
    directions = {(source, target): entries}
    if (target, source) in bundle.manifest.pairs:
        directions[target, source] = turned
    added = add_lexicon(changed_bundle(path, out), Lexicon(directions))
    for (source, target), words in directions.items():
        report(f"{len(target_column):,} pairs of lines; {source} to {target}: {len(words):,} entries")
    print(added.path)


def add_lexicon(path: Path, lexicon: Lexicon) -> Bundle:
    """Ship a lexicon with a bundle, in the place of the one that it may have, and ask for the stage that uses it.

    Raises:
        BundleError: the bundle is not sound.
    """
    manifest = Bundle.load(path).manifest
    stages = tuple(dict.fromkeys((*manifest.stages, STAGE)))
    return extend_bundle(path, {FILE: lexicon.to_bytes()}, replace(manifest, lexicon=FILE, stages=stages))
