"""Byte pairs: no text is unknown, and every text comes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import BytePairVocabulary
from tandem.models.vocabulary.bytepairs import _OF_BYTE, _words

MERGES = ["t h", "th e", "Ġ the", "c a", "ca t", "Ġ cat", "Ã ¤", "e r"]
PIECES = ["<pad>", "<unk>", "⟨start⟩", "</s>", "<s>", *_OF_BYTE, *(merge.replace(" ", "") for merge in MERGES)]
VOCABULARY = BytePairVocabulary(MERGES, PIECES, before=("<s>",))


def shown(text: str) -> list[str]:
    return [VOCABULARY.piece_of(token) for token in VOCABULARY.encode(text)[1:]]


def test_the_pair_that_was_learnt_first_is_merged_first() -> None:
    assert shown("the cat") == ["the", "▁cat"]
    assert shown("other") == ["o", "the", "r"]  # "er" was learnt last
    assert shown("ä") == ["ä"]
    assert shown("ß") == ["<0xC3>", "<0x9F>"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello  we're 3½ naïve", ["Hello", " ", " we", "'re", " 3½", " naïve"]),
        ("don't!!  (x)\n\n y ", ["don", "'t", "!!", " ", " (", "x", ")", "\n\n", " y", " "]),
        ("日本 12,5 x_y Ⅷ", ["日本", " 12", ",", "5", " x", "_", "y", " Ⅷ"]),
    ],
)
def test_text_is_split_into_words_numbers_and_marks(text: str, words: list[str]) -> None:
    assert _words().findall(text) == words


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text: str) -> None:
    ids = VOCABULARY.encode(text)
    assert VOCABULARY.decode(ids) == text
    assert not {0, 1, 2, 3, 4} & set(ids[1:])


def test_pieces_and_their_ids() -> None:
    for token in range(VOCABULARY.size):
        assert VOCABULARY.id_of(VOCABULARY.piece_of(token)) == token
    assert VOCABULARY.id_of("Ġcat") == VOCABULARY.id_of("▁cat")
    with pytest.raises(VocabularyError, match="has no piece 'dog'"):
        VOCABULARY.id_of("dog")


def test_bytes_that_are_no_text_are_written_as_such() -> None:
    assert VOCABULARY.decode([VOCABULARY.id_of("<0xC3>")]) == "\ufffd"


def test_its_file_says_everything() -> None:
    again = BytePairVocabulary.from_bytes(VOCABULARY.to_bytes())
    assert again.to_bytes() == VOCABULARY.to_bytes()
    assert again.encode("the cat ß") == VOCABULARY.encode("the cat ß")


@pytest.mark.parametrize("merges", [["a"], ["a b c"], [1]])
def test_merges_that_are_no_pairs_are_refused(merges: list[object]) -> None:
    table = json.loads(VOCABULARY.to_bytes()) | {"merges": merges}
    with pytest.raises(VocabularyError, match="merges must be"):
        BytePairVocabulary.from_bytes(json.dumps(table).encode())
