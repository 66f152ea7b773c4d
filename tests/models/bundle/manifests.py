"""Manifests of bundles that hold next to nothing."""

from __future__ import annotations

from typing import Any

from tandem.models.bundle import Limits, Manifest, Training, Vocabularies, VocabularyFile
from tandem.models.search import SearchOptions


def small_manifest(sources: tuple[VocabularyFile, ...], target: VocabularyFile, **changes: Any) -> Manifest:
    """A manifest with those vocabularies, of a model that was not trained."""
    fields: dict[str, Any] = {
        "name": "small",
        "task": "translate",
        "source_languages": ("de",),
        "target_language": "en",
        "architecture": "dpn",
        "config": {},
        "decoding": SearchOptions(),
        "limits": Limits(50, 50),
        "vocabularies": Vocabularies(sources, target),
        "training": Training((), {}, 0, 0),
        "licence": "CC0-1.0",
    }
    return Manifest(**(fields | changes))
