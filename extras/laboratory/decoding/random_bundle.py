"""A Transformer with random weights as a bundle: equal weights for every system at any size.

The speed of forced lengths does not depend on what the weights are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tandem.extras.laboratory.transformers import random_transformer
from tandem.extras.laboratory.workload import TransformerSize
from tandem.models.bundle import SCRATCH, Bundle, Limits, Manifest, named_vocabularies, write_bundle
from tandem.models.config import to_mapping
from tandem.models.search import SearchOptions
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.steps.loading import model_tensors
from tandem.models.vocabulary import EOS, WordVocabulary
from tandem.training.export.bundle import add_shortlist, built_graphs, rounded

SHAPES = {"small": TransformerSize(), "opus-mt": TransformerSize(width=512, hidden=2048, heads=8)}
"""6 + 6 layers of width 256; and as Marian's base models have them, 6 + 6 of width 512."""

_SPECIAL, _LETTERS, _CALIBRATION = 4, "abcdefghijklmnopqrstuvwxyz", 8
_LONGEST = 200  # tokens
_TARGETS, _ALWAYS = 20, 1000


def write_random_bundle(folder: Path, shape: str, types: int, *, listed: bool = False) -> Bundle:
    """Write a Transformer of a shape, always with the same weights, with its 8-bit graphs.

    Args:
        folder: that must not exist.
        shape: one of ``SHAPES``.
        types: of the vocabulary of either side, words of letters.
        listed: with a shortlist, as random as the weights.
    """
    model = rounded(random_transformer(SHAPES[shape], types, attention_bias=True, output_bias=True))
    words = WordVocabulary([_word(number) for number in range(types - _SPECIAL)])
    named, described = named_vocabularies([words], words, ())
    rng = np.random.default_rng(0)
    sources = [(np.array([*rng.integers(_SPECIAL, types, n), EOS]),) for n in rng.integers(5, 60, _CALIBRATION)]
    manifest = Manifest(
        name=f"random-{shape}-{types}",
        task="translate",
        source_languages=("de",),
        target_language="en",
        architecture="transformer",
        config=to_mapping(model.config),
        decoding=SearchOptions(),
        limits=Limits(_LONGEST, _LONGEST),
        vocabularies=described,
        training=SCRATCH,
        licence="CC0-1.0",
        about="Random weights, to measure speed with.",
    )
    files = built_graphs(model, ("int8",), sources, longest=30, report=lambda line: None)
    weights = {name: tensor.detach().numpy() for name, tensor in model_tensors(model).items()}
    bundle = write_bundle(folder, manifest, weights, named, files)
    return add_shortlist(folder, random_shortlist(types)) if listed else bundle


def random_shortlist(types: int) -> Shortlist:
    """Twenty targets for each source token, and a thousand (a tenth of few types) that every list holds."""
    rng = np.random.default_rng(1)
    table = Table.of(list(rng.integers(_SPECIAL, types, (types, _TARGETS))), types)
    return Shortlist((table,), np.arange(min(_ALWAYS, types // 10)), types)


def _word(number: int) -> str:
    """A word of four letters of its own for each number."""
    letters = ""
    for _ in range(4):
        number, letter = divmod(number, len(_LETTERS))
        letters = _LETTERS[letter] + letters
    return letters
