"""Fixtures of every test that computes with torch: one thread and a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Models this small only lose time to several threads, and sums keep their order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random numbers in every test, whatever ran before it.

    `torch.manual_seed` would keep the whole stack, for devices that wait to be used: it takes a millisecond and a half.
    """
    (torch.manual_seed if torch.cuda.is_initialized() else torch.default_generator.manual_seed)(0)
