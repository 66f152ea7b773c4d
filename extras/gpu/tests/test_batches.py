"""The search on the device keeps what every batch promises, alone and beside the general one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tandem.extras.gpu.routing import DeviceGraphs
from tandem.extras.gpu.tests.support import SIZES, static
from tandem.models.search import start_batch
from tests.models.steps.batches import PROMISES, Start


@pytest.mark.parametrize("lag", [False, True])
@pytest.mark.parametrize("promise", PROMISES)
def test_static_buffers(promise: Callable[[Start], None], lag: bool) -> None:
    promise(lambda model, beam_size: static(model, beam_size, poll_every=1, lag=lag))


@pytest.mark.parametrize("promise", PROMISES)
def test_both_searches_behind_one_batch(promise: Callable[[Start], None]) -> None:
    promise(lambda model, beam_size: start_batch(DeviceGraphs(model, sizes=SIZES), beam_size=beam_size))
