"""`tandem ensemble`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from models.bundle import Bundle
from models.errors import ConfigError
from training.data.features import read_columns
from training.export.ensemble import Assembly, ensemble_bundle

console = Console(stderr=True)


def ensemble_command(bundles: Sequence[Path], out: Path, name: str, texts: Sequence[Path], force: bool) -> None:
    """Put bundles together and print what became of them."""
    widths = Bundle.load(bundles[0]).feature_widths
    if texts and len(texts) != len(widths):
        raise ConfigError(f"{bundles[0]} has {len(widths)} sources, but --text is given {len(texts)} times")
    lines = read_columns(list(texts), widths) if texts else ()
    bundle = ensemble_bundle(bundles, out, Assembly(name, lines, overwrite=force), _report)
    size = sum((bundle.path / file).stat().st_size for file in bundle.manifest.files)
    print(f"{bundle.path}: {len(bundles)} models, {size / 1e6:.1f} MB")


def _report(line: str) -> None:
    console.print(line, highlight=False, markup=False)
