"""From settings to an engine with every configured bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import structlog

from models.bundle import Bundle
from models.errors import BundleError, ConfigError
from service.engine import Engine
from service.runtimes import open_graphs
from service.settings import Settings

_log = structlog.get_logger("tandem.loading")
_MANIFEST = "manifest.json"


def build_engine(settings: Settings) -> Engine:
    """Load every bundle and open its graphs; the engine is not started yet.

    Raises:
        ConfigError: a folder is missing or holds no bundle, or two bundles have one name.
        BundleError: a bundle is refused, with every fault.
    """
    options = settings.engine_options()
    engine = Engine(options)
    for path in find_bundles(settings.bundles):
        bundle = Bundle.load(path)
        if any(bundle.feature_widths):
            fault = "it reads feature matrices, which no request can hold; decode files with `tandem translate`"
            raise BundleError(path, [fault])
        name = bundle.manifest.name
        if name in engine.bundles:
            raise ConfigError(f"{path}: another bundle is named {name!r} already; names must differ")
        engine.add(bundle, open_graphs(bundle, options.runtime, options.precision, settings.threads))
        _log.info("bundle_loaded", bundle=name, task=bundle.manifest.task, runtime=options.runtime)
    return engine


def find_bundles(paths: Sequence[Path]) -> list[Path]:
    """The bundle folders among and directly below ``paths``. Raises ConfigError, naming every path that has none."""
    found: list[Path] = []
    faults: list[str] = []
    for path in paths:
        below = sorted(child.parent for child in path.glob(f"*/{_MANIFEST}"))
        bundles = [path] if (path / _MANIFEST).is_file() else below
        found += bundles
        if not bundles:
            faults.append(f"{path} " + ("holds no bundle" if path.is_dir() else "is no folder"))
    if faults:
        raise ConfigError("; ".join(faults) + "; set TANDEM_BUNDLES to a bundle or a folder of bundles")
    return list(dict.fromkeys(found))
