"""Shortlists: what they select, their file, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from tandem.models.errors import BundleError
from tandem.models.search import Array
from tandem.models.search.shortlist import Shortlist, Table

SOURCE, TARGET = 9, 40
rows = st.lists(st.lists(st.integers(0, TARGET - 1), max_size=6), min_size=SOURCE, max_size=SOURCE)
sentence = st.lists(st.integers(0, SOURCE - 1), max_size=12)
always = st.lists(st.integers(0, TARGET - 1), max_size=5)


def shortlist(tables: list[list[list[int]]], always_ids: list[int]) -> Shortlist:
    made = tuple(Table.of(table, TARGET) for table in tables)
    return Shortlist(made, np.array(sorted(set(always_ids)), np.int64), TARGET)


def ids(tokens: list[int]) -> Array:
    return np.array(tokens, np.int64)


@given(tables=st.tuples(rows, rows), first=sentence, second=sentence, always_ids=always)
def test_a_list_is_the_union_of_what_the_words_list(
    tables: tuple[list[list[int]], list[list[int]]], first: list[int], second: list[int], always_ids: list[int]
) -> None:
    found = shortlist(list(tables), always_ids).select((ids(first), ids(second)))
    expected = set(always_ids)
    for table, tokens in zip(tables, (first, second), strict=True):
        expected |= {target for token in tokens for target in table[token]}
    assert found.tolist() == sorted(expected)
    assert found.dtype == np.int64


def test_what_was_selected_before_changes_nothing() -> None:
    made = shortlist([[[token] for token in range(SOURCE)]], [30])
    first = made.select((ids([1, 2]),)).tolist()
    made.select((ids([5, 6, 7]),))
    assert made.select((ids([1, 2]),)).tolist() == first == [1, 2, 30]


def test_feature_matrices_list_nothing() -> None:
    made = shortlist([[[token] for token in range(SOURCE)]], [30])
    assert made.select((ids([4]), np.ones((3, 5), np.float32))).tolist() == [4, 30]
    with pytest.raises(ValueError, match="tables for 1 text sources, but 2 are given"):
        made.select((ids([4]), ids([5])))


@given(tables=st.lists(rows, max_size=3), always_ids=always)
def test_file_round_trip(tables: list[list[list[int]]], always_ids: list[int]) -> None:
    made = shortlist(tables, always_ids)
    content = made.to_bytes()
    read = Shortlist.from_bytes(content)
    assert read.to_bytes() == content
    assert read.misfits([SOURCE] * len(tables), TARGET) == []
    everything = tuple(np.arange(SOURCE) for _ in tables)
    np.testing.assert_array_equal(read.select(everything), made.select(everything))


def test_vocabularies_of_other_sizes_are_told_apart() -> None:
    made = shortlist([[[] for _ in range(SOURCE)]], [])
    assert len(made.misfits([SOURCE + 1], TARGET)) == 1
    assert len(made.misfits([SOURCE, SOURCE], TARGET + 1)) == 2


@given(parts=st.tuples(rows, rows, rows), tokens=sentence, always_ids=st.tuples(always, always), first=st.booleans())
def test_a_tag_chooses_its_part(
    parts: tuple[list[list[int]], list[list[int]], list[list[int]]],
    tokens: list[int],
    always_ids: tuple[list[int], list[int]],
    first: bool,
) -> None:
    tags = (2, 7)
    single = [shortlist([part], one) for part, one in zip(parts[:2], always_ids, strict=True)]
    other = shortlist([parts[2]], always_ids[1])
    made = Shortlist.from_bytes(Shortlist.tagged([*zip(tags, single, strict=True), (7, other)]).to_bytes())
    source = (ids([tags[not first], *tokens]),)
    own = [single[0]] if first else [single[1], other]
    assert set(made.select(source).tolist()) == {target for one in own for target in one.select(source).tolist()}
    assert made.misfits([SOURCE], TARGET) == []
    assert len(made.misfits([SOURCE * 2], TARGET)) == 1
    with pytest.raises(ValueError, match=r"must begin with one of the tags \[2, 7\]"):
        made.select((ids([1, 2]),))


def _tagged(**tensors: Array) -> bytes:
    part = shortlist([[[token, 20] for token in range(SOURCE)]], [3, 30])
    return _with(Shortlist.tagged([(2, part), (7, part)]), tensors)


def _changed(**tensors: Array | None) -> bytes:
    return _with(shortlist([[[token, 20] for token in range(SOURCE)]], [3, 30]), tensors)


def _with(made: Shortlist, tensors: Mapping[str, Array | None]) -> bytes:
    held = load(made.to_bytes())
    held |= {name.replace("_", "."): array for name, array in tensors.items() if array is not None}
    return save({name: array for name, array in held.items() if tensors.get(name.replace(".", "_"), 0) is not None})


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "not a shortlist"),
        (b"\x80\x04.", "not a shortlist"),
        (_changed()[:-3], "not a shortlist"),
        (_changed(header=None), "no header"),
        (_changed(header=np.zeros(3, np.float32)), "no header"),
        (_changed(header=np.array([3, TARGET, 1])), "format 3 is newer than 2"),
        (_changed(header=np.array([2, TARGET, 1])), "it must hold"),
        (_changed(tags=np.array([1])), "it must hold"),
        (_tagged(tags=np.array([2, 2])), "its tags must be a row of whole numbers, each once"),
        (_tagged(tags=np.zeros(0, np.int64)), "its tags must be"),
        (_tagged(tags=np.array([1, 2, 3, 4])), "table 0 must have as many rows for each of the 4 tags"),
        (_tagged(tags=np.array([1, SOURCE])), "table 0 must have"),
        (_changed(header=np.array([1, 0, 1])), "its header must be"),
        (_changed(header=np.array([1, TARGET, 1], np.uint32)), "no header"),
        (_changed(starts_0=np.zeros(SOURCE + 1, np.uint32)), "table 0 must be rows"),
        (_changed(header=np.array([1, TARGET, 2])), "it must hold"),
        (_changed(starts_0=None), "it must hold"),
        (_changed(other=np.zeros(1)), "it must hold"),
        (_changed(always=np.array([3, TARGET])), f"every list must be ids from 0 to {TARGET - 1}"),
        (_changed(always=np.array([-1, 3])), "every list must be ids"),
        (_changed(always=np.array([5, 5])), "every list must rise"),
        (_changed(always=np.array([0.5])), "every list must be a row of whole numbers"),
        (_changed(targets_0=np.full(2 * SOURCE, TARGET)), f"table 0 must name ids from 0 to {TARGET - 1}"),
        (_changed(targets_0=np.full(2 * SOURCE, -1)), "table 0 must name ids"),
        (_changed(targets_0=np.zeros(3, np.int64)), "table 0 must start at 0, rise and end at its 3 targets"),
        (_changed(starts_0=np.array([0, 5, 3, 2 * SOURCE])), "table 0 must start at 0"),
        (_changed(starts_0=np.zeros(0, np.int64)), "table 0 must start at 0"),
        (_changed(starts_0=np.zeros((2, 2), np.int64)), "table 0 must be rows"),
    ],
)
def test_faults_are_named(content: bytes, fault: str) -> None:
    with pytest.raises(BundleError, match=r"list\.safetensors: ") as caught:
        Shortlist.from_bytes(content, "list.safetensors")
    assert fault in str(caught.value)


def test_every_fault_is_listed() -> None:
    content = _changed(always=np.array([TARGET]), targets_0=np.full(2 * SOURCE, TARGET))
    with pytest.raises(BundleError) as caught:
        Shortlist.from_bytes(content)
    assert len(caught.value.faults) == 2
