"""Sizes grow with the text, keep their bounds, and make models that exist."""

from __future__ import annotations

import pytest

from tandem.extras.starter import sizes
from tandem.extras.starter.sizes import Amount, Schedule
from tandem.extras.starter.text import form_count
from tandem.models.vocabulary import train_sentencepiece

TOKENS = (3_000, 80_000, 370_000, 1_300_000, 2 * 10**7, 10**9)
AMOUNTS = [Amount(tokens // 12, tokens, 9.0, 90, 32_000) for tokens in TOKENS]


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
    assert sizes.vocabulary(Amount(10_000, 80_000, 9.0, 3500, 20_000)) >= 2 * 3500 + 300


TEMPLATES = [f"der {one} sieht {two} nicht" for one in ("Hund", "Mann", "Gast") for two in ("Haus", "Baum", "Auto")]
SHORT = ["ba", "be", "bo", "da", "de", "do", "ga", "ge"]


@pytest.mark.parametrize(
    "lines",
    [
        [f"{TEMPLATES[number % 9]}, {number % 7} {number}." for number in range(3000)],
        [f"Zeile {number}" for number in range(1000)],
        [f"a {number}" for number in range(1000)],
        [f"{SHORT[number % 8]} {SHORT[number // 8 % 8]}" for number in range(1000)],
        [f"我们{'喜欢' if number % 3 else '不吃'}苹果{number}" for number in range(1000)],
        [f"{'x' * (number % 40 + 1)} {'xy' * (number % 40 + 1)}" for number in range(1000)],
    ],
    ids=["templates", "numbers", "letters", "syllables", "chinese", "long"],
)
def test_a_vocabulary_can_be_trained_on_text_of_few_words(lines: list[str]) -> None:
    size = sizes.vocabulary(Amount.of([(line, line.upper()) for line in lines]))
    assert size < 1000
    both = [*lines, *(line.upper() for line in lines)]
    assert train_sentencepiece(both, size=size, languages=("de", "en"), seed=1).size == size


def test_different_words_are_of_letters_and_counted_as_far_as_they_matter() -> None:
    assert form_count(["ein Haus, ein Haus!", "Häuser 12 x3 l'eau don't", "x" * 16, "y" * 15], 100) == 6
    assert form_count(iter([" ".join(SHORT)] * 2), 3) == 3


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
    assert (amount.pairs, amount.tokens, amount.words, amount.characters, amount.forms) == (2, 21, 1.5, 9, 2)
