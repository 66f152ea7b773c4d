"""What the tests of training share: one thread, and a fixed seed."""

from __future__ import annotations

from tests.determinism import one_thread, seeded

__all__ = ["one_thread", "seeded"]
