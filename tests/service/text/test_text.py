"""Segmentation and layout: whatever comes in, an identity translator gives it back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.models.text import BIDI, normalise
from tandem.service.text.layout import Document, is_translatable
from tandem.service.text.splitting import cut_to_limit, pack_sentences, split_long

LANGUAGES = st.sampled_from(["de", "en", "fr", "ja", "zh", "pt-BR", "xx"])
PROSE = st.text(st.sampled_from("aZäß é.!?,;:- \n\t\"'«»()12。、あ😀\u0301\u200d\ufe0f\u2028\u00a0*>#"), max_size=200)
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=200)  # lone surrogates and controls included


def words(text: str) -> int:
    return len(text.split())


def octets(text: str) -> int:
    return len(text.encode())


def parse(text: str, language: str = "de", target: str = "de", limit: int = 50) -> Document:
    return Document.parse(text, language, target, limit, octets)


def sentences(text: str, language: str = "de") -> list[str]:
    return [piece.text for piece in parse(text, language, language, 1000).sentences]


@given(PROSE | ANY_TEXT, LANGUAGES, st.integers(1, 60))
@example("a" * 300, "de", 7)
@example("e" + "\u0301" * 200, "de", 9)
@example("\r\n\r\n  a\rb\u0085c", "en", 5)
def test_identity_gives_the_text_back(text: str, language: str, limit: int) -> None:
    text = normalise(text)
    document = Document.parse(text, language, language, limit, octets)
    assert "".join(piece.text for piece in document.pieces) == text
    assert [piece.text for piece in document.pieces] == [
        text[piece.start : piece.start + len(piece.text)] for piece in document.pieces
    ]
    joined, spans = document.join([piece.text for piece in document.sentences])
    marks = str.maketrans("", "", BIDI)  # those in no pair are left out, and nothing else
    assert joined == text or joined.translate(marks) == text.translate(marks) != text
    assert [joined[start:end] for start, end in spans] == [piece.text for piece in document.sentences]


@given(PROSE | ANY_TEXT, st.integers(4, 60))
def test_every_sentence_fits_and_has_something_to_translate(text: str, limit: int) -> None:
    for piece in parse(normalise(text), limit=limit).sentences:
        assert octets(piece.text) <= limit
        assert is_translatable(piece.text)
        assert piece.text == piece.text.strip()


@given(PROSE | ANY_TEXT)
def test_every_letter_is_translated(text: str) -> None:
    for piece in parse(normalise(text)).pieces:
        one = sum(map(str.isalnum, piece.text)) == 1  # a letter alone, as of a list or a formula
        assert piece.translatable or not is_translatable(piece.text) or one or len(piece.text) <= 8  # "iv) "


def test_layout_stays_and_only_sentences_are_translated() -> None:
    text = "  - Hallo Welt. Wie geht es?  \n\n\t* Zwei 😀\n> Zitat\n1. Eins\n2. Zwei\n# Titel\n 😀 Ende ❤️\n"
    document = parse(text)
    assert [piece.text for piece in document.sentences] == [
        "Hallo Welt.", "Wie geht es?", "Zwei", "Zitat", "Eins", "Zwei", "Titel", "Ende",
    ]  # fmt: skip
    joined, _ = document.join(["A.", "B?", "C", "D", "E", "F", "G", "H"])
    assert joined == "  - A. B?  \n\n\t* C 😀\n> D\n1. E\n2. F\n# G\n 😀 H ❤️\n"


def test_a_date_is_no_numbered_list() -> None:
    assert sentences("3. Oktober ist Feiertag.") == ["3. Oktober ist Feiertag."]
    assert sentences("3. Oktober ist Feiertag.\n4. Auch.") == ["Oktober ist Feiertag.", "Auch."]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Haus\tHund\t\tKatze", ["Haus", "Hund", "Katze"]),
        ("Datei öffnen\tStrg+O", ["Datei öffnen", "Strg+O"]),
        ("Name    Anna Müller", ["Name", "Anna Müller"]),
        ("| Name | Preis |  | Rest |", ["Name", "Preis", "Rest"]),
        ("Datei > Öffnen > Neu", ["Datei", "Öffnen", "Neu"]),
        # Not within what a sentence quotes, or puts in brackets.
        ("Auf »Datei → Öffnen« klicken!", ["Auf »Datei → Öffnen« klicken!"]),
        ("Auf „Datei > Öffnen“ und „Ja“ klicken", ["Auf „Datei > Öffnen“ und „Ja“ klicken"]),
        ("Das Menü (Datei → Öffnen) zeigen", ["Das Menü (Datei → Öffnen) zeigen"]),
        ("„Datei > Öffnen“", ["Datei", "Öffnen"]),
        ('"rot" | "grün"', ["rot", "grün"]),
        ('rot 3" | grün 4" | blau', ['rot 3"', 'grün 4"', "blau"]),
        ("(rot\tgrün) blau", ["(rot", "grün) blau"]),
        ("Start » Haus › Hund · Tee → Wein • Rest", ["Start", "Haus", "Hund", "Tee", "Wein", "Rest"]),
        ("5 < 10 und 10 > 5 ist wahr", ["5 < 10 und 10 > 5 ist wahr"]),
        ("(Das Haus. Es ist alt.)", ["Das Haus.", "Es ist alt."]),
        ("„Guten Tag“", ["Guten Tag"]),
        ('["Guten Tag!"]', ["Guten Tag!"]),
        ("« Bonjour »\t[Musik]", ["Bonjour", "Musik"]),
        ("„Ja“, sagte er, „so“", ["„Ja“, sagte er, „so“"]),
        ("(so) und (so)", ["(so) und (so)"]),
        ("1.2 Das Haus", ["Das Haus"]),
        ("1.2.3. Das Haus", ["Das Haus"]),
        ("a) Das Haus", ["Das Haus"]),
        ("IV. Das Haus", ["Das Haus"]),
        ("V. Müller", ["V. Müller"]),
        ("(iii) Das Haus", ["Das Haus"]),
        ("1.1 Das Haus ......... 12", ["Das Haus"]),
        ("Das Haus . . . . . . 12", ["Das Haus"]),
        ("Ort ................, den ..........", ["Ort", ", den"]),
        ("Na ja... so", ["Na ja... so"]),
        ("Geschlecht: [ ] Mann  [x] Frau", ["Geschlecht:", "Mann", "Frau"]),
        ("□ ledig □ verheiratet  ☒ anderes", ["ledig", "verheiratet", "anderes"]),
        ("Ja|Nein|Abbrechen", ["Ja", "Nein", "Abbrechen"]),
        ("a|b und |c", ["a|b und |c"]),
        ("(  ) ja   [x] Nein   [___] so", ["ja", "Nein", "so"]),
        ("24.12. Heiligabend", ["Heiligabend"]),
        ("1.5 million people", ["1.5 million people"]),
        ("[1] Das Haus ist alt. [2]", ["Das Haus ist alt."]),
        ("§ 5 Haftung", ["Haftung"]),
        ("→ Weiter →", ["Weiter"]),
        ("Preis* †", ["Preis"]),
        ("===== Kapitel =====", ["Kapitel"]),
        ("¶ Text \U0001fa77", ["Text"]),
        ("\uf0e0 Text \U000f0001", ["Text"]),  # icons of a font
    ],
)
def test_what_parts_and_encloses_a_line_is_layout(text: str, wanted: list[str]) -> None:
    document = parse(text, limit=1000)
    assert [piece.text for piece in document.sentences] == wanted
    assert document.join(wanted)[0] == text


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "😀", "😀👨‍👩‍👧 ❤️", "...", "?!", "12 + 3 = 15", "1️⃣"])
def test_nothing_to_translate(text: str) -> None:
    assert parse(normalise(text)).sentences == ()


def test_scripts_without_spaces_get_them_in_languages_that_have_them() -> None:
    document = parse("今日は。元気ですか？", "ja", "en")
    assert document.join(["Hello.", "How are you?"])[0] == "Hello. How are you?"
    assert document.join(["Hello.", "How are you?"])[1] == [(0, 6), (7, 19)]


def test_long_sentences_split_at_clauses_then_words_then_anywhere() -> None:
    clauses = "Der Bahnhof ist alt, das Haus ist gross, und der Morgen ist kalt."
    assert split_long(clauses, 6, words) == [
        "Der Bahnhof ist alt, ",
        "das Haus ist gross, ",
        "und der Morgen ist kalt.",
    ]
    assert split_long("a b c d e f g", 3, words) == ["a b c ", "d e f ", "g"] or all(
        words(piece) <= 3 for piece in split_long("a b c d e f g", 3, words)
    )
    assert split_long("x" * 10, 4, octets) == ["xxxx", "xxxx", "xx"]


@given(st.text(max_size=300), st.integers(4, 40))
def test_split_pieces_fit_and_join(text: str, limit: int) -> None:
    pieces = split_long(text, limit, octets)
    assert "".join(pieces) == text
    assert all(octets(piece) <= limit for piece in pieces)


@given(st.lists(st.text(st.sampled_from("ab ,."), min_size=1, max_size=30), min_size=1), st.integers(5, 60))
def test_sentences_are_packed_whole_where_they_fit(texts: list[str], limit: int) -> None:
    pieces = pack_sentences(texts, limit, octets)
    assert "".join(pieces) == "".join(texts)
    assert all(octets(piece) <= limit for piece in pieces)
    if max(map(octets, texts)) <= limit:
        borders = {sum(map(len, texts[:count])) for count in range(len(texts) + 1)}
        assert {sum(map(len, pieces[:count])) for count in range(len(pieces))} <= borders


def test_marks_stay_with_their_character() -> None:
    pieces = split_long("e\u0301" * 30, 8, octets)
    assert all(not piece.startswith("\u0301") for piece in pieces)


def test_a_text_to_summarize_is_cut_at_a_word() -> None:
    text = "One two three.\n\nFour  five six. Seven eight."
    assert cut_to_limit(text, 8, words) == ("One two three. Four five six. Seven eight.", False)
    assert cut_to_limit(text, 7, words) == ("One two three. Four five six. Seven", True)
    assert cut_to_limit(text, 2, words) == ("One two", True)


def test_a_text_of_long_words_is_cut_to_what_fits() -> None:
    text = "One two three. Four five six."
    assert cut_to_limit(text, 18, octets) == ("One two three.", True)
    assert cut_to_limit(text, 19, octets) == ("One two three. Four", True)
    assert cut_to_limit(text, len(text), octets) == (text, False)
    assert cut_to_limit("unbroken " * 3, 5, octets) == ("unbro", True)


def test_without_spaces_a_text_is_cut_after_a_mark() -> None:
    assert cut_to_limit("短。 很长，很长很长", 6, len) == ("短。 很长，", True)
    assert cut_to_limit("很长很长", 3, len) == ("很长很", True)


@pytest.mark.parametrize("limit", range(3, 9))
def test_what_is_kept_fits_also_where_a_further_word_saves_a_token(limit: int) -> None:
    def measure(text: str) -> int:
        return len(text.replace("a b", "c").replace("a", "aaa").replace(" ", ""))  # 1 of "a b", but 3 of "a"

    text = " ".join(["x a b"] * 5)
    kept, cut = cut_to_limit(text, limit, measure)
    assert text.startswith(kept) and measure(kept) <= limit
    assert cut and kept


@pytest.mark.parametrize(
    "text",
    [
        "a" * 20_000,
        "e" + "\u0301" * 10_000,
        "a, " * 6_000,
        "(" * 10_000 + "a",
        "\u202ea" * 5_000,
        "1. " * 5_000,
        "." * 9_000,
    ],
)
def test_hostile_text_costs_little(text: str) -> None:
    """Counted in characters measured, so that the test is the same on any machine."""
    measured = 0

    def measure(part: str) -> int:
        nonlocal measured
        measured += len(part)
        return octets(part)

    document = Document.parse(normalise(text), "de", "en", 255, measure)
    assert "".join(piece.text for piece in document.pieces) == normalise(text)
    assert measured < 60 * len(text)
