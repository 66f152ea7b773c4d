"""`tandem shortlist`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from models.bundle import Bundle
from models.errors import BundleError, ConfigError, CorpusError
from models.shortlist import Shortlist
from training.data.corpus import read_parallel
from training.export.bundle import add_shortlist
from training.shortlist import build_shortlist, coverage, encode

_SAMPLE = 1000  # sentences that the lists are counted on


def shortlist_command(
    path: Path,
    sources: Sequence[Path],
    targets: Sequence[Path],
    sizes: tuple[int, int],
    out: Path | None,
    *,
    in_place: bool,
) -> None:
    """Build a bundle's shortlist from parallel text, and ship it with the bundle or with a copy of it."""
    if (out is None) != in_place:
        raise ConfigError("say either --out, where a copy of the bundle goes, or --in-place")
    if out is not None and out.exists():
        raise BundleError(out, ["there is already something at this path; remove it or take another one"])
    bundle = Bundle.load(path)
    columns = _columns(bundle, sources, targets)
    per_word, common = sizes
    vocabularies = bundle.source_vocabularies, bundle.target_vocabulary
    built = build_shortlist(vocabularies, columns, per_word=per_word, common=common)
    if out is not None:
        shutil.copytree(path, out)
    added = add_shortlist(out or path, built)
    listed = sum(len(table.targets) for table in built.tables)
    Console(stderr=True).print(
        f"{len(columns[-1]):,} pairs of lines; {listed:,} targets of source pieces, {len(built.always):,} in every "
        f"list; {_mean(bundle, built, columns):.0f} of {built.target_types:,} in the mean",
        highlight=False,
        soft_wrap=True,
    )
    print(added.path)


def _columns(bundle: Bundle, sources: Sequence[Path], targets: Sequence[Path]) -> list[list[str]]:
    """The lines of each text source and of the target, one corpus after another."""
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


def _mean(bundle: Bundle, shortlist: Shortlist, columns: Sequence[Sequence[str]]) -> float:
    """Tokens of a list, the mean over some lines."""
    step = max(1, len(columns[-1]) // _SAMPLE)
    *encoded, target = (
        encode(vocabulary, column[::step])
        for vocabulary, column in zip((*bundle.source_vocabularies, bundle.target_vocabulary), columns, strict=True)
    )
    return coverage(shortlist, list(zip(*encoded, strict=True)), target).listed
