"""Which runtime and precision a bundle is served with, where the settings leave it open: the faster one, as measured.

Nothing is measured where there is no choice, and a precision that loses accuracy is chosen only where the bundle's
proof says how little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

import structlog

from models.bundle import Bundle
from models.errors import BundleError, TandemError
from models.search import Graphs
from service.bundles.probe import AT_START, Clock, Effort, Timing, measure
from service.engine import Backend
from service.runtimes import open_graphs

AUTO = "auto"
MARGIN = 0.1
"""Share by which a less exact candidate must be faster: noise must not decide which answers users get."""

_log = structlog.get_logger("tandem.loading")
Opener = Callable[[Bundle, str, str, int], Graphs]


@dataclass(frozen=True, slots=True)
class Wish:
    """What the settings ask for.

    Attributes:
        runtime: ``onnx``, ``torchscript``, ``torch`` or ``auto``.
        precision: of ONNX graphs, ``int8``, ``float32`` or ``auto``.
        threads: of one model call.
    """

    runtime: str = "onnx"
    precision: str = AUTO
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Choice:
    """What a bundle is served with.

    Attributes:
        why: one phrase.
        timings: what was measured; empty where there was no choice.
    """

    backend: Backend
    why: str
    timings: Mapping[Backend, Timing] = field(default_factory=dict)


def open_chosen(
    bundle: Bundle,
    wish: Wish,
    opener: Opener = open_graphs,
    effort: Effort = AT_START,
    clock: Clock = time.perf_counter,
) -> tuple[Graphs, Choice]:
    """Open a bundle's graphs on what the settings name, or on the fastest that they allow.

    Args:
        bundle: a loaded bundle.
        wish: what the settings ask for.
        opener: opens the graphs of a runtime and precision, as :func:`service.runtimes.open_graphs` does.
        effort: how long to measure where there is a choice.
        clock: seconds.

    Raises:
        ConfigError: a runtime that is unknown or not installed.
        BundleError: the bundle lacks the graphs, or none of several candidates can be run.
    """
    choices = candidates(bundle, wish)
    if len(choices) == 1:
        only = choices[0]
        graphs = opener(bundle, only.runtime, only.precision, wish.threads)
        return graphs, Choice(only, reason_without_choice(bundle, wish))
    opened: dict[Backend, Graphs] = {}
    timings: dict[Backend, Timing] = {}
    faults: list[str] = []
    for one in choices:
        try:
            graphs = opener(bundle, one.runtime, one.precision, wish.threads)
            timings[one] = measure(bundle, graphs, effort, clock)
        except Exception as error:  # the runtimes' own exceptions share no base; the others may still serve
            known = isinstance(error, TandemError)
            _log.warning("backend_unusable", bundle=bundle.manifest.name, backend=str(one), exc_info=not known)
            faults.append(f"{one}: {error}" if known else f"{one} fails when it is run: {type(error).__name__}")
        else:
            opened[one] = graphs
            _log.info("backend_measured", bundle=bundle.manifest.name, backend=str(one), **_figures(timings[one]))
    if not opened:
        raise BundleError(bundle.path, faults)
    backend, why = prefer(timings)
    return opened[backend], Choice(backend, why, timings)


def candidates(bundle: Bundle, wish: Wish) -> tuple[Backend, ...]:
    """What the settings allow for a bundle, at least one, the most exact first.

    An automatic runtime is ONNX Runtime, and TorchScript where its graphs were built for this bundle. Eager PyTorch
    is the last resort of a bundle without graphs: it has never been the faster one on a processor, and importing it
    takes longer than the rest of the start.
    """
    if wish.runtime not in ("onnx", AUTO):
        return (Backend(wish.runtime, "float32"),)
    if wish.precision != AUTO:
        found = [Backend("onnx", wish.precision)] if wish.runtime == "onnx" or _holds(bundle, wish.precision) else []
    else:
        found = [Backend("onnx", precision) for precision in _automatic(bundle)]
    if wish.runtime == AUTO and wish.precision in (AUTO, "float32") and find_spec("torch") is not None:
        if _traced(bundle):
            found.append(Backend("torchscript", "float32"))
        elif not found:
            found.append(Backend("torch", "float32"))
    # Where there is nothing at all, opening says what is missing and how to build it.
    return tuple(found) or (Backend("onnx", "int8" if wish.precision == AUTO else wish.precision),)


def usable(bundle: Bundle) -> tuple[Backend, ...]:
    """Every runtime and precision that could run a bundle here, whatever the settings allow."""
    found = [Backend("onnx", precision) for precision in bundle.precisions]
    if find_spec("torch") is not None:
        found += [Backend("torchscript", "float32")] if _traced(bundle) else []
        found.append(Backend("torch", "float32"))
    return tuple(found)


def proven(bundle: Bundle, precision: str) -> bool:
    """Whether the bundle's proof shows that ONNX graphs of a precision answer as they should."""
    verdicts = [one for part in ("exact", "quantised") for one in _entries(bundle.manifest.proof.get(part))]
    return any(one.get("runtime") == f"onnx {precision}" and one.get("passed") is True for one in verdicts)


def prefer(timings: Mapping[Backend, Timing]) -> tuple[Backend, str]:
    """The one to serve with, and why: the first, in their order, that is hardly slower than the fastest."""
    fastest = min(timings, key=lambda one: timings[one].cost_ms)
    bound = timings[fastest].cost_ms / (1 - MARGIN)
    chosen = next(one for one in timings if timings[one].cost_ms <= bound)
    others = ", ".join(f"{one} {timings[one].cost_ms:.3g}" for one in timings if one != chosen)
    cost = f"{timings[chosen].cost_ms:.3g} ms a sentence"
    if len(timings) == 1:
        return chosen, f"the only one that can be run: {cost}"
    if chosen == fastest:
        return chosen, f"the fastest: {cost}; {others}"
    return chosen, f"more exact than {fastest}, which is less than {MARGIN:.0%} faster: {cost}; {others}"


def reason_without_choice(bundle: Bundle, wish: Wish) -> str:
    """Why the only candidate is the only one."""
    if AUTO not in (wish.runtime, wish.precision) or wish.runtime in ("torch", "torchscript"):
        return "as the settings say"
    left_out = [precision for precision in bundle.precisions if precision not in _automatic(bundle)]
    if wish.precision == AUTO and left_out:
        return f"the accuracy of {', '.join(left_out)} is not proven"
    return "the only one that the bundle holds"


def _automatic(bundle: Bundle) -> Sequence[str]:
    """The precisions to choose from: float32, and others that are proven; what there is where that leaves none."""
    allowed = [one for one in bundle.precisions if one == "float32" or proven(bundle, one)]
    return sorted(allowed or bundle.precisions, key=lambda one: one != "float32")


def _holds(bundle: Bundle, precision: str) -> bool:
    return precision in bundle.precisions


def _traced(bundle: Bundle) -> bool:
    try:
        bundle.file("torchscript/step.pt")
    except BundleError:
        return False
    return True


def _entries(part: object) -> list[Mapping[str, object]]:
    """The findings of a part of a proof; a manifest may hold anything there."""
    return [one for one in part if isinstance(one, dict)] if isinstance(part, list) else []


def _figures(timing: Timing) -> dict[str, object]:
    batches = {
        f"ms_at_{one.sentences}": {"encode": round(one.encode_ms, 3), "step": round(one.step_ms, 3)}
        for one in timing.batches
    }
    return {"sentence_ms": round(timing.cost_ms, 3), **batches}
