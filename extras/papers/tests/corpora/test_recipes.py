"""Shipped recipes train on what `tandem corpus` prepares, on the terms that it states."""

from __future__ import annotations

from pathlib import Path

from tandem import training
from tandem.extras.papers.corpora.specs import CORPORA, CorpusSpec
from tandem.training.data.config import CorpusConfig
from tandem.training.recipe import load_recipe

RECIPES = Path(training.__file__).parent / "recipes"


def prepared_corpus(corpus: CorpusConfig) -> CorpusSpec | None:
    """The corpus of `tandem corpus` that it is, if it is one."""
    folder = Path(corpus.target).parts[0]
    return next((known for known in CORPORA if known.name == folder), None)


def test_every_file_is_one_that_the_command_writes() -> None:
    corpora = [corpus for path in sorted(RECIPES.rglob("*.toml")) for corpus in load_recipe(path).data.corpora]
    pairs = [(corpus, known) for corpus in corpora if (known := prepared_corpus(corpus))]
    assert pairs
    for corpus, known in pairs:
        splits = [name for name, _ in known.outputs]
        written = {f"{known.name}/{split}.{field}{known.suffix}" for split in splits for field in known.fields}
        if known.features:
            written |= {f"{known.name}/{split}.{known.features.name}.npy" for split, _ in known.features.splits}
        assert {name for split in corpus.splits for name in corpus.paths(split)} <= written
        assert (corpus.licence, corpus.attribution) == (known.licence, known.attribution)
