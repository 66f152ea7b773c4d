"""What the tests of imports share."""

from __future__ import annotations

from typing import Any

import pytest

from models.steps.torch_graphs import AnyModel
from tests.determinism import one_thread, seeded
from tests.training.toy import described_graphs
from training.export import bundle as export

__all__ = ["one_thread", "seeded", "without_graphs"]


@pytest.fixture
def without_graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Graphs are described and not exported; what they would be calibrated on is kept."""
    seen: list[Any] = []

    def calibrated(model: AnyModel, graphs: Any, precision: str, sources: Any, *further: Any) -> dict[str, bytes]:
        seen.append(sources)
        return {}

    monkeypatch.setattr(export, "export_graphs", described_graphs)
    monkeypatch.setattr(export, "at_precision", calibrated)
    return seen
