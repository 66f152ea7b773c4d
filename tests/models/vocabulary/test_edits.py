"""Edit scripts: they lead where they should, none is shorter, and no sequence of operations breaks them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import EDITS, WordVocabulary
from tandem.models.vocabulary.edits import Operations, apply, origins, shortest_script

KEEP, DELETE = 8, 9
OPERATIONS = Operations(KEEP, DELETE)
TOKENS = st.lists(st.integers(10, 14), max_size=12)


def script_of(translation: list[int], target: list[int]) -> list[int]:
    return shortest_script(translation, target, target, OPERATIONS)


def fewest_edits(translation: list[int], target: list[int]) -> int:
    """Insertions and deletions, by the textbook's table."""
    table = [list(range(len(target) + 1))]
    for i, token in enumerate(translation, 1):
        row = [i]
        for j, other in enumerate(target, 1):
            edits = min(table[-1][j], row[j - 1]) + 1
            row.append(min(edits, table[-1][j - 1]) if token == other else edits)
        table.append(row)
    return table[-1][-1]


@given(TOKENS, TOKENS)
def test_a_script_leads_to_its_target_and_none_is_shorter(translation: list[int], target: list[int]) -> None:
    script = script_of(translation, target)
    assert apply(script, translation, OPERATIONS) == target
    kept = script.count(KEEP)
    assert len(script) - kept == fewest_edits(translation, target)
    assert kept + script.count(DELETE) == len(translation)  # every token of the translation is named
    assert kept + sum(token not in (KEEP, DELETE) for token in script) == len(target)


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_scripts_of_joined_texts_are_joined_scripts(a: list[int], b: list[int], c: list[int], d: list[int]) -> None:
    """As training joins sentences into one item."""
    assert apply(script_of(a, b) + script_of(c, d), a + c, OPERATIONS) == b + d


@given(st.lists(st.integers(0, 14), max_size=20), TOKENS)
def test_any_operations_can_be_applied(script: list[int], translation: list[int]) -> None:
    """Whatever a model produces: insertions stay in order, nothing of the translation comes twice or out of order."""
    found = origins(script, len(translation), OPERATIONS)
    kept = [origin.index for origin in found if origin.kept]
    assert kept == sorted(set(kept))
    assert all(0 <= index < len(translation) for index in kept)
    inserted = [script[origin.index] for origin in found if not origin.kept]
    assert inserted == [token for token in script if token not in (KEEP, DELETE)]
    named = script.count(KEEP) + script.count(DELETE)
    assert kept[len(kept) - max(0, len(translation) - named) :] == list(range(named, len(translation)))


@pytest.mark.parametrize(
    ("translation", "target", "script"),
    [
        ([], [], []),
        ([10, 11], [10, 11], [KEEP, KEEP]),
        ([10, 11], [], [DELETE, DELETE]),
        ([], [10, 11], [10, 11]),
        ([10, 11, 12], [10, 13, 12], [KEEP, 13, DELETE, KEEP]),  # a replacement is written first, then deleted
        ([10, 10], [10], [DELETE, KEEP]),  # of equal tokens the last is kept
        ([10, 11], [11, 10], [11, KEEP, DELETE]),  # of equally short scripts the one that ends with a deletion
        ([10, 11, 12, 13], [10], [KEEP, DELETE, DELETE, DELETE]),  # the end too is deleted explicitly
    ],
)
def test_which_of_the_shortest(translation: list[int], target: list[int], script: list[int]) -> None:
    assert script_of(translation, target) == script


def test_what_no_operation_reaches_is_kept() -> None:
    assert apply([DELETE], [10, 11, 12], OPERATIONS) == [11, 12]
    assert apply([], [10, 11], OPERATIONS) == [10, 11]
    assert apply([KEEP, KEEP, DELETE, KEEP, 14], [10], OPERATIONS) == [10, 14]


def test_words_are_compared_as_words_where_several_have_one_id() -> None:
    """Two unknown words are not the same word."""
    unknown = 1
    script = shortest_script(["a", "Foo"], ["a", "Bar"], [10, unknown], OPERATIONS)
    assert script == [KEEP, unknown, DELETE]


def test_long_texts() -> None:
    translation = [10 + number % 5 for number in range(700)]
    target = [token for number, token in enumerate(translation) if number % 7] + [99]
    script = script_of(translation, target)
    assert apply(script, translation, OPERATIONS) == target
    assert len(script) == len(translation) + 1


def test_operations_are_pieces_of_the_vocabulary() -> None:
    assert Operations.of(WordVocabulary([*EDITS, "a"])) == Operations(4, 5)
    with pytest.raises(VocabularyError, match="no word '⟨keep⟩'"):
        Operations.of(WordVocabulary(["a"]))
