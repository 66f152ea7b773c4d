"""Bundles of several directions: one model that a tag at the source's start tells what to translate into.

Such a bundle is loaded as one of its first target language; :func:`views` has it once for each. A view is a bundle like
any other, whose source vocabulary sets the tag, so that nothing that encodes text has to know. Where both sides have
tags there is a view for each pair, and its search begins with the tag of its target language.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from models.bundle.manifest import Manifest
from models.errors import ConfigError, VocabularyError
from models.vocabulary import TaggedVocabulary, Vocabulary, language_piece, untagged

if TYPE_CHECKING:
    from models.bundle.bundle import Bundle
    from models.search import SearchOptions


def views(bundle: Bundle) -> tuple[Bundle, ...]:
    """The bundle once for each target language, in the order of its directions; a bundle of one target as it is."""
    if bundle.manifest.tags == "both" and bundle.manifest.pairs:
        return tuple(_of_pair(bundle, pair) for pair in bundle.manifest.pairs)
    targets = dict.fromkeys(target for _, target in bundle.manifest.pairs)
    return tuple(_into(bundle, target) for target in targets) or (bundle,)


def direction(bundle: Bundle, source: str, target: str) -> Bundle:
    """The bundle as one that translates from ``source`` into ``target`` alone.

    Raises:
        ConfigError: it does not translate that.
    """
    manifest = bundle.manifest
    known_pairs = [(one, view.manifest.target_language) for view in views(bundle) for one in _sources(view)]
    if (source, target) not in known_pairs:
        known = ", ".join("-".join(pair) for pair in known_pairs)
        raise ConfigError(f"{manifest.name} translates {known}, not {source}-{target}")
    (view,) = (one for one in views(bundle) if one.manifest.target_language == target and source in _sources(one))
    pairs = ((source, target),) if manifest.pairs else ()
    return replace(view, manifest=replace(view.manifest, source_languages=(source,), pairs=pairs))


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


def _sources(bundle: Bundle) -> tuple[str, ...]:
    """The languages that it translates by themselves, not together with others."""
    return bundle.manifest.source_languages if len(bundle.sources) == 1 else ()


def _of_pair(bundle: Bundle, pair: tuple[str, str]) -> Bundle:
    decoding = replace(bundle.manifest.decoding, prefix=(bundle.target_vocabulary.language_tag(pair[1]),))
    return _view(bundle, (pair,), decoding)


def _into(bundle: Bundle, target: str) -> Bundle:
    pairs = tuple(pair for pair in bundle.manifest.pairs if pair[1] == target)
    return _view(bundle, pairs, bundle.manifest.decoding)


def _view(bundle: Bundle, pairs: tuple[tuple[str, str], ...], decoding: SearchOptions) -> Bundle:
    target = pairs[0][1]
    manifest = replace(
        bundle.manifest,
        source_languages=tuple(source for source, _ in pairs),
        target_language=target,
        pairs=pairs,
        decoding=decoding,
        confidence=bundle.manifest.confidence_in(target),
        further_confidence={},
    )
    vocabularies = side_vocabularies(manifest, bundle.source_vocabularies)
    return replace(bundle, manifest=manifest, source_vocabularies=vocabularies)
