"""Fixtures of a module that other modules import: what they make is made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import pytest

Made = TypeVar("Made")


def made_once(make: Callable[..., Made]) -> Callable[..., Made]:
    """Each module that has a fixture makes it for itself, and has what was made first of the same arguments.

    Tests with it run in one process (tests/conftest.py), one after another, and leave it as they found it.
    """
    made: dict[tuple[Any, ...], Made] = {}

    @wraps(make)
    def first(**given: Any) -> Made:
        key = tuple(value for value in given.values() if not isinstance(value, pytest.TempPathFactory))
        if key not in made:
            made[key] = make(**given)
        return made[key]

    return first
