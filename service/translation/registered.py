"""Which text stages there are, by the names that bundles ask for them with."""

from __future__ import annotations

from collections.abc import Mapping

from service.translation.rewriting import Rewriting
from service.translation.stages import StageMaker


def stage_makers() -> Mapping[str, StageMaker]:
    """What makes each stage."""
    return {"rewriting": Rewriting.of}
