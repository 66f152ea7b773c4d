"""What several of the laboratory's tests measure."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tandem.extras.refining.shortlists import build_shortlist
from tandem.models.bundle import Bundle
from tandem.training.export.bundle import add_shortlist
from tests.shipped import SHIPPED


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is measured in processes of their own, which decoding/test_command.py shows once."""
    monkeypatch.setattr("tandem.extras.laboratory.decoding.decode.in_own_process", lambda *_: {})


@pytest.fixture(scope="session")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped bundle with a shortlist, which it does not have."""
    path = tmp_path_factory.mktemp("listed") / "de-en"
    shutil.copytree(SHIPPED, path)
    bundle = Bundle.load(path)
    columns = (("Wo ist der Bahnhof?", "Guten Morgen!"), ("Where is the station?", "Good morning!"))
    vocabularies = (bundle.source_vocabularies, bundle.target_vocabulary)
    return add_shortlist(path, build_shortlist(vocabularies, columns, per_word=5, common=20)).path
