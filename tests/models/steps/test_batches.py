"""The general search keeps what every batch promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tandem.models.search import start_batch
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.steps.batches import PROMISES, Start


@pytest.mark.parametrize("promise", PROMISES)
def test_the_general_search(promise: Callable[[Start], None]) -> None:
    promise(lambda model, beam_size: start_batch(TorchGraphs(model), beam_size=beam_size))
