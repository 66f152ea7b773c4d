"""What the service gets of this: the manager while it runs, and its routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tandem.extras.changing.errors import ModelInUse, ModelRefused
from tandem.extras.changing.manager import ModelManager
from tandem.extras.changing.routes import router
from tandem.service.http.dependencies import Parts
from tandem.service.http.parts import HttpPart, ReplyRule

HTTP = HttpPart(
    routes=router.routes,
    errors={ModelInUse: ReplyRule(409, "model_in_use"), ModelRefused: ReplyRule(422, "model_refused")},
)


@asynccontextmanager
async def managing(parts: Parts) -> AsyncIterator[ModelManager]:
    """The manager. Raises ConfigError where the record of earlier switches is damaged."""
    manager = await asyncio.to_thread(ModelManager, parts.engine, parts.readiness, parts.settings)
    try:
        yield manager
    finally:
        await manager.close()
