"""``GET /models``."""

from __future__ import annotations

from fastapi import APIRouter

from tandem.models.bundle import Bundle, ImportedFrom
from tandem.service.api.replies import AbsentModel, Direction, ModelInfo, ModelOrigin
from tandem.service.engine import Engine, alias_of
from tandem.service.http.dependencies import PartsDep

router = APIRouter(tags=["models"])


@router.get("/models", response_model_exclude_none=True)
async def models(parts: PartsDep) -> list[ModelInfo | AbsentModel]:
    """The loaded models, and those that are being loaded or could not be."""
    absent = [
        AbsentModel(name=one.name, alias=alias_of(one.name), state=one.state, reason=one.reason or None)
        for one in parts.readiness.absent.values()
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
