"""What the tests of the search over static buffers share: models, sentences with rules of all kinds, comparison."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.routing import RoutedBatch
from tandem.extras.gpu.sizes import Sizes
from tandem.extras.gpu.step import StaticStep
from tandem.models.search import Array, Batch, DecodeBatch, Hypothesis, SearchOptions, Sentence
from tests.models.architectures.examples import EOS, FIRST_CASES, TARGET_TYPES, AnyModel, Case, arrays, sentences
from tests.models.search.tables import run_out

AnyBatch = DecodeBatch | StaticBatch | RoutedBatch | Batch
Found = dict[Hashable, tuple[Hypothesis, ...]]
SIZES = Sizes(sentences=(1, 2, 4), source=(4, 16), target=(4, 8, 16), required=3, suppressed=10)
LENGTHS = (5, 2, 7, 4, 9, 3)
ORDINARY = tuple(token for token in range(TARGET_TYPES) if token != EOS)
POOLED, RECURRENT = (next(case for case in FIRST_CASES if case.architecture == name) for name in ("dpn", "memd"))
RULES: tuple[dict[str, Any], ...] = (
    {"max_length": 11, "no_repeat_ngram_size": 2},
    {"max_length": 9, "min_length": 6, "max_rounds": 2, "required": (5, 8, 5)},
    {"max_length": 3, "length_penalty": 0.6, "length_penalty_form": "gnmt", "required": (9, 4)},
    {"max_length": 8, "prefix": (5, 5, 6), "suppressed": (5, 0, 1), "max_rounds": 1, "attention": True},
    {"max_length": 40, "max_length_ratio": 0.2, "length_penalty_form": "none"},
    {"max_length": 1},
    {"max_length": 12, "no_repeat_ngram_size": 6, "max_rounds": 2, "suppressed": (0, 1, 2)},
    {"max_length": 12, "no_repeat_ngram_size": 1, "coverage_penalty": 0.3},
    {"max_length": 12, "no_repeat_ngram_size": 3, "required": (6,), "suppressed": (6, 7), "attention": True},
    {"max_length": 6, "prefix": (8,), "required": (8, 8, 7), "coverage_penalty": 0.2, "attention": True},
)
"""Bounds and rules of all kinds."""


def prepared(case: Case, dtype: torch.dtype = torch.float32) -> AnyModel:
    """Weights are drawn wide, so that hypotheses differ in length."""
    model = case.build(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.3)
    model.prepare_for_inference()
    return model


def sources(model: AnyModel, lengths: Sequence[int] = LENGTHS) -> list[tuple[Array, ...]]:
    return arrays(sentences(model, lengths))


def options(beam_size: int, number: int = 0) -> SearchOptions:
    """Bounds and rules that differ from sentence to sentence."""
    return SearchOptions(beam_size=beam_size, n_best=beam_size, **RULES[number % len(RULES)])


def mixed(model: AnyModel, beam_size: int) -> list[Sentence]:
    """A sentence for each of the rules."""
    own = sources(model, [LENGTHS[number % len(LENGTHS)] for number in range(len(RULES))])
    return [Sentence(number, source, options(beam_size, number)) for number, source in enumerate(own)]


def static(
    model: AnyModel, beam_size: int, sizes: Sizes = SIZES, *, poll_every: int = 4, lag: bool = False
) -> StaticBatch:
    return StaticBatch(StaticStep(model, beam_size=beam_size, sizes=sizes), poll_every=poll_every, lag=lag)


def decoded(batch: AnyBatch, joining: Sequence[Sentence]) -> Found:
    batch.join(joining)
    return run_out(batch)


def assert_same(found: Found, expected: Found, tolerance: float = 1e-4) -> None:
    assert found.keys() == expected.keys()
    for name, hypotheses in expected.items():
        assert [one.tokens for one in found[name]] == [one.tokens for one in hypotheses], name
        assert [one.finished for one in found[name]] == [one.finished for one in hypotheses]
        for one, other in zip(found[name], hypotheses, strict=True):
            numbers = (one.score, one.normalised, *one.token_scores)
            assert numbers == pytest.approx((other.score, other.normalised, *other.token_scores), abs=tolerance)
            assert (one.attention is None) == (other.attention is None)
            for weights, others in zip(one.attention or (), other.attention or (), strict=True):
                np.testing.assert_allclose(weights, others, atol=tolerance)
