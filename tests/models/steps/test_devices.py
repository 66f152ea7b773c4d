"""Which devices are here, and a device that is lost under the general search."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch

from tandem.models.errors import ConfigError, DeviceLost
from tandem.models.search import translate_batch
from tandem.models.steps.devices import check_device, lost
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import FIRST_CASES, arrays, sentences
from tests.models.steps.test_torch_graphs import OPTIONS


@pytest.mark.skipif(torch.cuda.is_available(), reason="of machines without a GPU")
def test_devices_are_checked() -> None:
    assert check_device("cpu") == check_device("auto") == torch.device("cpu")
    for name in ("cuda", "cuda:3"):
        with pytest.raises(ConfigError, match="is no GPU of this machine"):
            check_device(name)
    for name in ("tpu", "mps", "cuda:x"):
        with pytest.raises(ConfigError, match="must be cpu, cuda, cuda:N or auto"):
            check_device(name)


def test_an_error_says_nothing_of_a_device_that_answers() -> None:
    gpu = torch.device("cuda:0")
    with patch("torch.cuda.synchronize"):
        assert lost(gpu, RuntimeError("a step")) is None
    with patch("torch.cuda.synchronize", side_effect=RuntimeError("an illegal address\nand more")):
        assert lost(torch.device("cpu"), RuntimeError("a step")) is None
        assert lost(gpu, torch.OutOfMemoryError()) is None
        assert str(lost(gpu, RuntimeError("a step"))) == "cuda:0 does not work any more: an illegal address"


def test_graphs_tell_a_lost_device_from_a_step_that_failed() -> None:
    model = FIRST_CASES[0].build()
    model.prepare_for_inference()
    graphs, own = TorchGraphs(model), arrays(sentences(model, (4, 3)))
    with patch.object(model, "advance_one", side_effect=RuntimeError("a step")):
        with pytest.raises(RuntimeError, match="a step"):
            translate_batch(graphs, own, OPTIONS)
        gone = DeviceLost("cuda:0 does not work any more: illegal address")
        with (
            patch("tandem.models.steps.torch_graphs.lost", return_value=gone),
            pytest.raises(DeviceLost, match="illegal"),
        ):
            translate_batch(graphs, own, OPTIONS)
