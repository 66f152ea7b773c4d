"""Extracts: whole sentences, in order, none twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.extracts.ranking import MOST_SENTENCES, extract

SENTENCES = [
    "The museum in the old harbour opens a new wing for modern painting in May.",
    "It cost twelve million euros.",
    "The new wing of the museum shows painting of the last fifty years.",
    "Parking is difficult.",
    "The new wing of the museum shows painting of the last 50 years.",
    "Visitors of the museum pay nothing in May.",
]


def test_the_sentences_that_share_most_with_the_others_are_chosen_in_order() -> None:
    assert extract(SENTENCES, 1) == [0]
    assert extract(SENTENCES, 2) == [0, 2]


def test_what_says_the_same_as_a_better_one_is_left_out() -> None:
    assert 4 not in extract(SENTENCES, len(SENTENCES))


def test_scripts_without_spaces_are_compared_by_character() -> None:
    japanese = ["東京の新しい美術館が五月に開館します。", "雨が降りました。", "美術館は五月に無料です。"]
    assert extract(japanese, 2) == [0, 2]


def test_of_a_very_long_text_the_beginning_is_read() -> None:
    chosen = extract([f"Report {number} has its own word{number}." for number in range(MOST_SENTENCES + 50)], 5)
    assert len(chosen) == 5 and max(chosen) < MOST_SENTENCES


@given(st.lists(st.text(max_size=30), max_size=12), st.integers(1, 5))
def test_any_text_has_an_extract(sentences: list[str], most: int) -> None:
    chosen = extract(sentences, most)
    assert chosen == sorted(set(chosen)) and len(chosen) <= most
    assert bool(chosen) == bool(sentences)
