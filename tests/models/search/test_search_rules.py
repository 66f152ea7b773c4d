"""The exact rules of the search: against enumeration, against a naive restatement, and one scripted table each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tandem.models.errors import OptionError
from tandem.models.search import DecodeBatch, Hypothesis, Sampling, SearchOptions, Sentence, translate_batch
from tandem.models.search.beam import Live
from tandem.models.search.hypotheses import Admitted
from tandem.models.search.repetition import repeating
from tandem.models.search.rounds import most_rounds
from tests.models.search.naive import allowed, enumerate_all, naive_beam, rounds
from tests.models.search.tables import EOS, Distribution, TableGraphs, hashed, log_softmax, run_out, scripted, source

RESERVED = (0, 1, 2)  # pad, unk and bos: kept out so that enumerations stay small


def decode(distribution: Distribution, size: int, options: SearchOptions, state: str = "pool") -> list[Hypothesis]:
    return translate_batch(TableGraphs(distribution, size, state), [source(4, 5)], options)[0]


def tokens(hypotheses: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [one.tokens for one in hypotheses]


@pytest.mark.parametrize("state", ["pool", "rows"])
@pytest.mark.parametrize(("form", "power"), [("none", 1.0), ("power", 1.0), ("power", 0.4), ("gnmt", 0.8)])
@pytest.mark.parametrize("seed", range(4))
def test_exhaustive_search_with_a_wide_beam_is_enumeration(state: str, form: str, power: float, seed: int) -> None:
    options = SearchOptions(
        beam_size=70, n_best=15, length_penalty=power, length_penalty_form=form, max_length=4, suppressed=RESERVED,
        exhaustive=True,
    )  # fmt: skip
    table = hashed(7, seed)
    every = list(enumerate_all(table, ((4, 5),), (4, 5, 6), 0, 4))
    wanted = sorted(every, key=lambda one: -one[1] / options.penalty(len(one[0]) + 1))[:15]
    found = decode(table, 7, options, state)
    assert tokens(found) == [one for one, _ in wanted]
    assert [one.score for one in found] == pytest.approx([score for _, score in wanted], abs=1e-5)


OPTIONS = st.builds(
    lambda beam_size, shortest, extra, ngram, rounds, power, prefix, required: SearchOptions(
        beam_size=beam_size,
        n_best=beam_size,
        length_penalty=power,
        min_length=shortest,
        max_length=shortest + extra + 1,
        no_repeat_ngram_size=ngram,
        max_rounds=rounds,
        prefix=tuple(prefix),
        required=tuple(required),
        suppressed=(*RESERVED, 7),
    ),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    st.lists(st.integers(4, 7), max_size=2),
    st.lists(st.integers(5, 7), max_size=3),
)


@given(seed=st.integers(0, 10**6), options=OPTIONS, state=st.sampled_from(["pool", "rows"]))
def test_search_follows_its_rules(seed: int, options: SearchOptions, state: str) -> None:
    table = hashed(8, seed)
    wanted = naive_beam(table, ((4, 5),), 8, options, 2)[: options.beam_size]
    found = decode(table, 8, options, state)
    if wanted:
        assert tokens(found) == [one for one, _ in wanted]
        assert [one.score for one in found] == pytest.approx([score for _, score in wanted], abs=1e-4)
    else:
        assert not any(one.finished for one in found)


def test_eos_counts_only_among_the_first_k() -> None:
    # At the first step EOS is third of four candidates for K = 2: it must not end a hypothesis.
    table = scripted(6, {(): {4: 0.5, 5: 0.3, EOS: 0.2}, (4,): {EOS: 1.0}, (5,): {EOS: 1.0}})
    found = decode(table, 6, SearchOptions(beam_size=2, n_best=2, length_penalty_form="none"))
    assert tokens(found) == [(4,), (5,)]
    # Second of four: it ends one.
    table = scripted(6, {(): {4: 0.5, 5: 0.2, EOS: 0.3}, (4,): {EOS: 1.0}, (5,): {EOS: 1.0}})
    found = decode(table, 6, SearchOptions(beam_size=2, n_best=2, length_penalty_form="none"))
    assert tokens(found) == [(4,), ()]


def test_a_sentence_ends_when_k_hypotheses_are_finished() -> None:
    # (4,) and () are finished after two steps; (5, 4) would score better than () but comes too late.
    table = scripted(
        6,
        {(): {4: 0.4, EOS: 0.35, 5: 0.25}, (4,): {EOS: 0.9, 5: 0.1}, (5,): {4: 1.0}},
    )
    graphs = TableGraphs(table, 6)
    options = SearchOptions(beam_size=2, n_best=2, length_penalty=3.0)
    assert tokens(translate_batch(graphs, [source(4)], options)[0]) == [(4,), ()]
    assert [name for name, _ in graphs.calls] == ["encode", "step", "step"]
    exhaustive = SearchOptions(beam_size=2, n_best=2, length_penalty=3.0, max_length=3, exhaustive=True)
    assert (5, 4) in tokens(decode(table, 6, exhaustive))


def test_equal_scores_are_ordered_by_parent_then_token() -> None:
    half = {4: 0.25, 5: 0.25, 6: 0.25, 7: 0.25}
    after: dict[tuple[int, ...], dict[int, float]] = {(a, b): {EOS: 1.0} for a in half for b in half}
    table = scripted(8, {(): half, **{(a,): half for a in half}, **after})
    found = decode(table, 8, SearchOptions(beam_size=3, n_best=3))
    assert tokens(found) == [(4, 4), (4, 5), (4, 6)]


def test_first_step_runs_one_row_and_the_beam_fills_with_different_tokens() -> None:
    graphs = TableGraphs(hashed(9, 1), 9)
    batch = DecodeBatch(graphs, beam_size=4)
    batch.join(
        [Sentence("a", source(4), SearchOptions(beam_size=4)), Sentence("b", source(5), SearchOptions(beam_size=4))]
    )
    first = graphs.calls[1][1]
    assert first["token"].tolist() == [2, 2] and first["parent"].tolist() == [0, 1]
    assert first["position"].tolist() == [0, 0] and int(first["count"]) == 8
    batch.step()
    second = graphs.calls[2][1]
    assert len(second["token"]) == 8
    assert len(set(second["token"][:4].tolist())) == 4


def test_fewer_than_k_hypotheses_leave_dead_rows() -> None:
    table = scripted(6, {(): {4: 1.0}, (4,): {5: 1.0}, (4, 5): {EOS: 1.0}})
    graphs = TableGraphs(table, 6)
    options = SearchOptions(beam_size=3, suppressed=(0, 1, 2, 5), prefix=(4, 5))
    batch = DecodeBatch(graphs, beam_size=3)
    batch.join([Sentence(0, source(4), options)])
    batch.step()
    assert np.isfinite(graphs.calls[-1][1]["score"]).tolist() == [True, False, False]
    assert batch.counters.dead_rows == 2


@pytest.mark.parametrize(
    ("form", "power", "divisor"),
    [("power", 0.5, 3**0.5), ("gnmt", 2.0, (8 / 6) ** 2), ("none", 1.0, 1.0), ("power", 0.0, 1.0)],
)
def test_length_penalties_count_eos_and_a_prefix_is_certain(form: str, power: float, divisor: float) -> None:
    table = scripted(6, {(): {4: 0.2, 5: 0.8}, (4,): {4: 0.25, 5: 0.75}, (4, 5): {EOS: 0.6, 4: 0.4}})
    options = SearchOptions(beam_size=1, length_penalty=power, length_penalty_form=form, prefix=(4,))
    (found,) = decode(table, 6, options)
    assert found.score == pytest.approx(math.log(0.2 * 0.75 * 0.6), abs=1e-5)
    assert found.normalised == pytest.approx(math.log(0.75 * 0.6) / divisor, abs=1e-5)


def test_a_prefix_that_is_unlikely_favours_no_long_hypothesis() -> None:
    table = scripted(6, {(): {4: 0.001, 5: 0.999}, (4,): {EOS: 0.5, 5: 0.5}, (4, 5): {EOS: 0.4, 4: 0.6}})
    found = decode(table, 6, SearchOptions(beam_size=2, n_best=2, max_length=2, prefix=(4,)))
    assert tokens(found) == [(4,), (4, 5)]  # log 0.5 / 2 and log 0.2 / 3; with log 0.001 the second one


def test_token_scores_are_the_steps_of_the_score() -> None:
    table = hashed(8, 5)
    (found,) = decode(table, 8, SearchOptions(beam_size=3, max_length=6))
    wanted = [
        float(log_softmax(table(((4, 5),), found.tokens[:at]))[token]) for at, token in enumerate((*found.tokens, EOS))
    ]
    assert found.token_scores == pytest.approx(wanted, abs=1e-5)
    assert math.fsum(found.token_scores) == pytest.approx(found.score)


@pytest.mark.parametrize("state", ["pool", "rows"])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_length_bounds(state: str, beam_size: int) -> None:
    never = {prefix: {4: 0.6, 5: 0.4} for n in range(40) for prefix in [(4,) * n]}

    def table(_: object, prefix: tuple[int, ...]) -> Sequence[float]:
        return scripted(6, {prefix: never[()]})((), prefix) if prefix else scripted(6, {(): never[()]})((), ())

    found = decode(table, 6, SearchOptions(beam_size=beam_size, max_length=20), state)
    assert len(found[0].tokens) == 20 and found[0].finished

    def at_once(_: object, prefix: tuple[int, ...]) -> Sequence[float]:
        return scripted(6, {prefix: {EOS: 0.98, 4: 0.01, 5: 0.01}})((), prefix)

    assert tokens(decode(at_once, 6, SearchOptions(beam_size=beam_size, length_penalty_form="none"), state)) == [()]
    options = SearchOptions(beam_size=beam_size, min_length=7, length_penalty_form="none")
    assert len(decode(at_once, 6, options, state)[0].tokens) == 7


def test_ratios_are_to_the_source_without_eos() -> None:
    assert SearchOptions(max_length_ratio=1.5, max_length=100).bounds(10) == (0, 25)
    assert SearchOptions(max_length_ratio=1.5, max_length=20).bounds(10) == (0, 20)
    assert SearchOptions(min_length_ratio=0.25, max_length=20).bounds(10) == (3, 20)
    assert SearchOptions(min_length_ratio=9.0, max_length=20).bounds(10) == (20, 20)
    assert SearchOptions(max_length_ratio=0.0, prefix=(4,) * 12).bounds(1) == (0, 12)
    (found,) = decode(
        hashed(6, 1), 6, SearchOptions(beam_size=1, max_length_ratio=0.5, suppressed=(0, 1, 2), min_length=30)
    )
    assert len(found.tokens) == 11  # two source tokens: 0.5 * 2 + 10


LOOPING = st.builds(
    lambda beam_size, longest, rounds: SearchOptions(
        beam_size=beam_size,
        n_best=beam_size,
        min_length=longest - 1,
        max_length=longest,
        max_rounds=rounds,
        suppressed=RESERVED,
    ),
    st.integers(1, 3),
    st.integers(4, 30),
    st.integers(1, 4),
)


@given(
    seed=st.integers(0, 10**6),
    options=LOOPING,
    period=st.integers(1, 13),
    sources=st.lists(st.integers(4, 5), min_size=1, max_size=9).map(tuple),
)
def test_rounds_are_bounded(seed: int, options: SearchOptions, period: int, sources: tuple[int, ...]) -> None:
    """By the option, or by the source's; the model would say the same thirteen tokens or fewer for ever."""
    draw = np.random.default_rng(seed)
    stretch = draw.integers(4, 9, period)

    def loop(_: object, prefix: tuple[int, ...]) -> Sequence[float]:
        logits = np.random.default_rng([seed, len(prefix)]).normal(size=9)
        logits[stretch[len(prefix) % period]] += 6
        return tuple(logits.tolist())

    found = translate_batch(TableGraphs(loop, 9), [source(*sources)], options)[0]
    wanted = naive_beam(loop, (sources,), 9, options, len(sources))[: options.beam_size]
    if wanted:
        assert tokens(found) == [one for one, _ in wanted]
    allowed = max(options.max_rounds, rounds(sources))
    assert all(rounds(one.tokens) <= allowed for one in found)


@given(
    seed=st.integers(0, 10**6),
    kinds=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=4),
    rows=st.integers(1, 3),
    alphabet=st.integers(1, 4),
)
def test_every_token_that_would_repeat_is_forbidden_and_no_other(
    seed: int, kinds: list[tuple[int, int]], rows: int, alphabet: int
) -> None:
    draw = np.random.default_rng(seed)
    live = grown(draw.integers(4, 4 + alphabet, (len(kinds), rows, 40)), draw.integers(0, 40, len(kinds)))
    bans = repeating([repetitive(size, most) for size, most in kinds], live)
    found = set(zip(*(axis.tolist() for axis in bans), strict=True))
    wanted = set()
    for place, (size, most) in enumerate(kinds):
        options = SearchOptions(no_repeat_ngram_size=size, max_rounds=most)
        for row, tokens in enumerate(live.tokens_BKL[place, :, : live.age_B[place]].tolist()):
            possible = range(4, 4 + alphabet)
            wanted |= {(place, row, t) for t in possible if not allowed(tuple(tokens), t, (0, 99), options)}
    assert found == wanted


def test_where_nothing_repeats_nothing_is_forbidden() -> None:
    live = grown(np.arange(4, 4 + 2 * 3 * 40).reshape(2, 3, 40), np.array([20, 39]))
    assert not len(repeating([repetitive(3, 2), repetitive(0, 2)], live).token_N)


def repetitive(size: int, most: int) -> Admitted:
    options = SearchOptions(no_repeat_ngram_size=size, max_rounds=most)
    return Admitted.of(Sentence("a", (np.array([EOS]),), options), vocabulary_size=300, eos=EOS)


def grown(tokens_BKL: NDArray[np.int64], age_B: NDArray[np.int64]) -> Live:
    """Hypotheses of those ages; what stands behind them is not theirs."""
    sentences, rows, _ = tokens_BKL.shape
    last_BK = tokens_BKL[np.arange(sentences), :, np.maximum(age_B - 1, 0)]
    score_BK, parent_BK = np.zeros((sentences, rows), np.float32), np.zeros((sentences, rows), np.int64)
    return Live(tokens_BKL, np.zeros(tokens_BKL.shape, np.float32), score_BK, last_BK, parent_BK, age_B)


@pytest.mark.parametrize("times", [1, 2, 3, 7])
@pytest.mark.parametrize("period", [1, 2, 12])
def test_rounds_are_counted(times: int, period: int) -> None:
    sequence = (9, *range(20, 20 + period), *[*range(period)] * times, 99)
    assert most_rounds(sequence) == rounds(sequence) == times


def test_a_long_stretch_and_no_token_have_no_rounds() -> None:
    assert most_rounds([*range(13)] * 3) == 1
    assert most_rounds([]) == 0


def test_a_prefix_is_forced_even_where_it_repeats_or_is_suppressed() -> None:
    options = SearchOptions(
        beam_size=2, prefix=(5, 5, 5), suppressed=(5, *RESERVED), no_repeat_ngram_size=1, min_length=4, max_length=6
    )
    found = decode(hashed(7, 2), 7, options)
    assert found[0].tokens[:3] == (5, 5, 5)
    assert not set(found[0].tokens[3:]) & {5, *RESERVED}


def test_where_nothing_may_follow_the_hypothesis_is_unfinished() -> None:
    options = SearchOptions(
        beam_size=2, n_best=2, suppressed=RESERVED, no_repeat_ngram_size=1, min_length=5, max_length=9
    )
    found = decode(hashed(6, 2), 6, options)
    assert sorted(tokens(found)) == [(4, 5), (5, 4)]
    assert not any(one.finished for one in found)
    assert len(found[0].token_scores) == 2


def test_n_best_are_the_best_first_and_different() -> None:
    table = hashed(8, 11)
    found = decode(table, 8, SearchOptions(beam_size=4, n_best=4, max_length=5))
    assert len(set(tokens(found))) == 4
    assert [one.normalised for one in found] == sorted((one.normalised for one in found), reverse=True)
    assert decode(table, 8, SearchOptions(beam_size=4, n_best=1, max_length=5)) == found[:1]


def test_a_vocabulary_smaller_than_the_beam() -> None:
    table = hashed(5, 1)
    found = decode(table, 5, SearchOptions(beam_size=8, n_best=8, max_length=3))
    assert found and all(one.finished for one in found)


def test_coverage_reranks_what_was_finished() -> None:
    table = scripted(7, {(): {4: 0.6, 5: 0.4}, (4,): {EOS: 1.0}, (5,): {6: 1.0}, (5, 6): {EOS: 1.0}})

    def attention(steps: int, length: int) -> np.ndarray:
        # Each target step looks at one source token, the last one at the end: short hypotheses leave tokens unseen.
        weights = np.full((steps, length), 0.01, np.float32)
        weights[np.arange(steps), np.minimum(np.arange(steps), length - 1)] = 0.9
        return weights

    graphs = TableGraphs(table, 7, attention=attention)
    plain = SearchOptions(beam_size=2, n_best=2, length_penalty_form="none")
    assert tokens(translate_batch(graphs, [source(4, 5)], plain)[0]) == [(4,), (5, 6)]
    covered = SearchOptions(beam_size=2, n_best=2, length_penalty_form="none", coverage_penalty=1.0)
    found = translate_batch(graphs, [source(4, 5), source(4, 5, 6, 4)], covered)
    assert tokens(found[0]) == [(5, 6), (4,)]
    received = np.clip(attention(3, 3)[:2].sum(axis=0), 1e-6, 1.0)  # (4,) has two steps
    wanted = found[0][1].score + np.log(received).sum()
    assert found[0][1].normalised == pytest.approx(wanted, abs=1e-5)


HELD = st.lists(st.integers(4, 7), max_size=5).map(tuple)


@given(
    seed=st.integers(0, 10**6),
    required=HELD,
    state=st.sampled_from(["pool", "rows"]),
    beam_size=st.integers(1, 4),
    longest=st.integers(1, 9),
    sampled=st.booleans(),
)
def test_required_tokens_stand_as_often_as_they_must(
    seed: int, required: tuple[int, ...], state: str, beam_size: int, longest: int, sampled: bool
) -> None:
    """And what is suppressed does not: here it is all that may be required. A hypothesis ends at its longest anyway."""
    options = SearchOptions(
        beam_size=beam_size, n_best=beam_size, max_length=longest, required=required, suppressed=(0, 1, 2, 4, 5, 6, 7),
        no_repeat_ngram_size=2, sampling=Sampling(seed=seed) if sampled else None,
    )  # fmt: skip
    graphs = TableGraphs(hashed(12, seed), 12, state)
    batch = DecodeBatch(graphs, beam_size=beam_size)
    batch.join([Sentence("a", source(4, 5), options), Sentence("b", source(6), replace(options, required=()))])
    found = run_out(batch)
    for one in found["a"]:
        assert one.finished and len(one.tokens) <= longest
        held = [token for token in one.tokens if token in (4, 5, 6, 7)]
        if len(required) <= longest:
            assert sorted(held) == sorted(required)
        else:
            assert len(held) == longest and not Counter(held) - Counter(required)
    assert not any(set(one.tokens) & {4, 5, 6, 7} for one in found["b"])


def test_required_tokens_are_not_put_off_to_the_end() -> None:
    """Where the model has a place for one, it stands there; EOS waits for it, but not for ever."""
    table = scripted(8, {(): {4: 0.6, 5: 0.4}, (4,): {7: 0.2, 5: 0.8}, (4, 5): {EOS: 0.9, 5: 0.1}})
    (found,) = decode(table, 8, SearchOptions(beam_size=3, max_length=6, suppressed=(7, *RESERVED), required=(7,)))
    assert found.tokens == (4, 7)
    never = scripted(8, {prefix: {4: 0.9, EOS: 0.1} for n in range(9) for prefix in [(4,) * n]})
    (found,) = decode(never, 8, SearchOptions(beam_size=1, max_length=5, required=(7, 6)))
    assert found.tokens == (4, 4, 4, 7, 6)


def test_a_maximum_ratio_leaves_room_for_what_is_required() -> None:
    assert SearchOptions(max_length_ratio=1.0, required=(4,) * 30).bounds(5) == (0, 30)
    assert SearchOptions(max_length_ratio=1.0, required=(4,) * 30, prefix=(5,) * 4).bounds(5) == (0, 34)
    assert SearchOptions(max_length_ratio=1.0, required=(4,) * 30, max_length=20).bounds(5) == (0, 20)


def test_a_shortlist_holds_what_is_required() -> None:
    sentence = Sentence("a", source(4, 5), SearchOptions(required=(7, 7, 5)), np.array([4, 6]))
    listed = Admitted.of(sentence, vocabulary_size=9, eos=EOS).shortlist
    assert listed is not None and listed.tolist() == [EOS, 4, 5, 6, 7]


def test_required_tokens_must_be_tokens() -> None:
    for wrong in ((EOS,), (0,), (-1,), [4], (True,)):
        with pytest.raises(OptionError, match="required"):
            SearchOptions(required=wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="required"):
        decode(hashed(6), 6, SearchOptions(required=(6,)))
