"""Lines on a device with its own search, and what a lost device means for files."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.bundle import Bundle
from tandem.models.errors import DeviceLost
from tandem.models.search import GraphSpecs, SearchingGraphs
from tandem.models.steps.device_search import DeviceSearch
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.service.runtimes import open_graphs
from tandem.service.runtimes.torch import device_search, device_work
from tests.deploy.small import WORDS, Make, make

__all__ = ["make"]
LINES = [" ".join(WORDS[(start * step) % 8] for step in range(1, 2 + start % 7)) for start in range(40)]


def test_lines_are_decoded_by_the_search_of_the_device(make: Make) -> None:
    """More than there are slots for, in the hypotheses of the general search."""
    if device_search("cpu") is None:
        pytest.skip("needs the extra gpu")
    opened: list[DeviceSearch] = []

    def searching(bundle: Bundle, *how: Any) -> DeviceSearch:
        graphs = open_graphs(bundle, *how)
        assert isinstance(graphs, DeviceSearch)
        opened.append(graphs)
        return graphs

    path, options = make("one", "de"), BulkOptions(runtime="torch", device="cpu", sentences=False)
    found = BulkTranslator(path, options, searching).translate_block(LINES)
    general = BulkTranslator(path, options, lambda bundle, *_: TorchGraphs(load_bundle_model(bundle)))
    assert [one.data for one in found] == [one.data for one in general.translate_block(LINES)]
    assert len({one.data for one in found}) > 1
    assert opened[0].counters.sentences == len(LINES) > 2 * opened[0].slots and not opened[0].counters.routed
    assert ("cpu", opened[0].counters) in list(device_work())


def test_a_lost_device_ends_the_work(make: Make) -> None:
    """Lines that could not be decoded for it are not bad lines."""

    class Lost(SearchingGraphs):
        slots = 1

        def __init__(self, bundle: Bundle, *_: object) -> None:
            self._general = TorchGraphs(load_bundle_model(bundle))

        @property
        def specs(self) -> GraphSpecs:
            return self._general.specs

        def start_batch(self, *_: object, **__: object) -> NoReturn:
            raise DeviceLost("cuda:0 does not work any more")

        run = start_batch

    with pytest.raises(DeviceLost):
        BulkTranslator(make("one", "de"), BulkOptions(sentences=False), Lost).translate_block(LINES)
