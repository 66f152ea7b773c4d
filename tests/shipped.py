"""Where the repository lies, and what it ships."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUNDLES = ROOT / "bundles"
SHIPPED = BUNDLES / "de-fr-en"
