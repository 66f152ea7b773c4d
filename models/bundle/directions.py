"""Bundles of several directions: one model that a tag at the source's start tells what to translate into.

Such a bundle is loaded as one of its first target language; :func:`views` has its manifest once for each. A view is a
bundle like any other, whose source vocabulary sets the tag, so that nothing that encodes text has to know. Where both
sides have tags there is a view for each pair, and its search begins with the tag of its target language.
"""

from __future__ import annotations

from dataclasses import replace

from tandem.models.bundle.manifest import Manifest
from tandem.models.errors import ConfigError, VocabularyError
from tandem.models.search.options import SearchOptions
from tandem.models.vocabulary import TaggedVocabulary, Vocabulary, language_piece, untagged

Pair = tuple[str, str]


def views(manifest: Manifest, vocabulary: Vocabulary) -> tuple[Manifest, ...]:
    """The manifest once for each target language, in the order of its directions; that of one target as it is.

    Args:
        manifest: of a bundle.
        vocabulary: the one that its hypotheses are written in.
    """
    if manifest.tags == "both" and manifest.pairs:
        return tuple(_of_pair(manifest, pair, vocabulary) for pair in manifest.pairs)
    targets = dict.fromkeys(target for _, target in manifest.pairs)
    return tuple(_into(manifest, target) for target in targets) or (manifest,)


def direction(manifest: Manifest, vocabulary: Vocabulary, source: str, target: str) -> Manifest:
    """The manifest of the bundle as one that translates from ``source`` into ``target`` alone; see :func:`views`.

    Raises:
        ConfigError: it does not translate that.
    """
    every = views(manifest, vocabulary)
    known_pairs = [(one, view.target_language) for view in every for one in _sources(view)]
    if (source, target) not in known_pairs:
        known = ", ".join("-".join(pair) for pair in known_pairs)
        raise ConfigError(f"{manifest.name} translates {known}, not {source}-{target}")
    (view,) = (one for one in every if one.target_language == target and source in _sources(one))
    return replace(view, source_languages=(source,), pairs=((source, target),) if manifest.pairs else ())


def side_vocabularies(manifest: Manifest, sources: tuple[Vocabulary, ...]) -> tuple[Vocabulary, ...]:
    """The source vocabularies as the manifest's target language needs them, or its first source language.

    Raises:
        VocabularyError: directions, and the vocabulary has not the tags that they need.
    """
    if not manifest.pairs:
        return sources
    read = manifest.tags == "both"
    for language in dict.fromkeys(source if read else target for source, target in manifest.pairs):
        for vocabulary in sources:
            untagged(vocabulary).language_tag(language)
    tag = manifest.source_languages[0] if read else manifest.target_language
    return tuple(TaggedVocabulary(untagged(one), tag) for one in sources)


def tag_faults(manifest: Manifest, sources: tuple[Vocabulary, ...], target: Vocabulary | None = None) -> list[str]:
    """What keeps a bundle of several directions from being told which to take; ``target``: where it could be read."""
    try:
        side_vocabularies(manifest, sources)
        if manifest.tags == "both" and target is not None:
            for _, language in manifest.pairs:
                target.language_tag(language)
    except VocabularyError as error:
        return [f"pairs need the tag {language_piece(manifest.target_language)} and its like: {error}"]
    return []


def _sources(manifest: Manifest) -> tuple[str, ...]:
    """The languages that the bundle translates by themselves, not together with others."""
    read = manifest.vocabularies.features or manifest.vocabularies.sources
    return manifest.source_languages if len(read) == 1 else ()


def _of_pair(manifest: Manifest, pair: Pair, vocabulary: Vocabulary) -> Manifest:
    return _view(manifest, (pair,), replace(manifest.decoding, prefix=(vocabulary.language_tag(pair[1]),)))


def _into(manifest: Manifest, target: str) -> Manifest:
    return _view(manifest, tuple(pair for pair in manifest.pairs if pair[1] == target), manifest.decoding)


def _view(manifest: Manifest, pairs: tuple[Pair, ...], decoding: SearchOptions) -> Manifest:
    target = pairs[0][1]
    return replace(
        manifest,
        source_languages=tuple(source for source, _ in pairs),
        target_language=target,
        pairs=pairs,
        decoding=decoding,
        confidence=manifest.confidence_in(target),
        further_confidence={},
    )
