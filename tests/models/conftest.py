"""What the tests of the models share."""

from __future__ import annotations

from tests.determinism import one_thread, seeded

__all__ = ["one_thread", "seeded"]
