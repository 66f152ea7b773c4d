"""Bundles with a lexicon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tandem.extras.rewriting.lexicon import STAGE, Lexicon
from tandem.models.bundle import Bundle


def with_lexicon(bundle: Bundle, lexicon: Lexicon) -> Bundle:
    """A bundle as it is loaded where it ships that lexicon."""
    return replace(bundle, stage_data={STAGE: lexicon})


def shipped_lexicon(path: Path) -> Lexicon:
    """The lexicon that a bundle's folder has for the stage."""
    read = Bundle.load(path, readers={STAGE: Lexicon.from_bytes}).stage_data[STAGE]
    assert isinstance(read, Lexicon)
    return read
