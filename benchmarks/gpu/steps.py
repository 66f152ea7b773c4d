"""A step of the search: captured for every size, and how long it takes, eager and replayed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.gpu.equality import compared
from benchmarks.gpu.lines import Found, Missing
from benchmarks.gpu.search import search, sizes_for, stepping, synchronise
from benchmarks.gpu.work import decoding_system, longest_of, random_sources, search_options
from models.device import CapturedStep, Shape, Sizes, StaticBatch, StaticStep
from models.search import Array, SearchOptions, Sentence

_PASSES = 5
_LENGTH = 32  # of sources and of hypotheses
_BUCKETS = Sizes(sentences=(8, 64, 256, 512), source=(32, 64, 160), target=(32, 64, 161))
_SMALL_BUCKETS = Sizes(sentences=(2, 4), source=(16,), target=(16, 32))


def capture(*, system: str, device: str, small: bool, dtype: str) -> Found:
    """Every size captured; what is replayed is what is computed eagerly."""
    buckets = _SMALL_BUCKETS if small else _BUCKETS
    model = decoding_system(system, small=small).to(device, getattr(torch, dtype))
    before = _memory(device)
    step = CapturedStep(model, beam_size=5, sizes=buckets)
    shapes = list(_shapes(buckets, len(model.config.source_vocabularies)))
    synchronise(device)
    allocated, started = _memory(device), time.perf_counter()
    with torch.inference_mode(), stepping(step):
        for shape in shapes:
            step(shape)
        synchronise(device)
        seconds, memory = time.perf_counter() - started, _memory(device) - allocated
        for shape in shapes:
            step(shape)
    options = search_options(5, 0, buckets.target[0] - 1)
    sources = random_sources(model, 3 * buckets.sentences[0], (3, buckets.source[0]))
    replayed = search(model, sources, options, buckets, step=step)
    eager = search(model, sources, options, buckets, step=StaticStep(model, beam_size=5, sizes=buckets))
    counters = getattr(step, "counters", None)
    counts = {name: getattr(counters, name, 0) for name in ("captures", "replays", "capture_failures")}
    figures = {
        "shapes": len(shapes),
        "seconds": seconds,
        "memory_mib": memory / 2**20,
        "buffers_mib": (allocated - before) / 2**20,
        **counts,
        **compared(replayed, eager),
    }
    same = f"replayed {figures['same']:.1%} the same, scores within {figures['largest_difference']:.1e}"
    head = f"{counts['captures']} of {len(shapes)} sizes captured in {seconds:.1f} s, {figures['memory_mib']:.0f} MiB"
    whole = device == "cpu" or counts["captures"] >= len(shapes)
    return Found(f"{head}; {same}", figures, whole and figures["same"] == 1.0)


def _shapes(sizes: Sizes, sources: int) -> Iterator[Shape]:
    """All of them, the largest first: what the others need has room in what it took."""
    for sentences, source, target in product(
        *(reversed(axis) for axis in (sizes.sentences, sizes.source, sizes.target))
    ):
        yield sizes.shape(sentences, [source] * sources, target)


def speed(*, system: str, device: str, small: bool, dtype: str, sentences: int, beam_size: int, how: str) -> Found:
    """Time of a step with all slots taken, and target symbols a second of a whole batch, from joining to its texts."""
    if how in ("compiled", "triton") and device == "cpu":
        raise Missing("is compiled on a GPU only")
    length, passes = (8, 2) if small else (_LENGTH, _PASSES)
    model = decoding_system(system, small=small).to(device, getattr(torch, dtype))
    options = search_options(beam_size, length, length)
    sources = random_sources(model, sentences, (length, length))
    sizes = sizes_for((sentences,), longest_of(sources), options)
    named: dict[str, Any] = {how: True} if how in ("compiled", "triton") else {}
    step = (StaticStep if how == "eager" else CapturedStep)(model, beam_size=beam_size, sizes=sizes, **named)
    search(model, sources, options, sizes, step=step)
    whole = []
    for _ in range(passes):
        synchronise(device)
        started = time.perf_counter()
        search(model, sources, options, sizes, step=step)
        synchronise(device)
        whole.append(sentences * length / (time.perf_counter() - started))
    shape = _fill(step, sources, options)
    with torch.inference_mode(), stepping(step):
        alone = statistics.median(_timed(step, shape, device) for _ in range(passes))
        launches = count_launches(lambda: step(shape), device)
    rate = statistics.median(whole)
    figures = {"step_us": 1e6 * alone, "tokens_per_s": rate, "launches": launches, "how": how}
    summary = f"{1e6 * alone:,.0f} µs a step, {sentences / alone:,.0f} tokens/s at most, {rate:,.0f} of whole batches"
    return Found(summary if launches is None else f"{summary}, {launches} launches", figures)


def _fill(step: StaticStep, sources: Sequence[tuple[Array, ...]], options: SearchOptions) -> Shape:
    """All slots taken by sentences that have begun, and the size that then is stepped."""
    batch = StaticBatch(step)
    batch.join([Sentence(number, source, options) for number, source in enumerate(sources)])
    for _ in range(2):
        batch.step()
    sizes = step.sizes
    return sizes.shape(len(sources), [longest_of(sources)] * len(sources[0]), sizes.target[-1])


def _timed(step: StaticStep, shape: Shape, device: str) -> float:
    """Seconds of a step, mean of a few whose launches overlap as they do in a batch. Ended sentences cost the same."""
    count = 2 if device == "cpu" else 20
    step(shape)
    synchronise(device)
    started = time.perf_counter()
    for _ in range(count):
        step(shape)
    synchronise(device)
    return (time.perf_counter() - started) / count


class _Counter(TorchDispatchMode):
    """Counts the operators that are called."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += int(not func.is_view)
        return func(*args, **(kwargs or {}))


def count_launches(run: Callable[[], Any], device: str) -> int | None:
    """What the host launches in one call: kernels, copies and graphs; on a CPU the operators that are no views.

    None where the profiler does not work, which needs more of the driver than computing does.
    """
    if device == "cpu":
        counter = _Counter()
        with counter:
            run()
        return counter.calls
    from torch.profiler import ProfilerActivity, profile

    run()
    torch.cuda.synchronize()
    try:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            run()
            torch.cuda.synchronize()
    except RuntimeError:
        torch.cuda.synchronize()  # raises where it is the device that does not work
        return None
    launched = ("cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch")
    names = [str(event.name) for event in profiler.events()]
    return sum(name.startswith(launched) for name in names) or None


def _memory(device: str) -> int:
    return torch.cuda.memory_reserved() if device == "cuda" else 0
