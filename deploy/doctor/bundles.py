"""The bundles that would be served: sound or not, what graphs they hold, and how fast each of these is here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from models.bundle import Bundle
from models.errors import BundleError, ConfigError, TandemError
from service.bundles.loading import Found, is_empty, list_bundles, unservable
from service.bundles.probe import THOROUGH, BatchTiming, Effort, Timing, measure
from service.engine import Backend
from service.runtimes import open_graphs
from service.runtimes.choice import Opener, Wish, candidates, prefer, proven, reason_without_choice, usable


@dataclass(frozen=True, slots=True)
class Measurement:
    """One runtime and precision: its timings, or why it cannot be used (then there are none)."""

    runtime: str
    precision: str
    batches: tuple[BatchTiming, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found of one bundle.

    Attributes:
        path, name: its folder, and what its manifest calls it ("" where that cannot be read).
        faults: why it cannot be served; empty where it can.
        task, languages, architecture: from the manifest.
        precisions: of its ONNX graphs.
        proven: those of them whose proof passed.
        graph_bytes: of the graphs, by precision.
        bytes: of everything in the folder.
        measurements: every runtime and precision that could run it here; empty where nothing was measured.
        served: what `tandem serve` would run it on; None where that cannot be said.
        why: the reason, one phrase.
    """

    path: str
    name: str = ""
    faults: tuple[str, ...] = ()
    task: str = ""
    languages: str = ""
    architecture: str = ""
    precisions: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()
    graph_bytes: dict[str, int] | None = None
    bytes: int = 0
    measurements: tuple[Measurement, ...] = ()
    served: Backend | None = None
    why: str = ""


def examine_all(
    paths: Sequence[Path], wish: Wish, *, effort: Effort | None = THOROUGH, opener: Opener = open_graphs
) -> tuple[list[Examined], list[str]]:
    """Every bundle among and below ``paths``, and what is wrong with the paths themselves.

    Args:
        paths: bundle folders, or folders of bundles.
        wish: what the settings say about runtime, precision and threads.
        effort: how long to measure; None = not at all.
        opener: opens graphs.
    """
    folders: list[Found] = []
    faults: list[str] = []
    for path in [path for path in paths if not is_empty(path)] or paths:  # as serving does with all of them
        try:
            folders += list_bundles([path])
        except ConfigError as error:
            faults.append(str(error))
    examined: list[Examined] = []
    for found in {found.path: found for found in folders}.values():
        one = examine(found.path, wish, effort=effort, opener=opener)
        one = replace(one, name=found.name) if one.name else one  # versions of one model differ by their folders' names
        twins = [other.path for other in examined if one.name and other.name == one.name]
        if twins:
            one = replace(one, faults=(*one.faults, f"{twins[0]} is named {one.name!r} already; names must differ"))
        examined.append(one)
    return examined, faults


def examine(path: Path, wish: Wish, *, effort: Effort | None = THOROUGH, opener: Opener = open_graphs) -> Examined:
    """Look at one bundle, and measure everything that could run it here."""
    try:
        bundle = Bundle.load(path)
    except BundleError as error:
        return Examined(str(path), faults=error.faults)
    manifest = bundle.manifest
    fault = unservable(bundle)
    found = Examined(
        path=str(path),
        name=manifest.name,
        faults=(fault,) if fault else (),
        task=manifest.task,
        languages=f"{'+'.join(manifest.source_languages)}-{manifest.target_language}",
        architecture=manifest.architecture,
        precisions=bundle.precisions,
        proven=tuple(precision for precision in bundle.precisions if proven(bundle, precision)),
        graph_bytes={precision: _size(path / "onnx" / precision) for precision in bundle.precisions},
        bytes=_size(path),
    )
    return _chosen(bundle, found, wish, effort, opener)


def _chosen(bundle: Bundle, found: Examined, wish: Wish, effort: Effort | None, opener: Opener) -> Examined:
    """With measurements, and with what would be served. Without an effort, that is only opened to see that it can."""
    allowed = candidates(bundle, wish)
    timings: dict[Backend, Timing] = {}
    measurements: list[Measurement] = []
    for one in dict.fromkeys((*usable(bundle), *allowed)):
        if effort is None and one not in allowed:
            continue
        try:
            graphs = opener(bundle, one.runtime, one.precision, wish.threads)
            timing = measure(bundle, graphs, effort) if effort else None
        except Exception as error:  # the runtimes' own exceptions share no base, and a report must go on
            told = str(error) if isinstance(error, TandemError) else f"{type(error).__name__}: {error}"
            measurements.append(Measurement(one.runtime, one.precision, error=told))
        else:
            timings[one] = timing or Timing(())
            measurements.append(Measurement(one.runtime, one.precision, timing.batches if timing else ()))
    able = {one: timings[one] for one in allowed if one in timings}
    found = replace(found, measurements=tuple(measurements))
    if not able:
        errors = (m.error for m in measurements if Backend(m.runtime, m.precision) in allowed)
        return replace(found, faults=(*found.faults, *errors))
    if len(allowed) == 1:
        return replace(found, served=allowed[0], why=reason_without_choice(bundle, wish))
    if effort is None:
        return replace(found, why="measured when the service starts")
    served, why = prefer(able)
    return replace(found, served=served, why=why)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
