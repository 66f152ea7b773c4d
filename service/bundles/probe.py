"""How fast a bundle's graphs are on this machine: encoding, and the steps of a beam search, on one made-up sentence.

The sentence's length and the forced length of its hypotheses are fixed, so the figures do not depend on the weights.
What is timed is what serving does at every step: the search's own bookkeeping is part of a step.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.bundle import Bundle
from models.search import Array, DecodeBatch, Graphs, SearchOptions, Sentence
from models.search.graphs import source_specs

TOKENS = 23  # of the sentence, and of each hypothesis; less where the bundle's limits are lower
BEAM_SIZE = 5
_RESERVED = 4  # padding, unknown, begin, end: ids that no text has
_LEAST = 3  # repetitions that a median needs
_SHORTEST = 4  # tokens of a hypothesis: the first two steps warm up
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure each batch size.

    Attributes:
        batches: sentences decoded together, one size after another.
        repetitions: of an encoding and of a step, at most.
        seconds: after which nothing more is repeated, once there are enough for a median.
    """

    batches: tuple[int, ...] = (1, 32)
    repetitions: int = 5
    seconds: float = 0.06


AT_START = Effort()
THOROUGH = Effort(repetitions=15, seconds=0.6)


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """Medians of one batch size.

    Attributes:
        sentences: decoded together.
        encode_ms: milliseconds to encode all of them.
        step_ms: milliseconds of one step of all of them, the search's bookkeeping included.
        repetitions: steps that were timed.
    """

    sentences: int
    encode_ms: float
    step_ms: float
    repetitions: int

    @property
    def sentence_ms(self) -> float:
        """Milliseconds that a sentence of ``TOKENS`` tokens costs in such a batch."""
        return (self.encode_ms + TOKENS * self.step_ms) / self.sentences


@dataclass(frozen=True, slots=True)
class Timing:
    """What one set of graphs needs, by batch size."""

    batches: tuple[BatchTiming, ...]

    @property
    def cost_ms(self) -> float:
        """One figure to compare by: the geometric mean over the batch sizes of what a sentence costs.

        A factor at one size counts as much as the same factor at another.
        """
        return math.exp(statistics.fmean(math.log(max(one.sentence_ms, 1e-9)) for one in self.batches))


def measure(bundle: Bundle, graphs: Graphs, effort: Effort = AT_START, clock: Clock = time.perf_counter) -> Timing:
    """Time a bundle's graphs.

    Args:
        bundle: says how large vocabularies are, and how long texts may be.
        graphs: the bundle's graphs in some runtime.
        effort: how long to measure.
        clock: seconds.

    Raises:
        TandemError: the graphs cannot decode.
    """
    sources = made_up_sources(bundle, graphs)
    length = max(_SHORTEST, min(TOKENS, bundle.manifest.limits.max_target_tokens))
    return Timing(tuple(_measure_batch(graphs, sources, size, length, effort, clock) for size in effort.batches))


def made_up_sources(bundle: Bundle, graphs: Graphs) -> tuple[Array, ...]:
    """One sentence for each source of a model, always the same: token ids and EOS (S), or features (S x D)."""
    random = np.random.default_rng(0)
    length = max(1, min(TOKENS, bundle.manifest.limits.max_source_tokens))
    made: list[Array] = []
    for spec, vocabulary in zip(source_specs(graphs.specs), bundle.sources, strict=True):
        if vocabulary is None:
            made.append(random.standard_normal((length, *spec.fixed)).astype(spec.dtype))
        else:
            ids = random.integers(min(_RESERVED, vocabulary.size - 1), vocabulary.size, length)
            made.append(np.append(ids, vocabulary.eos).astype(np.int64))
    return tuple(made)


def _measure_batch(
    graphs: Graphs, sources: tuple[Array, ...], size: int, length: int, effort: Effort, clock: Clock
) -> BatchTiming:
    # The forced length keeps every sentence in the batch for as long as it is timed.
    options = SearchOptions(beam_size=BEAM_SIZE, min_length=length, max_length=length)
    batch = DecodeBatch(graphs, beam_size=BEAM_SIZE)
    batch.join([Sentence(number, sources, options) for number in range(size)])
    encodings = _repeat(_encoding(graphs, sources, size), effort.repetitions, effort.seconds, clock)
    batch.step()  # the first with all rows of the beam
    steps = _repeat(batch.step, min(effort.repetitions, length - 2), effort.seconds, clock)
    encode_ms, step_ms = (1000 * statistics.median(spent) for spent in (encodings, steps))
    return BatchTiming(size, encode_ms, step_ms, len(steps))


def _encoding(graphs: Graphs, sources: tuple[Array, ...], size: int) -> Callable[[], object]:
    inputs: dict[str, Array] = {}
    for spec, source in zip(source_specs(graphs.specs), sources, strict=True):
        inputs[spec.name] = np.repeat(source[None], size, axis=0)
        inputs[f"{spec.name}.length"] = np.full(size, len(source), np.int64)
    return lambda: graphs.run("encode", inputs)


def _repeat(run: Callable[[], object], most: int, seconds: float, clock: Clock) -> list[float]:
    """Seconds of each run: ``most`` of them, fewer where they take long."""
    spent: list[float] = []
    while len(spent) < min(_LEAST, most) or (len(spent) < most and sum(spent) < seconds):
        started = clock()
        run()
        spent.append(clock() - started)
    return spent
