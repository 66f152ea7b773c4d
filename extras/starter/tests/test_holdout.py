"""Held-out pairs share no sentence with what is trained on, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.starter.holdout import LARGEST, Splits, connected, hold_out
from tandem.extras.starter.text import Pair
from tandem.models.errors import CorpusError

SENTENCES = st.sampled_from([f"{letter}{number}" for letter in "aAbBcC" for number in range(8)])
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=60, unique=True)


def sides(pairs: tuple[Pair, ...], side: int) -> set[str]:
    return {pair[side].casefold() for pair in pairs}


def shared(splits: Splits) -> list[set[str]]:
    together = [
        (splits["train"], splits["valid"]),
        (splits["train"], splits["test"]),
        (splits["valid"], splits["test"]),
    ]
    return [sides(one, side) & sides(other, side) for one, other in together for side in (0, 1)]


@given(pairs=PAIRS, valid=st.integers(1, 4), test=st.integers(1, 4), seed=st.integers(0, 5))
def test_splits_share_no_sentence(pairs: list[Pair], valid: int, test: int, seed: int) -> None:
    try:
        splits = hold_out(pairs, valid, test, seed)
    except CorpusError:  # nearly everything hangs together
        return
    assert not any(shared(splits))
    assert sorted(splits["train"] + splits["valid"] + splits["test"]) == sorted(pairs)
    assert (len(splits["valid"]), len(splits["test"])) == (valid, test)
    assert splits == hold_out(pairs, valid, test, seed)


def test_another_seed_holds_out_others() -> None:
    pairs = [(f"s{number}", f"t{number}") for number in range(1000)]
    one, other = hold_out(pairs, 50, 50, 1), hold_out(pairs, 50, 50, 2)
    assert one["test"] != other["test"]
    assert list(one["test"]) == sorted(one["test"], key=pairs.index), "in the order of the files"
    assert len({*one["test"], *one["valid"]}) == 100


def test_pairs_hang_together_over_others() -> None:
    pairs = [("a", "x"), ("b", "y"), ("a", "Y"), ("c", "z"), ("B  b", "q"), ("b b", "r"), ("x", "a")]
    assert sorted(map(sorted, connected(pairs))) == [[0, 1, 2], [3], [4, 5], [6]]


def test_what_is_said_very_often_is_trained_on() -> None:
    often = [(f"s{number}", "yes") for number in range(LARGEST + 1)]
    pairs = often + [(f"u{number}", f"v{number}") for number in range(20)]
    splits = hold_out(pairs, 5, 5, 1)
    assert set(often) <= set(splits["train"])
    with pytest.raises(CorpusError, match=r"only 15 pairs can be held out for valid, but 16 are wanted.*--valid"):
        hold_out(pairs, 16, 5, 1)
