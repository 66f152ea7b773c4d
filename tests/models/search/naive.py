"""The rules of the search once more, as plainly as they can be said, in float64 and for one sentence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tandem.models.search import SearchOptions
from tests.models.search.tables import EOS, Distribution, Prefix, log_softmax

Scored = tuple[Prefix, float]


def enumerate_all(
    distribution: Distribution, sources: tuple[Prefix, ...], tokens: tuple[int, ...], shortest: int, longest: int
) -> Iterator[Scored]:
    """Every sentence over ``tokens`` within the bounds, with its score."""
    for length in range(shortest, longest + 1):
        for sentence in itertools.product(tokens, repeat=length):
            steps = [(sentence[:at], token) for at, token in enumerate((*sentence, EOS))]
            yield sentence, sum(float(log_softmax(distribution(sources, prefix))[token]) for prefix, token in steps)


def naive_beam(
    distribution: Distribution, sources: tuple[Prefix, ...], size: int, options: SearchOptions, source_tokens: int
) -> list[Scored]:
    """Finished hypotheses, best first."""
    shortest, longest = options.bounds(source_tokens)
    if options.max_rounds:
        options = replace(options, max_rounds=max(options.max_rounds, *map(rounds, sources)))
    live: list[Scored] = [((), 0.0)]
    done: list[Scored] = []
    for _ in range(longest + 1):
        found: list[tuple[float, int, int]] = []
        for parent, (prefix, score) in enumerate(live):
            gains = log_softmax(distribution(sources, prefix))
            for token in range(size):
                if allowed(prefix, token, (shortest, longest), options):
                    found.append((-float(np.float32(score + gains[token])), parent, token))
        found = sorted(found)[: 2 * options.beam_size]
        done += [(live[parent][0], -float(s)) for s, parent, token in found[: options.beam_size] if token == EOS]
        going = [(s, parent, token) for s, parent, token in found if token != EOS][: options.beam_size]
        live = [((*live[parent][0], token), -float(s)) for s, parent, token in going]
        if len(done) >= options.beam_size or not live:
            break
    forced = sum(
        float(log_softmax(distribution(sources, options.prefix[:at]))[token]) for at, token in enumerate(options.prefix)
    )
    return sorted(done, key=lambda one: (forced - one[1]) / options.penalty(len(one[0]) + 1))


def allowed(prefix: Prefix, token: int, bounds: tuple[int, int], options: SearchOptions) -> bool:
    """Whether ``token`` may follow ``prefix``."""
    age, (shortest, longest) = len(prefix), bounds
    if age < len(options.prefix):
        return token == options.prefix[age]
    if age == longest:
        return token == EOS
    owed = [one for one in options.required if options.required.count(one) > prefix.count(one)]
    short = sum(max(0, options.required.count(one) - prefix.count(one)) for one in set(options.required))
    if owed and longest - age <= short:
        return token == next(one for one in _still(options.required, prefix))
    if token in options.required:
        return token in owed
    if token in options.suppressed or (token == EOS and (owed or age < shortest)):
        return False
    if options.max_rounds and goes_round((*prefix, token), options.max_rounds + 1):
        return False
    n = options.no_repeat_ngram_size
    grams = {prefix[at : at + n] for at in range(len(prefix) - n + 1)} if n else set()
    return (*prefix, token)[-n:] not in grams if n and len(prefix) + 1 >= n else True


def goes_round(tokens: Prefix, times: int) -> bool:
    """Whether they end in so many rounds of a stretch of up to twelve tokens."""
    periods = range(1, min(12, len(tokens) // times) + 1)
    return any(tokens[-period * times :] == tokens[-period:] * times for period in periods)


def rounds(tokens: Prefix) -> int:
    """How often a stretch of up to twelve tokens follows itself at most, itself counted."""
    ends, times = range(1, len(tokens) + 1), range(1, len(tokens) + 1)
    return max((n for n in times if any(goes_round(tokens[:end], n) for end in ends)), default=0)


def _still(required: Prefix, prefix: Prefix) -> Iterator[int]:
    """The required tokens in order, each less as often as the prefix has it."""
    for at, token in enumerate(required):
        if required[: at + 1].count(token) > prefix.count(token):
            yield token
