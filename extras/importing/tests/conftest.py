"""What the tests of imports share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.importing.tests.published import Served, serving, write_registry
from tandem.models.steps.torch_graphs import AnyModel
from tandem.training.export import bundle as export
from tests.determinism import one_thread, seeded
from tests.training.toy import described_graphs

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


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a registry, which no test changes."""
    root = tmp_path_factory.mktemp("published") / "registry"
    root.mkdir()
    write_registry(root)
    return root


@pytest.fixture
def served(written: Path, tmp_path: Path) -> Iterator[Served]:
    """A server of a copy that a test may change."""
    root = tmp_path / "registry"
    shutil.copytree(written, root)
    with serving(root) as running:
        yield running
