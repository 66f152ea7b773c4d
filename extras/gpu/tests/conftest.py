"""What these tests share with the core's."""

from __future__ import annotations

from tests.conftest import anyio_backend

__all__ = ["anyio_backend"]
