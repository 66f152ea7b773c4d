"""From settings to loaded bundles: which there are, which of several versions is served, and opening one.

Below a configured folder each bundle has a folder of its own. Several versions of one model lie side by side as
``de-en@1`` and ``de-en@2``; the part before the ``@`` is the name in their manifest, which may also carry the version
itself. A folder without ``@`` is a bundle without versions, and may be called anything. Requests name the alias
(``de-en``), which stands for one version, or a version (``de-en@2``).
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import structlog

from tandem.models.bundle import Bundle
from tandem.models.bundle.manifest import NAME, Manifest, read_manifest
from tandem.models.errors import BundleError, ConfigError, TandemError
from tandem.models.search import Graphs, start_batch
from tandem.service.bundles.backend import backend_of
from tandem.service.bundles.readiness import probe_job
from tandem.service.engine import Backend, Engine, alias_of
from tandem.service.ports import extras, load, stage_readers
from tandem.service.runtimes import Placement, memory_of, open_graphs, resolve_device
from tandem.service.settings import Settings

_log = structlog.get_logger("tandem.loading")
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class BundleFolder:
    """A bundle folder.

    Attributes:
        name: that it is served under, ``de-en`` or ``de-en@2``.
        fault: why it cannot be served, as far as can be told without reading it all; empty where it may be.
        manifest: its own; None where it cannot be read.
        digest: of the manifest's file. That has the hash of every file: folders of one digest hold the same.
    """

    path: Path
    name: str
    fault: str = ""
    manifest: Manifest | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class OpenBundle:
    """A bundle that is ready for ``Engine.add``."""

    bundle: Bundle
    graphs: Graphs
    backend: Backend

    @classmethod
    def of(cls, bundle: Bundle, runtime: str, precision: str, threads: int, placement: Placement) -> Self:
        """Open a bundle's graphs. Raises as :func:`backend_of` and :func:`service.runtimes.open_graphs`."""
        backend = backend_of(bundle, runtime, precision, placement.device)
        return cls(bundle, open_graphs(bundle, backend.runtime, backend.precision, threads, placement), backend)


def build_engine(settings: Settings) -> Engine:
    """Load the bundle that each alias stands for and open its graphs; the engine is not started yet.

    An alias stands for the version that it was last switched to, else for that of ``settings.versions``, else for the
    newest.

    Raises:
        ConfigError: a folder is missing or holds no bundle, two bundles have one name, or a version is not there.
        BundleError: a bundle is refused, with every fault, or no route can serve it.
    """
    device = resolve_device(settings.runtime, settings.device)
    if device == "cpu" and settings.device == "auto" and settings.runtime == "torch":
        _log.warning(
            "no_gpu", remedy="look at nvidia-smi and the container's devices; TANDEM_RUNTIME=onnx is faster here"
        )
    engine = Engine(settings.engine_options(device, memory_of(settings.runtime, device)))
    there = list_bundles(settings.bundles) if not _none_yet(settings) else []
    for path in _passed_over(settings.bundles, {folder.path for folder in there}):
        _log.warning("no_bundle", folder=str(path), reason=f"it has no {_MANIFEST} that can be read")
    for folder in at_start(there, settings):
        add_loaded(engine, open_bundle(folder, settings))
    return engine


def _none_yet(settings: Settings) -> bool:
    """Whether there is no bundle, but some are to come."""
    return settings.awaits_bundles and all(not path.exists() or is_empty(path) for path in settings.bundles)


def at_start(bundles: Sequence[BundleFolder], settings: Settings) -> list[BundleFolder]:
    """Which of all bundles are served from the start: of each alias the version that it stands for.

    Raises:
        ConfigError: two bundles have one name, a bundle's folder and manifest differ, or a version is not there.
    """
    groups: dict[str, dict[str, BundleFolder]] = {}
    for folder in bundles:
        versions = groups.setdefault(alias_of(folder.name), {})
        if folder.name in versions:
            raise ConfigError(f"{folder.path}: another bundle is named {folder.name!r} already; names must differ")
        versions[folder.name] = folder
    configured = {alias_of(name): name for name in settings.versions}
    chosen = []
    for alias, name in configured.items():
        if name not in groups.get(alias, {}):
            there = ", ".join(groups.get(alias, groups)) or "none"
            raise ConfigError(f"versions names {name!r}, but there is no such bundle; there are {there}")
    switched_to = _switched(settings)
    for alias, versions in groups.items():
        switched = switched_to(alias, configured.get(alias, ""))
        if switched and switched not in versions:
            _log.warning("switched_version_gone", model=alias, version=switched)
        name = switched if switched in versions else configured.get(alias) or newest(versions)
        if versions[name].fault:
            raise ConfigError(f"{versions[name].path}: {versions[name].fault}")
        chosen.append(versions[name])
    return chosen


def _switched(settings: Settings) -> Callable[[str, str], str]:
    """The version that an alias was switched to while serving, given the configured one; empty where it never was."""
    place = next((extra.versions for extra in extras() if extra.versions is not None), None)
    return (lambda alias, configured: "") if place is None else load(place)(settings.data)


def open_bundle(folder: BundleFolder, settings: Settings) -> OpenBundle:
    """Read, check and open a bundle. Takes seconds: call it in a thread.

    Raises:
        ConfigError: a runtime that is unknown or not installed.
        BundleError: it is refused, with every fault, or no route can serve it.
    """
    bundle = Bundle.load(folder.path, readers=stage_readers() if settings.stages == "bundle" else None)
    fault = folder.fault or unservable(bundle)
    if fault:
        raise BundleError(folder.path, [f"{fault}; decode files with `tandem translate`"])
    shortlist = bundle.shortlist if settings.shortlist else None
    bundle = replace(bundle, manifest=replace(bundle.manifest, name=folder.name), shortlist=shortlist)
    device = resolve_device(settings.runtime, settings.device)
    limits = settings.engine_options(device, memory_of(settings.runtime, device)).limits
    placement = Placement(device, limits.max_batch_sentences, settings.gpu_memory, settings.native)
    return OpenBundle.of(bundle, settings.runtime, settings.precision, settings.threads, placement)


def add_loaded(engine: Engine, loaded: OpenBundle) -> None:
    """Hand a bundle to the engine, and say so in the log."""
    manifest, backend = loaded.bundle.manifest, loaded.backend
    engine.add(loaded.bundle, loaded.graphs, backend, shortlist=True)
    ran_on = {"runtime": backend.runtime, "precision": backend.precision, "device": backend.device}
    _log.info("bundle_loaded", bundle=manifest.name, task=manifest.task, **ran_on)


def prove(loaded: OpenBundle, seconds: float) -> None:
    """Decode a probe sentence with a bundle that the engine does not have yet.

    Raises:
        BundleError: it crashes, finds nothing, or takes longer than so many seconds.
    """
    bundle, job = loaded.bundle, probe_job(loaded.bundle)
    until = time.monotonic() + seconds
    try:
        batch = start_batch(loaded.graphs, beam_size=job.options.beam_size, shortlist=bundle.shortlist)
        batch.join([job.sentence(0)])
        while time.monotonic() < until:
            for finished in batch.step():
                if finished.hypotheses:
                    return
                raise BundleError(bundle.path, ["it finds no hypothesis for a probe sentence"])
    except BundleError:
        raise
    except Exception as error:  # the runtimes' own exceptions share no base
        _log.warning("probe_failed", bundle=bundle.manifest.name, exc_info=True)
        reason = str(error) if isinstance(error, TandemError) else type(error).__name__
        raise BundleError(bundle.path, [f"it cannot decode a probe sentence: {reason}"]) from error
    raise BundleError(bundle.path, [f"it did not decode a probe sentence within {seconds:g} s"])


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
    """The bundle folders among and directly below ``paths``.

    A folder without any folder in it is fine beside others that hold bundles: it may get some later.

    Raises:
        ConfigError: a path is no folder, or holds folders and no bundle, every one is named; or all are empty.
    """
    found: list[Path] = []
    faults: list[str] = []
    empty: list[str] = []
    for path in paths:
        below = sorted(child.parent for child in path.glob(f"*/{_MANIFEST}"))
        bundles = [path] if (path / _MANIFEST).is_file() else below
        found += bundles
        if not bundles:
            fault = f"{path} " + ("holds no bundle" if path.is_dir() else "is no folder")
            (empty if is_empty(path) else faults).append(fault)
    if faults or not found:
        raise ConfigError("; ".join(empty + faults) + "; set TANDEM_BUNDLES to a bundle or a folder of bundles")
    return list(dict.fromkeys(found))


def is_empty(path: Path) -> bool:
    """Whether there is such a folder and none in it."""
    return path.is_dir() and not _folders(path)


def _folders(path: Path) -> list[Path]:
    """Those in a folder, but for what file systems keep at the root of a volume, and ``tandem pull`` unfinished."""
    return sorted(
        one for one in path.iterdir() if one.is_dir() and one.name != "lost+found" and not one.name.startswith(".")
    )


def _passed_over(paths: Sequence[Path], bundles: Collection[Path]) -> list[Path]:
    """Folders beside bundles that are none: a copy that is not finished, or that may not be read."""
    return [
        folder
        for path in paths
        if path not in bundles and path.is_dir()
        for folder in _folders(path)
        if folder not in bundles
    ]


def list_bundles(paths: Sequence[Path]) -> list[BundleFolder]:
    """Every bundle folder with the name that it would be served under. Raises ConfigError as ``find_bundles``."""
    roots = [path.resolve() for path in paths]
    return [_look_at(path, roots) for path in find_bundles(paths)]


def _look_at(path: Path, roots: Sequence[Path]) -> BundleFolder:
    folder = path.resolve().name if path.name in ("", ".", "..") else path.name
    fallback = BundleFolder(path, folder if NAME.fullmatch(folder) else "unnamed")
    if not any(path.resolve().is_relative_to(root) for root in roots):
        return replace(fallback, fault="it is a link that leads out of the configured folder")
    try:
        content = (path / _MANIFEST).read_bytes()
    except OSError:
        return fallback
    manifest = read_manifest(content, [])
    if manifest is None:  # loading will say what is wrong with it
        return fallback
    digest = hashlib.sha256(content).hexdigest()
    if "@" not in folder or folder == manifest.name:
        return BundleFolder(path, manifest.name, "", manifest, digest)
    if alias_of(folder) != manifest.name or not NAME.fullmatch(folder):
        fault = f"its folder must be named {alias_of(manifest.name)}@VERSION, or without @, as its manifest names it so"
        return BundleFolder(path, manifest.name, fault, manifest, digest)
    return BundleFolder(path, folder, "", manifest, digest)


def newest(names: Mapping[str, BundleFolder] | Sequence[str]) -> str:
    """The name with the highest version: compared number by number, words after numbers, no version first."""
    return max(names, key=lambda name: [_rank(part) for part in re.findall(r"\d+|[^\d._-]+", name.partition("@")[2])])


def _rank(part: str) -> tuple[bool, int, str]:
    return (False, int(part), "") if part.isdecimal() else (True, 0, part)
