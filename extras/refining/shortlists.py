"""`tandem shortlist`: a bundle's lexical shortlist, of text that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tandem.extras.shared.alignment import sample_pairs
from tandem.extras.shared.extending import (
    InPlace,
    TextDirections,
    TrainingSources,
    TrainingTargets,
    changed_bundle,
    check_changed,
    read_training_text,
    text_by_direction,
)
from tandem.extras.shared.shortlists import encode, shortlist_of
from tandem.models.bundle import Bundle
from tandem.models.command import BundleFolder, report
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.search.shortlist import Shortlist
from tandem.models.vocabulary import Vocabulary


def shortlist(
    path: BundleFolder,
    sources: TrainingSources,
    targets: TrainingTargets,
    # What is common costs a batch once, what each word lists adds up over its sentences.
    per_word: Annotated[int, typer.Option(min=1, help="Likely targets of each source piece.")] = 30,
    common: Annotated[int, typer.Option(min=0, help="Most frequent target pieces, in every list.")] = 300,
    out: Annotated[Path | None, typer.Option(help="Folder of a copy of the bundle that gets the shortlist.")] = None,
    in_place: InPlace = False,
    directions: TextDirections = None,
) -> None:
    """Give a bundle a lexical shortlist: for each source word the target words that its training text makes likely.

    Decoding with it leaves the other words out of the output layer, which is faster. `tandem evaluate --shortlist`
    measures what that costs.

    Example: tandem shortlist bundles/de-en --source train.de.xz --target train.en.xz --in-place
    """
    from tandem.training.export.bundle import add_shortlist

    check_changed(out, in_place)
    bundle = Bundle.load(path)
    if bundle.manifest.pairs and bundle.manifest.tags == "target":
        texts = text_by_direction(bundle, sources, targets, directions or [])
        built, lines = tagged_shortlist(bundle, texts, per_word, common), sum(len(text[-1]) for text in texts.values())
    elif directions:
        raise ConfigError(f"{path} has no tags of the languages that it translates into: leave out --direction")
    else:
        columns = read_training_text(bundle, sources, targets)
        vocabularies = bundle.source_vocabularies, bundle.target_vocabulary
        built = build_shortlist(vocabularies, columns, per_word=per_word, common=common)
        lines = len(columns[-1])
    added = add_shortlist(changed_bundle(path, out), built)
    listed = sum(len(table.targets) for table in built.tables)
    report(
        f"{lines:,} pairs of lines; {listed:,} targets of source pieces, and in every list"
        f" {len(built.always):,} of {built.target_types:,} pieces"
    )
    print(added.path)


def build_shortlist(
    vocabularies: tuple[Sequence[Vocabulary], Vocabulary],
    columns: Sequence[Sequence[str]],
    *,
    per_word: int,
    common: int,
) -> Shortlist:
    """The shortlist of a training text.

    Args:
        vocabularies: of the text sources, and of the target.
        columns: parallel lines, the text sources in order and the target last.
        per_word: targets of a source piece beside its copy.
        common: most frequent target pieces, which every list holds.

    Raises:
        ConfigError: ``per_word`` below 1 or ``common`` below 0.
        CorpusError: a text without a single pair of lines, or not a column for each text source and the target.
    """
    if per_word < 1 or common < 0:
        raise ConfigError(f"a shortlist needs per_word >= 1 and common >= 0, but they are {per_word} and {common}")
    sources, target = vocabularies
    if len(columns) != len(sources) + 1:
        raise CorpusError(f"a shortlist needs {len(sources)} source texts and the target, but {len(columns)} are given")
    encoded = [encode(vocabulary, lines) for vocabulary, lines in zip((*sources, target), columns, strict=True)]
    if not any(map(len, encoded[-1])):
        raise CorpusError("a shortlist is built from parallel text, but the target has none")
    pairs = []
    for lines in encoded[:-1]:
        cells = np.array([len(s) * len(t) for s, t in zip(lines, encoded[-1], strict=True)], np.int64)
        chosen = sample_pairs(cells, seed=1)
        pairs.append(([lines[index] for index in chosen], [encoded[-1][index] for index in chosen]))
    counts = np.bincount(np.concatenate(encoded[-1]), minlength=target.size)
    return shortlist_of(vocabularies, pairs, counts, per_word=per_word, common=common)


def tagged_shortlist(
    bundle: Bundle, texts: Mapping[str, Sequence[Sequence[str]]], per_word: int, common: int
) -> Shortlist:
    """That of a bundle whose sources begin with the tag of the language to translate into, with a part for each.

    Args:
        bundle: of several directions.
        texts: by direction, such as "de-en", of which there must be all: lines of source and target.
        per_word, common: as of :func:`build_shortlist`, for each direction.

    Raises:
        ConfigError, CorpusError: as of :func:`build_shortlist`.
    """
    target, parts = bundle.target_vocabulary, []
    for source, language in bundle.manifest.pairs:
        vocabularies = bundle.direction(source, language).source_vocabularies, target
        columns = texts[f"{source}-{language}"]
        built = build_shortlist(vocabularies, columns, per_word=per_word, common=common)
        parts.append((target.language_tag(language), built))
    return Shortlist.tagged(parts)
