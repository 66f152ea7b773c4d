"""Loading, rolling back and unloading models while the service answers, for administrators."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field

from tandem.extras.changing.manager import ModelManager
from tandem.service.engine import alias_of
from tandem.service.http.dependencies import PartsDep, admin
from tandem.service.http.openapi import error_responses

router = APIRouter(tags=["models"])


_CHANGES: dict[str, Any] = {"dependencies": [Depends(admin)], "response_model_exclude_none": True}
ModelName = Annotated[str, Path(description="An alias, `de-en`, or a version, `de-en@2`.", max_length=151)]
Alias = Annotated[str, Path(description="A name without version, `de-en`.", max_length=100)]
Switch = Annotated[bool, Query(description="Whether the alias stands for it from then on.")]


class ModelChange(BaseModel):
    """What loading, rolling back or unloading has come to."""

    alias: str = Field(examples=["de-en"])
    current: str | None = Field(
        examples=["de-en@2"],
        default=None,
        description="The version that the alias stands for now; absent where it stands for none.",
    )
    model: str | None = Field(default=None, description="What was loaded or switched to.")
    unloaded: list[str] | None = Field(default=None, description="What was unloaded.")


@router.post("/models/{name}", responses=error_responses(401, 403, 404, 409, 422, 503), **_CHANGES)
async def load(name: ModelName, parts: PartsDep, switch: Switch = True) -> ModelChange:
    """Load a bundle of the configured folders while serving, and switch its alias to it.

    Of an alias the newest version is taken. The bundle is checked, opened and has to decode a sentence first; where
    that fails, nothing changes. Requests that have begun end with the version they began with. The version that the
    alias stood for stays loaded for `/models/{alias}/rollback`, until the next switch.
    """
    loaded = await parts.resource(ModelManager).load(name, switch=switch)
    return ModelChange(alias=alias_of(loaded), current=parts.engine.aliases.get(alias_of(loaded)), model=loaded)


@router.post("/models/{alias}/rollback", responses=error_responses(401, 403, 404, 409, 422, 503), **_CHANGES)
async def roll_back(alias: Alias, parts: PartsDep) -> ModelChange:
    """Switch an alias to the version that it stood for before; twice comes back."""
    loaded = await parts.resource(ModelManager).roll_back(alias)
    return ModelChange(alias=alias, current=parts.engine.aliases.get(alias), model=loaded)


@router.delete("/models/{name}", responses=error_responses(401, 403, 404, 409), **_CHANGES)
async def unload(name: ModelName, parts: PartsDep) -> ModelChange:
    """Unload a version, or all versions of an alias. What has begun ends first; the reply comes after that."""
    unloaded = await parts.resource(ModelManager).unload(name)
    return ModelChange(alias=alias_of(name), current=parts.engine.aliases.get(alias_of(name)), unloaded=unloaded)
