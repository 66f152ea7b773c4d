"""Vocabularies: every text comes back, and nothing that a user types becomes a reserved token."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import PLACEHOLDERS, SentencePieceVocabulary, WordVocabulary, train_sentencepiece
from tandem.models.vocabulary.pieces import in_parts

LINES = ["the cat sat on the mat", "a ⟨ph0⟩ dog ran over 12345 hills", "der Hund läuft über die Straße"] * 30


def trained(seed: int = 1) -> SentencePieceVocabulary:
    return train_sentencepiece(LINES, size=340, languages=("de", "en"), seed=seed)


VOCABULARY = trained()
RESERVED = frozenset(VOCABULARY.placeholders) | {VOCABULARY.language_tag("de"), VOCABULARY.language_tag("en")}
UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
TRICKY = st.lists(
    st.sampled_from([*PLACEHOLDERS, "⟨de⟩", "⟨", "⟩", "ph0⟩", "▁", " ", "  ", "<s>", "<0x41>", "\ue000", "cat", "ä"])
).map("".join)


def test_fixed_ids_and_reserved_pieces() -> None:
    assert (VOCABULARY.pad, VOCABULARY.unk, VOCABULARY.bos, VOCABULARY.eos) == (0, 1, 2, 3)
    assert [VOCABULARY.piece_of(token) for token in VOCABULARY.placeholders] == list(PLACEHOLDERS)
    assert VOCABULARY.piece_of(VOCABULARY.language_tag("de")) == "⟨de⟩"
    assert VOCABULARY.size == 340


def test_training_is_deterministic() -> None:
    assert trained().to_bytes() == VOCABULARY.to_bytes()


@given(UNICODE | TRICKY)
def test_any_text_comes_back_without_special_or_reserved_ids(text: str) -> None:
    ids = VOCABULARY.encode(text)
    assert VOCABULARY.decode(ids) == text
    assert not RESERVED & set(ids)
    assert not {0, 1, 2, 3} & set(ids)


@given(TRICKY)
def test_reserved_text_comes_back_too(text: str) -> None:
    ids = VOCABULARY.encode(text, reserved=True)
    assert VOCABULARY.decode(ids) == text
    spelled = sum(text.count(piece) for piece in (*PLACEHOLDERS, "⟨de⟩", "⟨en⟩"))
    assert sum(token in RESERVED for token in ids) == spelled


def test_a_collection_lets_exactly_those_strings_through() -> None:
    ids = VOCABULARY.encode("a ⟨ph0⟩ and ⟨ph1⟩", reserved={"⟨ph1⟩"})
    assert [token for token in ids if token in RESERVED] == [VOCABULARY.placeholders[1]]
    assert VOCABULARY.decode(ids) == "a ⟨ph0⟩ and ⟨ph1⟩"


def test_a_text_that_uses_every_bmp_private_character_still_comes_back() -> None:
    text = "".join(map(chr, range(0xE000, 0xF900))) + "▁⟨ph0⟩"
    assert VOCABULARY.decode(VOCABULARY.encode(text)) == text


def test_surrogates_become_the_replacement_character() -> None:
    assert VOCABULARY.decode(VOCABULARY.encode("a\ud800b")) == "a\ufffdb"


def test_decode_drops_special_ids() -> None:
    ids = VOCABULARY.encode("the cat")
    assert VOCABULARY.decode([2, *ids, 3, 0, 0]) == "the cat"


@pytest.mark.parametrize("token", [-1, 340])
def test_ids_out_of_range_are_refused(token: int) -> None:
    with pytest.raises(VocabularyError, match="0 to 339"):
        VOCABULARY.decode([token])
    with pytest.raises(VocabularyError, match="0 to 339"):
        VOCABULARY.piece_of(token)


def test_unknown_pieces_and_languages_are_refused() -> None:
    with pytest.raises(VocabularyError, match="nosuchpiece"):
        VOCABULARY.id_of("nosuchpiece")
    with pytest.raises(VocabularyError, match="⟨fr⟩"):
        VOCABULARY.language_tag("fr")
    with pytest.raises(VocabularyError, match="language code"):
        VOCABULARY.language_tag("d e")


@pytest.mark.parametrize("content", [b"", b"not a model", VOCABULARY.to_bytes()[:-100]])
def test_unreadable_models_are_refused(content: bytes) -> None:
    with pytest.raises(VocabularyError):
        SentencePieceVocabulary.from_bytes(content)


def test_models_trained_otherwise_are_refused() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "must be 0, 1, 2, 3"),
        ({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}, "byte fallback"),
    )
    for options, reason in cases:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES), model_writer=model, vocab_size=40, minloglevel=2, **options
        )
        with pytest.raises(VocabularyError, match=reason):
            SentencePieceVocabulary.from_bytes(model.getvalue())


def test_files(tmp_path: Path) -> None:
    (tmp_path / "source.model").write_bytes(VOCABULARY.to_bytes())
    assert SentencePieceVocabulary.load(tmp_path / "source.model").encode("the cat") == VOCABULARY.encode("the cat")
    (tmp_path / "words.txt").write_bytes(WordVocabulary(["a", "b"]).to_bytes())
    assert WordVocabulary.load(tmp_path / "words.txt").encode("b a") == [5, 4]
    for kind in (SentencePieceVocabulary, WordVocabulary):
        with pytest.raises(VocabularyError, match="absent"):
            kind.load(tmp_path / "absent")


def test_training_faults() -> None:
    with pytest.raises(VocabularyError, match="5000"):
        train_sentencepiece(LINES, size=5000, languages=(), seed=1)
    with pytest.raises(VocabularyError, match="model_type"):
        train_sentencepiece(LINES, size=340, model_type="word", languages=(), seed=1)


def test_words() -> None:
    words = WordVocabulary(["the", "cat", "⟨ph0⟩", "⟨de⟩"])
    assert words.size == 8
    assert words.encode("the dog </s> ⟨ph0⟩") == [4, 1, 1, 1]
    assert words.encode("⟨ph0⟩ ⟨de⟩", reserved=True) == [6, 7]
    assert words.encode("⟨ph0⟩ ⟨de⟩", reserved={"⟨de⟩"}) == [1, 7]
    assert words.decode([2, 4, 5, 3, 0]) == "the cat"
    assert (words.placeholders, words.language_tag("de"), words.id_of("cat"), words.piece_of(1)) == (
        (6,),
        7,
        5,
        "<unk>",
    )


@pytest.mark.parametrize("words", [["a", "a"], ["</s>"], ["two words"], [""]])
def test_lists_that_are_not_words_are_refused(words: list[str]) -> None:
    with pytest.raises(VocabularyError):
        WordVocabulary(words)


def test_word_faults() -> None:
    with pytest.raises(VocabularyError, match="UTF-8"):
        WordVocabulary.from_bytes(b"\xff")
    with pytest.raises(VocabularyError, match="0 to 4"):
        WordVocabulary(["a"]).decode([9])
    with pytest.raises(VocabularyError, match="no word"):
        WordVocabulary(["a"]).id_of("b")


def test_lines_of_any_length_are_learnt_from() -> None:
    """A document in Greek of 6,000 bytes: left out, its letters would have no piece, and would be bytes."""
    document = " ".join(["το σπίτι", "ο σκύλος", "η γάτα"] * 150)
    assert len(document.encode()) > 4192
    vocabulary = train_sentencepiece([document] * 4, size=320, languages=(), seed=1)
    assert len(vocabulary.encode("σπίτι σκύλος γάτα")) <= 6


def test_long_lines_are_parted_between_words_and_characters() -> None:
    words = "σκύλος " * 900
    parts = list(in_parts(words.strip()))
    assert " ".join(parts) == words.strip() and max(len(part.encode()) for part in parts) <= 4192
    assert len(parts) == 3, "two hold 322 words of 13 bytes and a third the rest"
    run = "我" * 3000
    assert [len(part) for part in in_parts(run)] == [1397, 1397, 206]
    assert list(in_parts("short  line")) == ["short  line"] and list(in_parts("")) == []


def test_what_cannot_be_trained_is_said_in_plain_words() -> None:
    for lines, size, told in (
        (["a b"], 5000, r"5000 pieces: the text gives at most \d+: lower size, or add text"),
        (["a b"], 100, r"100 pieces: its characters, bytes and reserved pieces alone are \d+: raise size"),
        ([], 400, "400 pieces: the text is empty"),
    ):
        with pytest.raises(VocabularyError, match=told) as raised:
            train_sentencepiece(lines, size=size, languages=(), seed=1)
        assert ".cc(" not in str(raised.value)
    with pytest.raises(VocabularyError, match=r"readable sentencepiece model: it is damaged, or another kind of file$"):
        SentencePieceVocabulary(b"nonsense")
