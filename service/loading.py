"""From settings to an engine with every configured bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import structlog

from models.bundle import Bundle
from models.errors import BundleError, ConfigError
from service.engine import Engine
from service.runtimes import open_graphs
from service.runtimes.choice import Wish, open_chosen
from service.settings import Settings

_log = structlog.get_logger("tandem.loading")
_MANIFEST = "manifest.json"


def build_engine(settings: Settings) -> Engine:
    """Load every bundle and open its graphs; the engine is not started yet.

    Raises:
        ConfigError: a folder is missing or holds no bundle, or two bundles have one name.
        BundleError: a bundle is refused, with every fault, or no route can serve it.
    """
    engine = Engine(settings.engine_options())
    for path in find_bundles(settings.bundles):
        bundle = Bundle.load(path)
        fault = unservable(bundle)
        if fault:
            raise BundleError(path, [f"{fault}; decode files with `tandem translate`"])
        name = bundle.manifest.name
        if name in engine.bundles:
            raise ConfigError(f"{path}: another bundle is named {name!r} already; names must differ")
        graphs, choice = open_chosen(bundle, wish_of(settings), open_graphs)
        engine.add(bundle, graphs, choice.backend, shortlist=settings.shortlist)
        backend = {"runtime": choice.backend.runtime, "precision": choice.backend.precision, "why": choice.why}
        _log.info("bundle_loaded", bundle=name, task=bundle.manifest.task, **backend)
    return engine


def wish_of(settings: Settings) -> Wish:
    """The part of the settings that says what bundles are to run on."""
    return Wish(settings.runtime, settings.precision, settings.threads)


def unservable(bundle: Bundle) -> str:
    """Why no route can serve a bundle; empty where one can."""
    manifest, sources = bundle.manifest, len(bundle.sources)
    languages = len(set(manifest.source_languages))
    if any(bundle.feature_widths):
        return "it reads feature matrices, which no request can hold"
    if manifest.task == "postedit" and sources != 2:
        return f"a post-editor must have 2 sources, text and translation, to be served, but has {sources}"
    if manifest.task == "summarize" and sources != 1:
        return f"a summarizer must have 1 source to be served, but has {sources}"
    if manifest.task == "translate" and sources > 1 and languages != sources:
        return f"a translator of {sources} sources must name a language for each to be served, but names {languages}"
    return ""


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
