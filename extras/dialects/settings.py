"""Settings of the dialects."""

from __future__ import annotations

from pydantic import BaseModel, Field


class DialectSettings(BaseModel):
    """Those that no other route has."""

    deepl_timeout: float = Field(
        default=9.0,
        gt=0,
        lt=10,
        description="Seconds that a request of the DeepL dialect may take; its clients give up after 10 and ask again.",
    )
