"""How the core finds the search: in the torch runtime, and while training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tandem.extras.gpu.routing import DeviceGraphs, open_search
from tandem.extras.gpu.tests.support import POOLED, prepared
from tandem.models.search import SearchOptions
from tandem.models.steps.device_search import SearchRoom
from tandem.models.steps.torch_graphs import AnyModel
from tandem.service.runtimes.torch import device_search
from tandem.training.data.dataset import text_path
from tandem.training.loop import validation
from tandem.training.loop.validation import TextValidator
from tests.training.conftest import prepared as prepared_data
from tests.training.toy import toy_recipe, toy_trainer

__all__ = ["prepared_data"]


def test_the_search_is_found() -> None:
    assert device_search("cpu") is device_search("cuda") is open_search
    assert device_search("mps") is None


def test_room_is_made_for_what_is_asked() -> None:
    room = SearchRoom(sentences=40, source=50, target=20, suppressed=3)
    here = open_search(prepared(POOLED), room)
    assert (here.device, here.slots) == (torch.device("cpu"), 16)  # a CPU gains nothing from more
    (step,) = (open_search(prepared(POOLED), room)._step(2, 1, 2) for _ in range(1))
    assert (step.sizes.source[-1], step.sizes.target[-1], step.sizes.suppressed) == (50, 20, 67)


def test_validation_on_the_device_scores_the_same(prepared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[DeviceGraphs] = []

    def search(model: AnyModel, room: SearchRoom) -> DeviceGraphs:
        made.append(open_search(model, room))
        return made[0]

    recipe = replace(toy_recipe(validation_sentences=20), decoding=SearchOptions(beam_size=4, max_length=12))
    model = toy_trainer(recipe, prepared_data, prepared_data).model.eval()
    expected = TextValidator(recipe, prepared_data)(model).scores
    monkeypatch.setattr(validation, "_on_gpu", lambda model: True)
    assert TextValidator(recipe, prepared_data, search)(model).scores == expected
    assert expected["chrf"] > 0
    lines = text_path(prepared_data, "toy", "valid", "source0").read_text(encoding="utf-8").splitlines()
    shown = 5  # decoded once more, for their attention
    assert made[0].counters.sentences == len(lines) + shown and not made[0].counters.routed
