"""What the device cannot decode goes through the graphs; buffers of batches that are gone serve the next."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from models.device import DeviceBatches, RoutedBatch, StaticStep
from models.errors import OptionError
from models.graphs import TorchGraphs
from models.search import DecodeBatch, Sampling, SearchOptions, Sentence
from tests.models.device import POOLED, SIZES, assert_same, decoded, mixed, options, prepared, sources, static
from tests.models.search.tables import run_out

UNSUPPORTED: dict[str, dict[str, Any]] = {
    "sampling": {"sampling": Sampling(seed=3)},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 2},
    "max_rounds": {"max_rounds": 2},
    "coverage_penalty": {"coverage_penalty": 0.2},
    "exhaustive": {"exhaustive": True},
    "attention": {"attention": True},
    "max_length": {"max_length": 16},
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_the_device_does_not_have_is_refused_or_routed(name: str) -> None:
    model = prepared(POOLED)
    general = TorchGraphs(model)
    plain, other = ({"max_length": 7} | extra for extra in ({}, UNSUPPORTED[name]))
    known = sources(model, (4, 6))
    joining = [
        Sentence("plain", known[0], SearchOptions(beam_size=2, n_best=2, **plain)),
        Sentence("other", known[1], SearchOptions(beam_size=2, n_best=2, **other)),
    ]
    batch = static(model, 2)
    assert [batch.supports(one) for one in joining] == [True, False]
    with pytest.raises(OptionError) as refused:
        batch.join(joining)
    assert refused.value.field == name
    assert len(batch) == 0
    expected = decoded(DecodeBatch(general, beam_size=2), joining)
    routed = RoutedBatch(batch, DecodeBatch(general, beam_size=2))
    assert_same(decoded(routed, joining), expected)
    assert routed.counters.steps > 0


def test_a_routed_batch_refuses_and_removes_from_both() -> None:
    model = prepared(POOLED)
    batches = DeviceBatches(model, TorchGraphs(model), sizes=SIZES)
    batch = batches.start(2)
    first, second = sources(model, (4, 3))
    here = Sentence("here", first, options(2))
    there = Sentence("there", second, SearchOptions(beam_size=2, max_length=9, no_repeat_ngram_size=1))
    with pytest.raises(ValueError, match="already"):
        batch.join([here, there, Sentence("there", first, options(2))])
    assert len(batch) == 0 and batch.rows == 0
    batch.join([here, there])
    assert set(batch.ids) == {"here", "there"} and batch.rows > 0
    batch.remove(["there", "nobody"])
    assert set(run_out(batch)) == {"here"}


def test_buffers_of_a_batch_that_is_gone_serve_the_next() -> None:
    model = prepared(POOLED)
    batches = DeviceBatches(model, TorchGraphs(model), sizes=SIZES)
    joining = mixed(model, 2)
    with patch("models.device.routing.StaticStep", wraps=StaticStep) as made:
        first = batches.start(2)
        first.join(joining)
        first.step()
        second = batches.start(2)
        assert made.call_count == 2  # the first is still held
        del first
        third = batches.start(2)
        assert made.call_count == 2
    expected = decoded(DecodeBatch(TorchGraphs(model), beam_size=2), joining)
    for batch in (third, second):
        assert_same(decoded(batch, joining), expected)
