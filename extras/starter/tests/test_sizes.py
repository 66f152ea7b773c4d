"""Sizes grow with the text, keep their bounds, and make models that exist."""

from __future__ import annotations

import pytest

from tandem.extras.starter import sizes
from tandem.extras.starter.sizes import Amount, Schedule

AMOUNTS = [Amount(tokens // 12, tokens, 9.0, 90) for tokens in (3_000, 80_000, 370_000, 1_300_000, 2 * 10**7, 10**9)]


def test_sizes_grow_with_the_text() -> None:
    vocabularies = [sizes.vocabulary(amount) for amount in AMOUNTS]
    assert vocabularies == sorted(vocabularies)
    assert vocabularies[1:4] == [2000, 4500, 8000] and vocabularies[0] == 1000 and vocabularies[-1] == 32_000
    passes = [sizes.passes(amount) for amount in AMOUNTS]
    assert passes == sorted(passes, reverse=True) and (passes[0], passes[-1]) == (20, 6)
    batches = [sizes.batch_tokens(amount) for amount in AMOUNTS]
    assert batches == sorted(batches)
    assert [sizes.wide(amount) for amount in AMOUNTS] == [False] * 4 + [True] * 2


def test_a_vocabulary_has_all_characters() -> None:
    """Of Chinese, say, which has thousands."""
    assert sizes.vocabulary(Amount(10_000, 80_000, 9.0, 3500)) >= 2 * 3500 + 300


@pytest.mark.parametrize(("pairs", "held"), [(100, 10), (1000, 100), (3000, 200), (30_000, 1000), (10**6, 2000)])
def test_held_out_shares(pairs: int, held: int) -> None:
    assert sizes.held_out(pairs) == held


@pytest.mark.parametrize("updates", [1, 7, 100, 950, 3700, 60_000])
def test_a_schedule_fits_its_length(updates: int) -> None:
    schedule = Schedule.of(AMOUNTS[2], 2000, updates=updates, cooldown=0.5)
    assert 1 <= schedule.warmup <= max(1, updates // 10)
    assert schedule.warmup + schedule.cooldown <= updates or updates == 1
    assert 1 <= schedule.every <= updates
    assert schedule.passes == pytest.approx(updates * 2000 / 370_000)


def test_dropout_follows_the_passes() -> None:
    assert [sizes.dropout(passes) for passes in (1, 7.9, 8, 15.9, 16, 40)] == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]


def test_the_amount_is_of_the_longer_side() -> None:
    assert Amount.of([("a" * 700, "a" * 70)], 128).tokens == 128, "the model reads no more"
    assert Amount.of([("a" * 700, "a" * 70)]).tokens == 200
    amount = Amount.of([("eins zwei", "a" * 70), ("b", "b b")])
    assert (amount.pairs, amount.tokens, amount.words, amount.characters) == (2, 21, 1.5, 9)
