"""Hypotheses as text: plainly, as edits of a translation, and with unknown words replaced."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.search import Hypothesis, SearchOptions
from tandem.models.translation.rendering import Renderer
from tandem.models.vocabulary import BOS, EDITS, EOS, UNK, Vocabulary, WordVocabulary, train_sentencepiece
from tandem.models.vocabulary.dictionary import Dictionary
from tandem.models.vocabulary.edits import Operations, shortest_script

LINES = ["das Haus ist gross", "die Maus ist klein", "ein Haus und eine Maus"] * 20
PIECES = train_sentencepiece(LINES, size=330, languages=("de",), seed=1, further=EDITS)
GERMAN = WordVocabulary(["das", "Haus", "ist", "gross"])
ENGLISH = WordVocabulary(["the", "house", "is", "big"])
DICTIONARY = Dictionary(({"Maus": "mouse", "klein": "small"},))


def hypothesis(*tokens: int, looks_at: list[list[float]] | None = None) -> Hypothesis:
    """A hypothesis with attention on one source: one row of weights per token and for EOS."""
    attention = None if looks_at is None else (np.array(looks_at, np.float32),)
    return Hypothesis(tokens, -1.0, -1.0, True, (), attention)


def ids(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    return tuple(vocabulary.encode(text))


def test_plain_text_is_the_vocabularys_own_and_asks_for_nothing() -> None:
    renderer = Renderer((PIECES,), PIECES)
    found = hypothesis(BOS, *ids(PIECES, "das  Haus"), EOS)
    assert renderer.text(found, (), ()) == PIECES.decode(found.tokens) == "das  Haus"
    options = SearchOptions()
    assert (renderer.needs_attention, renderer.options(options) is options) == (False, True)


TEXT = st.text(st.sampled_from("das Haus klein,.ß▁⟨keep⟩"), min_size=1, max_size=30)


@given(TEXT, TEXT)
def test_edits_of_pieces_lead_to_the_text_that_was_meant(translation: str, target: str) -> None:
    """Whatever is in the texts, the names of operations among it."""
    before, after = ids(PIECES, translation), ids(PIECES, target)
    script = shortest_script(before, after, after, Operations.of(PIECES))
    renderer = Renderer((PIECES,), PIECES, "edits")
    assert renderer.text(hypothesis(*script), (), [translation]) == target
    assert renderer.text(hypothesis(*script), [[*before, EOS]], ["given as tokens"]) == target


def test_the_last_source_is_edited_and_what_the_decoder_did_not_see_is_kept() -> None:
    keep, delete = map(PIECES.id_of, EDITS)
    renderer = Renderer((PIECES, PIECES), PIECES, "edits")
    assert not renderer.needs_attention
    first = len(ids(PIECES, "das"))
    found = hypothesis(*[delete] * first, *ids(PIECES, "ein"), keep)
    assert renderer.text(found, (), ["the house is big", "das Haus ist gross"]) == "ein Haus ist gross"


def test_an_unknown_word_is_translated_or_copied() -> None:
    renderer = Renderer((GERMAN,), ENGLISH, dictionary=DICTIONARY)
    the, is_ = ENGLISH.id_of("the"), ENGLISH.id_of("is")
    line = "das Maus ist Zürich ."
    looks_at = [[0.9, 0, 0, 0, 0, 0.1], [0.1, 0.6, 0, 0.3, 0, 0], [0, 0, 1.0, 0, 0, 0], [0, 0.1, 0, 0.2, 0, 0.7]]
    found = hypothesis(the, UNK, is_, UNK, looks_at=[*looks_at, [0, 0, 0, 0, 0, 1.0]])
    assert renderer.text(found, (), [line]) == "the mouse is Zürich"  # the end of the source is no word
    assert ENGLISH.decode(found.tokens) == "the <unk> is <unk>"
    assert renderer.options(SearchOptions(beam_size=3)) == SearchOptions(beam_size=3, attention=True)


def test_unknown_words_may_stay() -> None:
    """Nothing is looked at then, and edits have the translation's own words and what the model wrote."""
    renderer = Renderer((GERMAN,), ENGLISH, dictionary=DICTIONARY, keep_unknown=True)
    assert not renderer.needs_attention
    assert not renderer.options(SearchOptions()).attention
    found = hypothesis(ENGLISH.id_of("the"), UNK, looks_at=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    assert renderer.text(found, (), ["das Maus"]) == "the <unk>"
    words = WordVocabulary([*EDITS, "das", "Haus"])
    editing = Renderer((words,), words, "edits", keep_unknown=True)
    keep = words.id_of("⟨keep⟩")
    looks_at = [[0, 1.0, 0], [0, 0, 1.0], [0, 0, 1.0]]
    assert editing.text(hypothesis(UNK, keep, looks_at=looks_at), (), ["Wort Haus"]) == "<unk> Wort Haus"


def test_text_is_normalised_as_when_it_was_encoded() -> None:
    renderer = Renderer((GERMAN,), ENGLISH)
    found = hypothesis(UNK, looks_at=[[0.1, 0.9, 0], [0, 0, 1]])
    assert renderer.text(found, (), ["das  Cafe\N{COMBINING ACUTE ACCENT}"]) == "Café"


def test_words_that_were_cut_off_are_not_looked_at() -> None:
    renderer = Renderer((GERMAN,), ENGLISH)
    found = hypothesis(UNK, looks_at=[[0.1, 0.2, 0.7], [0, 0, 1]])  # two words, and the end of the sentence
    assert renderer.text(found, (), ["eins zwei drei vier"]) == "zwei"
    assert renderer.text(hypothesis(UNK, looks_at=[[1.0], [1.0]]), (), ["eins"]) == "<unk>"


def test_of_several_sources_the_largest_weight_counts() -> None:
    renderer = Renderer((GERMAN, None, GERMAN), ENGLISH, dictionary=Dictionary(({}, {}, {"zwei": "two"})))
    rows = [[[0.4, 0.3, 0.3]], [[0.9, 0.1, 0]], [[0.2, 0.5, 0.3]]]  # the second source is an image
    attention = tuple(np.array(one, np.float32) for one in rows)
    found = Hypothesis((UNK,), -1.0, -1.0, True, (), attention)
    assert renderer.text(found, (), ["eins zwei", "", "eins zwei"]) == "two"
    assert renderer.needs_attention


@pytest.mark.parametrize(
    "renderer", [Renderer((GERMAN,), ENGLISH), Renderer((PIECES,), ENGLISH), Renderer((None,), ENGLISH)]
)
def test_without_words_or_attention_an_unknown_word_stays(renderer: Renderer) -> None:
    assert renderer.text(hypothesis(ENGLISH.id_of("the"), UNK), (), ["das Ding"]) == "the <unk>"
    assert renderer.needs_attention == (renderer.sources == (GERMAN,))


def test_edits_of_words() -> None:
    """What is kept is the translation's own word, known or not; what is inserted is replaced if it is unknown."""
    words = WordVocabulary([*EDITS, "das", "Haus", "eine"])
    renderer = Renderer((GERMAN, words), words, "edits", Dictionary(({"mouse": "Maus"},)))
    keep, delete = map(words.id_of, EDITS)
    english = np.array([[0, 0.5, 0.5], [0, 0.9, 0.1], [0, 0, 1], [0, 0, 1], [0, 0, 1]], np.float32)
    german = np.full((5, 4), 0.25, np.float32)
    found = Hypothesis((words.id_of("eine"), UNK, delete, keep, BOS), -1.0, -1.0, True, (), (english, german))
    assert renderer.text(found, (), ["a mouse", "das Wort Rest"]) == "eine Maus Wort Rest"


def test_copied_words_never_act_as_operations() -> None:
    words = WordVocabulary([*EDITS, "das"])
    renderer = Renderer((words,), words, "edits")
    keep = words.id_of("⟨keep⟩")
    found = hypothesis(UNK, keep, looks_at=[[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    assert renderer.text(found, (), ["das ⟨delete⟩"]) == "⟨delete⟩ das ⟨delete⟩"
