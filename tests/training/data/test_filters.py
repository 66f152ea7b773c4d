"""Filters drop what they should, for one reason each, and keep the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tandem.training.data.config import FilterConfig
from tandem.training.data.filters import PairFilter


def test_every_reason_once() -> None:
    config = FilterConfig(max_source_words=4, max_target_words=3, max_length_ratio=2.0, exclude_pattern=r"[$\\]")
    columns = (
        ["a b", "", "a b c d e", "a b c d", "a b c", "a $x", "b a", "a b", "held"],
        ["x y", "x", "x y z", "x y z w", "x", "x y", "x $y", "x y", "out"],
    )
    pairs = PairFilter(config, held_out=[("held", "out")], deduplicate=True)
    assert pairs.keep(columns) == [0]
    assert pairs.dropped == {
        "empty": 1,
        "source_words": 1,
        "target_words": 1,
        "length_ratio": 1,
        "excluded_pattern": 2,
        "duplicate": 1,
        "held_out": 1,
    }


def test_duplicates_are_remembered_between_corpora_and_need_all_sides_equal() -> None:
    pairs = PairFilter(FilterConfig(), deduplicate=True)
    assert pairs.keep((["a", "a"], ["x", "y"])) == [0, 1]
    assert pairs.keep((["a", "b"], ["x", "x"])) == [1]


def test_every_source_counts() -> None:
    pairs = PairFilter(FilterConfig(max_source_words=2))
    assert pairs.keep((["a", "a"], ["b", "b b b"], ["x", "x"])) == [0]


def test_no_limits_keep_everything_but_empty_pairs() -> None:
    pairs = PairFilter(FilterConfig())
    assert pairs.keep((["a", "a", " "], ["x " * 500, "x", "x"])) == [0, 1]


TEXT = st.sampled_from(["a", "b", "a b", "ä"])


@given(st.lists(st.lists(st.tuples(TEXT, TEXT), max_size=20), max_size=12))
def test_pieces_of_any_size_lose_their_duplicates(pieces: list[list[tuple[str, str]]]) -> None:
    pairs = PairFilter(FilterConfig(), deduplicate=True)
    seen: set[tuple[str, str]] = set()
    for piece in pieces:
        expected = []
        for index, pair in enumerate(piece):
            if pair not in seen:
                expected.append(index)
            seen.add(pair)
        assert pairs.keep(([source for source, _ in piece], [target for _, target in piece])) == expected


def test_many_pairs_are_known_again() -> None:
    pairs = PairFilter(FilterConfig(), deduplicate=True)
    numbers = [str(number) for number in range(5000)]
    for start in range(0, 5000, 300):
        part = numbers[start : start + 300]
        assert pairs.keep((part, part)) == list(range(len(part)))
    assert pairs.keep((numbers, numbers)) == []
    assert pairs.keep((numbers, numbers[::-1])) == list(range(5000))
