"""What the core finds here."""

from __future__ import annotations

from collections.abc import Mapping

from extras.rewriting.stage import Rewriting
from service.translation.stages import StageMaker

STAGES: Mapping[str, StageMaker] = {"rewriting": Rewriting.of}
"""Text stages, by the names that bundles ask for them with."""
