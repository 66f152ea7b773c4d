"""Settings of who may use a server, how much, and what it keeps for them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, SecretStr


class AccountSettings(BaseModel):
    """Where it is kept is the setting ``data`` of the service."""

    require_key: bool = Field(
        default=False, description="Refuse requests for text without a key of `tandem keys`; needs `data`."
    )
    anonymous_rate: int = Field(
        default=0, ge=0, description="Requests a minute of all callers without a key together; 0 = without bound."
    )
    anonymous_quota: int = Field(
        default=0,
        ge=0,
        description="Characters a month of all callers without a key together; 0 = without bound, and not counted.",
    )
    limits_url: SecretStr | None = Field(
        default=None,
        description="Store of rate limits and quotas that several replicas share, such as redis://host:6379/0; none ="
        " SQLite in `data`.",
    )
    limits_failure: Literal["open", "closed"] = Field(
        default="open", description="While that store is down: answer requests uncounted, or refuse them with 503."
    )
    max_glossaries: int = Field(default=1_000, ge=0, le=100_000, description="Glossaries that a caller may store.")
    max_glossary_characters: int = Field(
        default=20_000_000, ge=0, le=1 << 30, description="Characters of all glossaries that a caller may store."
    )
    max_memory_entries: int = Field(
        default=100_000, ge=0, le=10_000_000, description="Sentences in the translation memory of a key."
    )
    max_memory_characters: int = Field(
        default=20_000_000, ge=0, le=1 << 30, description="Characters of these sentences and their translations."
    )

    @property
    def asks_for_keys(self) -> bool:
        """What the service asks its settings: callers without a key are refused."""
        return self.require_key
