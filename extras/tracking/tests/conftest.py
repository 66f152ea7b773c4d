"""What these tests share with training's."""

from __future__ import annotations

from tests.training.conftest import one_thread, prepared, seeded

__all__ = ["one_thread", "prepared", "seeded"]
