"""What these tests share with training's."""

from __future__ import annotations

from tests.training.conftest import one_thread, prepared, seeded
from tests.training.export.conftest import exported, exports, one

__all__ = ["exported", "exports", "one", "one_thread", "prepared", "seeded"]
