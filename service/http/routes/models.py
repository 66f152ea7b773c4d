"""``GET /models`` for everybody; loading, rolling back and unloading them for administrators."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from tandem.models.bundle import Bundle, ImportedFrom
from tandem.service.api.replies import AbsentModel, Direction, ModelChange, ModelInfo, ModelOrigin
from tandem.service.engine import Engine, alias_of
from tandem.service.http.dependencies import PartsDep, admin
from tandem.service.http.openapi import error_responses

router = APIRouter(tags=["models"])


_CHANGES: dict[str, Any] = {"dependencies": [Depends(admin)], "response_model_exclude_none": True}
ModelName = Annotated[str, Path(description="An alias, `de-en`, or a version, `de-en@2`.", max_length=151)]
Alias = Annotated[str, Path(description="A name without version, `de-en`.", max_length=100)]
Switch = Annotated[bool, Query(description="Whether the alias stands for it from then on.")]


@router.get("/models", response_model_exclude_none=True)
async def models(parts: PartsDep) -> list[ModelInfo | AbsentModel]:
    """The loaded models, and those that are being loaded or could not be."""
    absent = [
        AbsentModel(name=one.name, alias=alias_of(one.name), state=one.state, reason=one.reason or None)
        for one in parts.models.absent
    ]
    engine = parts.engine
    return [*(_describe(engine, bundle) for bundle in (*engine.bundles.values(), *engine.leaving.values())), *absent]


def _describe(engine: Engine, bundle: Bundle) -> ModelInfo:
    manifest = bundle.manifest
    backend = engine.backends[manifest.name]
    return ModelInfo(
        name=manifest.name,
        alias=alias_of(manifest.name),
        current=manifest.name in engine.aliases.values(),
        task=manifest.task,
        source_languages=list(manifest.source_languages),
        sources=len(bundle.sources),
        target_language=manifest.target_language,
        pairs=[Direction(source=source, target=target) for source, target in manifest.pairs] or None,
        architecture=manifest.architecture,
        runtime=backend.runtime,
        precision=backend.precision,
        licence=manifest.licence,
        attribution=[corpus.attribution for corpus in manifest.training.corpora],
        origin=_origin(manifest.origin),
        scores=[{"metric": s.metric, "value": s.value, "test_set": s.test_set} for s in manifest.scores],
        state=engine.state_of(manifest.name),
    )


def _origin(origin: ImportedFrom | None) -> ModelOrigin | None:
    return None if origin is None else ModelOrigin(form=origin.form, url=origin.url or None)


@router.post("/models/{name}", responses=error_responses(401, 403, 404, 409, 422, 503), **_CHANGES)
async def load(name: ModelName, parts: PartsDep, switch: Switch = True) -> ModelChange:
    """Load a bundle of the configured folders while serving, and switch its alias to it.

    Of an alias the newest version is taken. The bundle is checked, opened and has to decode a sentence first; where
    that fails, nothing changes. Requests that have begun end with the version they began with. The version that the
    alias stood for stays loaded for `/models/{alias}/rollback`, until the next switch.
    """
    loaded = await parts.models.load(name, switch=switch)
    return ModelChange(alias=alias_of(loaded), current=parts.engine.aliases.get(alias_of(loaded)), model=loaded)


@router.post("/models/{alias}/rollback", responses=error_responses(401, 403, 404, 409, 422, 503), **_CHANGES)
async def roll_back(alias: Alias, parts: PartsDep) -> ModelChange:
    """Switch an alias to the version that it stood for before; twice comes back."""
    loaded = await parts.models.roll_back(alias)
    return ModelChange(alias=alias, current=parts.engine.aliases.get(alias), model=loaded)


@router.delete("/models/{name}", responses=error_responses(401, 403, 404, 409), **_CHANGES)
async def unload(name: ModelName, parts: PartsDep) -> ModelChange:
    """Unload a version, or all versions of an alias. What has begun ends first; the reply comes after that."""
    unloaded = await parts.models.unload(name)
    return ModelChange(alias=alias_of(name), current=parts.engine.aliases.get(alias_of(name)), unloaded=unloaded)
