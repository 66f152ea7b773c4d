"""A public model's own pieces: ids of a list, whatever sentencepiece's are."""

from __future__ import annotations

import json

import pytest

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import MappedVocabulary, TaggedVocabulary
from tests.models.vocabulary.published import pieces, sentencepiece_model

ENGLISH = [
    *("The train leaves the station at half past seven.", "She bought two books and a red umbrella."),
    *("Who has seen the keys of the small house?", "The committee will publish its report in spring."),
    *("It rained all night, so the river is high today.", "Please send the letter to the new address."),
    *("Children under six travel free of charge.", "The engine stopped twice on the way home."),
    *("He could not remember the name of the street.", "Most of the windows had been left open."),
]
MODEL = sentencepiece_model(ENGLISH, 120)
PIECES = pieces(MODEL)
MISSING = PIECES[5]
NAMES = ["<pad>", "<unk>", "⟨start⟩", "</s>", ">>deu<<", "<s>", *reversed([one for one in PIECES if one != MISSING])]


def made(**further: object) -> MappedVocabulary:
    return MappedVocabulary(MODEL, NAMES, silent=(">>deu<<",), languages={"de": ">>deu<<"}, **further)


def test_ids_are_those_of_the_list() -> None:
    vocabulary = made()
    text = ENGLISH[0]
    cut = vocabulary._processor.encode(text, out_type=str)
    assert vocabulary.encode(text) == [NAMES.index(one) if one in NAMES else 1 for one in cut]
    assert vocabulary.size == len(NAMES)
    assert [vocabulary.piece_of(token) for token in range(4)] == NAMES[:4]
    assert vocabulary.language_tag("de") == 4


def test_every_text_of_known_pieces_comes_back() -> None:
    vocabulary = MappedVocabulary(MODEL, [*NAMES, MISSING])
    for line in ENGLISH:
        assert vocabulary.decode(vocabulary.encode(line)) == line


def test_what_is_unknown_or_silent_is_not_written() -> None:
    vocabulary = made()
    assert vocabulary.encode("a\ud800") == vocabulary.encode("a\ufffd")
    assert 1 in vocabulary.encode("漢")
    ids = vocabulary.encode(ENGLISH[1])
    assert vocabulary.decode([2, 4, *ids, 1, 3, 0, 0]) == vocabulary.decode(ids)


@pytest.mark.parametrize("typed", ["</s>", ">>deu<<", "<pad>", "<unk>", "⟨start⟩", "⟨ph0⟩", "▁", "<0x41>"])
def test_nothing_that_a_user_types_is_special(typed: str) -> None:
    vocabulary = made()
    for reserved in (False, True):
        ids = vocabulary.encode(f"{typed} {ENGLISH[0]}", reserved=reserved)
        assert not {0, 2, 3, 4} & set(ids)


def test_pieces_before_every_text() -> None:
    vocabulary = made(before=("<s>",))
    assert vocabulary.encode(ENGLISH[0]) == [5, *made().encode(ENGLISH[0])]
    assert vocabulary.encode("") == vocabulary.encode("  ") == []
    assert vocabulary.decode(vocabulary.encode(ENGLISH[0])) == made().decode(made().encode(ENGLISH[0]))


def test_a_tag_before_a_source() -> None:
    tagged = TaggedVocabulary(made(), "de")
    assert tagged.encode(ENGLISH[0]) == [4, *made().encode(ENGLISH[0])]
    with pytest.raises(VocabularyError, match=r"no tag of the language 'fr'; it has those of: de"):
        TaggedVocabulary(made(), "fr")


def test_its_file_says_everything() -> None:
    vocabulary = made(before=("<s>",))
    again = MappedVocabulary.from_bytes(vocabulary.to_bytes())
    assert again.to_bytes() == vocabulary.to_bytes()
    assert (again.encode(ENGLISH[0]), again.languages) == (vocabulary.encode(ENGLISH[0]), vocabulary.languages)


def _file(**changed: object) -> bytes:
    return json.dumps(json.loads(made().to_bytes()) | changed).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a list of pieces"),
        (b"[]", "it is no table"),
        (b"\xff", "not a list of pieces"),
        (_file(format=2), r"its format 2 is newer than 1; update tandem"),
        (_file(more=1), "it must hold format, pieces"),
        (_file(pieces="abc"), "it must hold format, pieces"),
        (_file(pieces=[1, 2, 3, 4, 5]), "its pieces must be strings"),
        (_file(pieces=["a", "b", "c"], languages={}, silent=[]), "but there are 3 pieces"),
        (_file(pieces=[*NAMES, "<pad>", "</s>"]), r"pieces must differ; repeated: \['<pad>', '</s>'\]"),
        (_file(silent=["nowhere"]), "no piece is called 'nowhere'"),
        (_file(languages={"fr": ">>fra<<"}), "no piece is called '>>fra<<'"),
        (_file(model="!"), "not a list of pieces"),
        (_file(model=""), "not a readable sentencepiece model: it is empty"),
        (_file(model="AAAA"), "not a readable sentencepiece model"),
    ],
)
def test_malformed_files_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        MappedVocabulary.from_bytes(content)


def test_ids_and_pieces_that_are_not_there() -> None:
    vocabulary = made()
    for token in (-1, vocabulary.size):
        with pytest.raises(VocabularyError, match="token ids must be 0 to"):
            vocabulary.piece_of(token)
        with pytest.raises(VocabularyError, match="token ids must be 0 to"):
            vocabulary.decode([token])
    with pytest.raises(VocabularyError, match="has no piece 'nowhere'"):
        vocabulary.id_of("nowhere")
    with pytest.raises(VocabularyError, match="cannot read the vocabulary"):
        MappedVocabulary.load("/nowhere.json")
