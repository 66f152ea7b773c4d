"""A bundle whose model copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.support import tiny_bundle


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bundle(tmp_path_factory.mktemp("bulk")).path
