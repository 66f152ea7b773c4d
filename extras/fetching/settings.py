"""Settings of public models that a server fetches itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, field_validator
from pydantic_settings import NoDecode


class FetchingSettings(BaseModel):
    """Bundles are made of them in the first folder of the setting ``bundles``."""

    models: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Public models to fetch at the start where their bundles are missing, such as firefox:en-de,"
        " separated by commas; none = the server fetches nothing.",
    )
    models_registry: str = Field(
        default="",
        description="Mirror of the registry of Firefox's models, by its URL, or a folder with a copy; none ="
        " Mozilla's.",
    )

    @field_validator("models", mode="before")
    @classmethod
    def _split_models(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @property
    def awaits_bundles(self) -> bool:
        """Whether bundles may come after the start."""
        return bool(self.models)
