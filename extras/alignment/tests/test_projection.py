"""Parts of a sentence at their places in a translation that lacks them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.alignment.projection import pairs_of_parts, parted, project
from tandem.service.text.masking import Hidden, Masked
from tandem.service.text.spans import WORD, Span


def masked_of(sentence: str, *terms: tuple[str, str]) -> Masked:
    """What stands in braces is hidden, and terms by their first places."""
    places = [(Span(*match.span()), Hidden.kept(match[0])) for match in re.finditer(r"\{\w*\}", sentence)]
    for source, target in terms:
        start = sentence.index(source)
        places.append((Span(start, start + len(source)), Hidden(source, target, source)))
    return Masked.of(sentence).hide(sorted(places, key=lambda one: one[0]))


def pairs_of(source: str, target: str, words: str) -> list[tuple[Span, Span]]:
    """``words``: numbers of a word here and a word there, "0-0 1-2"."""
    read, written = ([Span(*match.span()) for match in WORD.finditer(text)] for text in (source, target))
    return [(read[int(one)], written[int(other)]) for one, other in (pair.split("-") for pair in words.split())]


def test_dates_are_paired_by_their_parts() -> None:
    source, written = "Am Montag, 3. Mai, um 8 Uhr", "On Monday, May 3, at 8 o'clock"
    masked = masked_of(source, ("Am Montag, 3. Mai", "on Monday, May 3"), ("um 8 Uhr", "at 8 o'clock"))
    pairs = parted(pairs_of_parts(masked, written), source, written)
    assert [(source[slice(*read)], written[slice(*to)]) for read, to in pairs] == [
        ("Am", "On"), ("Montag", "Monday"), ("3. Mai", "May 3"), ("um", "at"), ("8 Uhr", "8 o'clock"),
    ]  # fmt: skip
    assert pairs_of_parts(Masked.of("so"), "so") == []


@pytest.mark.parametrize(
    ("source", "written", "words", "wanted"),
    [
        ("das {x} ist", "the foo is", "0-0 2-1 4-2", "the {x} is"),  # words: das { x } ist
        ("das {x} ist", "is the {foo}", "0-1 2-3 4-0", "is the {x}"),  # with its braces
        ("das {x} ist", "the is", "0-0 4-1", "the {x} is"),  # nothing was written for it
        ("{x} ist da", "is here", "3-0 4-1", "{x} is here"),
        ("das ist {x}", "that is", "0-0 1-1", "that is {x}"),
        ("das {x} ist", "the foo is", "0-0 2-1 4-1 4-2", "the {x} foo is"),  # a word of another's, too, stays
        ("das {x} ist", "the {x} is", "0-0 4-2", "the {x} is"),  # there
        ("das {x} ist {y}", "foo bar is baz", "0-2 2-0 2-1 4-2 6-3", "{x} is {y}"),
        ("das {x} ist {y}", "{y} the is", "0-3 4-4", "{y} the {x} is"),
        ("das {x} ist", "the is", "", "{x} the is"),  # nothing is known of any word
    ],
)
def test_a_part_stands_where_its_words_do(source: str, written: str, words: str, wanted: str) -> None:
    found = project(masked_of(source), written, pairs_of(source, written, words))
    assert found.source == wanted
    assert sorted(part.target for part in found.hidden) == sorted(re.findall(r"\{\w*\}", source))


def test_a_terms_word_is_replaced_or_on_the_way_to_another_language_hidden() -> None:
    source, written = "das haus ist {x}", "the house is foo"
    masked, pairs = masked_of(source, ("haus", "casa")), pairs_of(source, written, "0-0 1-1 2-2 4-3")
    assert project(masked, written, pairs).source == "the casa is {x}"
    onward = project(masked, written, pairs, onward=True)
    assert onward.source == "the house is {x}"
    assert [(part.source, part.target) for part in onward.hidden] == [("house", "casa"), ("{x}", "{x}")]


@given(st.data())
def test_every_part_comes_back_whatever_is_aligned(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(["das", "ist", "da,", "{x}", "{y}"]), min_size=1, max_size=6))
    source = " ".join(words)
    written = " ".join(data.draw(st.lists(st.sampled_from(["the", "is", "{z}", "here."]), min_size=1, max_size=6)))
    read, there = ([Span(*match.span()) for match in WORD.finditer(text)] for text in (source, written))
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(read), st.sampled_from(there)), max_size=8))
    masked = masked_of(source)
    if masked.hidden:
        found = project(masked, written, pairs)
        assert sorted(part.source for part in found.hidden) == sorted(part.source for part in masked.hidden)
        assert all(found.source.count(part.source) >= words.count(part.source) for part in masked.hidden)
