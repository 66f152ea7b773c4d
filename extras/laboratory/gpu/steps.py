"""A step of the search: captured for every size and rule, and how long it takes, eager and replayed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.capture import ENCODED, CapturedStep
from tandem.extras.gpu.sizes import Shape, Sizes
from tandem.extras.gpu.step import StaticStep
from tandem.extras.laboratory.gpu.equality import compared
from tandem.extras.laboratory.gpu.lines import Found
from tandem.extras.laboratory.gpu.search import search, sizes_for, synchronise
from tandem.extras.laboratory.gpu.subjects import (
    REPETITION,
    RULES,
    decoding_system,
    longest_of,
    random_sources,
    search_options,
)
from tandem.models.search import Array, Hypothesis, SearchOptions, Sentence
from tandem.models.steps.torch_graphs import AnyModel

_PASSES = 5
_LENGTH = 32  # of sources and of hypotheses
_BUCKETS = Sizes(sentences=(8, 64, 256, 512), source=(32, 64, 160), target=(32, 64, 161))
_SMALL_BUCKETS = Sizes(sentences=(2, 4), source=(16,), target=(16, 32))


def capture(*, system: str, device: str, small: bool, dtype: str) -> Found:
    """Every size captured, of steps with and without rules and of encodings; what is replayed is computed eagerly too.

    All sources of a model have one length: those of every length beside every other are more than are ever kept.
    """
    buckets = _SMALL_BUCKETS if small else _BUCKETS
    model = decoding_system(system, small=small).to(device, getattr(torch, dtype))
    shapes = list(_shapes(buckets, len(model.config.source_vocabularies)))
    joining = [
        random_sources(model, count, (source, source))
        for count, source in product(reversed(ENCODED), reversed(buckets.source))
    ]
    before = _memory(device)
    step = CapturedStep(model, beam_size=5, sizes=buckets, most=len(shapes))
    synchronise(device)
    allocated, started = _memory(device), time.perf_counter()
    _run(step, joining, shapes)
    synchronise(device)
    seconds, memory = time.perf_counter() - started, _memory(device) - allocated
    _run(step, joining, shapes)
    eager = StaticStep(model, beam_size=5, sizes=buckets)
    agreement = compared(*(_hypotheses(model, buckets, each) for each in (step, eager)))
    (steps, encodings), counters = map(len, step.captures), step.counters
    failed = counters.capture_failures + counters.out_of_memory
    figures = {
        "step_sizes": len(shapes),
        "encode_sizes": len(joining),
        "step_graphs": steps,
        "encode_graphs": encodings,
        "failed": failed,
        "replays": counters.replays,
        "seconds": seconds,
        "memory_mib": memory / 2**20,
        "buffers_mib": (allocated - before) / 2**20,
        **agreement,
    }
    whole = failed == 0 and (device == "cpu" or (steps, encodings) == (len(shapes), len(joining)))
    graphs = f"{steps} step graphs of {len(shapes)} sizes and rules, {encodings} encode graphs of {len(joining)}"
    same = f"replayed {figures['same']:.1%} the same, scores within {figures['largest_difference']:.1e}"
    summary = f"{graphs}, {failed} failed, in {seconds:.1f} s, {figures['memory_mib']:.0f} MiB; {same}"
    return Found(summary, figures, whole and figures["same"] == 1.0)


@torch.inference_mode()
def _run(step: CapturedStep, joining: Sequence[Sequence[tuple[Array, ...]]], shapes: Sequence[Shape]) -> None:
    with step.streams.encoding():
        for sources in joining:
            step.encode(sources)
    with step.streams.stepping():
        for shape in shapes:
            step(shape)


def _shapes(sizes: Sizes, sources: int) -> Iterator[Shape]:
    """All of them, the largest first: what the others need has room in what it took."""
    axes = product(*(reversed(axis) for axis in (sizes.sentences, sizes.source, sizes.target)))
    for (sentences, source, target), repeats, required in product(axes, (True, False), (True, False)):
        yield sizes.shape(sentences, [source] * sources, target, repeats=repeats, required=required)


def _hypotheses(model: AnyModel, buckets: Sizes, step: StaticStep) -> list[Hypothesis]:
    """What a step finds with rules of every kind.

    As many sentences as are encoded together, one of them as long as its bucket: eager or not, they are encoded alike.
    """
    count, longest = min(ENCODED[-1], buckets.sentences[-1]), buckets.source[0]
    sources = random_sources(model, count - 1, (3, longest)) + random_sources(model, 1, (longest, longest))
    every = [search_options(5, 0, buckets.target[0] - 1, **rules) for rules in RULES]
    return [best for options in every for best in search(model, sources, options, buckets, step=step)]


def speed(
    *, system: str, device: str, small: bool, dtype: str, sentences: int, beam_size: int, how: str, rules: bool
) -> Found:
    """Time of a step with all slots taken, and target symbols a second of a whole batch, from joining to its texts.

    Without rules, or with those that shipped bundles have.
    """
    length, passes = (8, 2) if small else (_LENGTH, _PASSES)
    model = decoding_system(system, small=small).to(device, getattr(torch, dtype))
    kept = REPETITION if rules else {}
    options = search_options(beam_size, length, length, **kept)
    sources = random_sources(model, sentences, (length, length))
    sizes = sizes_for((sentences,), longest_of(sources), options)
    step = (StaticStep if how == "eager" else CapturedStep)(model, beam_size=beam_size, sizes=sizes)
    search(model, sources, options, sizes, step=step)
    whole = []
    for _ in range(passes):
        synchronise(device)
        started = time.perf_counter()
        search(model, sources, options, sizes, step=step)
        synchronise(device)
        whole.append(sentences * length / (time.perf_counter() - started))
    shape = _fill(step, sources, options)
    with torch.inference_mode(), step.streams.stepping():
        alone = statistics.median(_timed(step, shape, device) for _ in range(passes))
        launches = count_launches(lambda: step(shape), device)
    rate = statistics.median(whole)
    figures = {"step_us": 1e6 * alone, "tokens_per_s": rate, "launches": launches, "how": how, "rules": kept}
    said = ", ".join(f"{name} {value}" for name, value in kept.items()) or "no rules"
    head = f"{said}: {1e6 * alone:,.0f} µs a step"
    summary = f"{head}, {sentences / alone:,.0f} tokens/s at most, {rate:,.0f} of whole batches"
    return Found(summary if launches is None else f"{summary}, {launches} launches", figures)


def _fill(step: StaticStep, sources: Sequence[tuple[Array, ...]], options: SearchOptions) -> Shape:
    """All slots taken by sentences that have begun, and the size that then is stepped."""
    batch = StaticBatch(step)
    batch.join([Sentence(number, source, options) for number, source in enumerate(sources)])
    for _ in range(2):
        batch.step()
    sizes = step.sizes
    lengths, repeats = [longest_of(sources)] * len(sources[0]), bool(options.no_repeat_ngram_size)
    return sizes.shape(len(sources), lengths, sizes.target[-1], repeats=repeats)


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
