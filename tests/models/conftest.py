"""What the tests of the models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.determinism import one_thread, seeded

__all__ = ["no_gradients", "one_thread", "seeded"]


@pytest.fixture
def no_gradients() -> Iterator[None]:
    """For a whole file: ``pytestmark = pytest.mark.usefixtures("no_gradients")``."""
    with torch.no_grad():
        yield
