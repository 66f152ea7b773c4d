"""The only bridge from training to service: one checked folder. Needs no torch, and never unpickles."""

from __future__ import annotations

from tandem.models.bundle.bundle import Bundle, StageReader, by_source
from tandem.models.bundle.card import render_card
from tandem.models.bundle.files import BUILT, CARD, GRAPHS, MANIFEST, SHORTLIST, WEIGHTS, sha256
from tandem.models.bundle.manifest import (
    FORMAT,
    SCRATCH,
    Corpus,
    ImportedFrom,
    Limits,
    Manifest,
    Score,
    Training,
    Vocabularies,
    VocabularyFile,
)
from tandem.models.bundle.write import add_built, check_free, extend_bundle, named_vocabularies, write_bundle

__all__ = [
    "BUILT",
    "CARD",
    "FORMAT",
    "GRAPHS",
    "MANIFEST",
    "SCRATCH",
    "SHORTLIST",
    "WEIGHTS",
    "Bundle",
    "Corpus",
    "ImportedFrom",
    "Limits",
    "Manifest",
    "Score",
    "StageReader",
    "Training",
    "Vocabularies",
    "VocabularyFile",
    "add_built",
    "by_source",
    "check_free",
    "extend_bundle",
    "named_vocabularies",
    "render_card",
    "sha256",
    "write_bundle",
]
