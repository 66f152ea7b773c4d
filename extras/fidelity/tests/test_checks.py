"""What a translation must have because its source has it, and how sentences end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.fidelity.checks import begun_like, ended_like, find_faults, spelt_like, to_hide
from tandem.service.text.masking import Masked
from tandem.service.text.protect import always_kept


def masked(text: str) -> Masked:
    return Masked.of(text).hide(always_kept(text, names=True))


@pytest.mark.parametrize(
    ("source", "written", "language", "lost"),
    [
        ("Nehmen Sie 2 Tabletten", "Take tablets", "en", True),
        ("Nehmen Sie 2 Tabletten", "Take two tablets", "en", False),
        ("Nehmen Sie 1 Tablette", "Take a tablet", "en", False),
        ("Nehmen Sie 2x täglich Tabletten", "Take tablets twice a day", "en", False),
        ("Um 14:30 Uhr", "At half past two", "en", False),
        ("Um 14 Uhr", "At 2 pm", "en", False),
        ("20 years ago", "Vor zwanzig Jahren", "de", False),
        ("21 years ago", "Vor einundzwanzig Jahren", "de", False),
        ("30 years ago", "Vor Jahren", "de", True),
        ("Within 30 minutes", "En trente minutes", "fr", False),
        ("Within 30 minutes", "En minutes", "fr", True),
        ("Within 30 minutes", "En minutos", "es", False),  # whose numbers in words nobody here knows
    ],
)
def test_short_numbers_are_lost_where_no_word_says_them(source: str, written: str, language: str, lost: bool) -> None:
    found = masked(source)
    assert (find_faults(found, written, language=language) == ("numbers",)) is lost
    assert bool(to_hide(found, written, ["numbers"], language=language)) is lost


@pytest.mark.parametrize(
    ("source", "written", "faults"),
    [
        ("Das Haus", "The house", []),
        ("Das Haus", "The h\ufffduse", ["characters"]),
        ("Haus \ufffd", "house \ufffd", []),
        ("Haus § Hund", "house dog", ["signs"]),
        ("Haus Hund", "house # dog", ["signs"]),
        ("50 Prozent kosten 5 Euro", "50 % cost €5", []),  # a sign in one language is a word in another
        ("Ich liebe dich 🩷", "I love you 💷", ["signs"]),
        ("Im Jahr 1984 waren es 12.345", "In 1984 it was 12,345", []),
        ("Im Jahr 1984 waren es 12345", "In 1985 it was 12 345", ["numbers"]),
        ("Es sind 12 von 100", "It is a dozen of a hundred", []),
        ("Im 21. Jahrhundert", "In the 210 century", ["numbers"]),
        ("Um 14:30 Uhr in Saal 5", "At 2:30 p.m. in hall 5", []),
        ("At 2:30 p.m. and 12:15 a.m.", "Um 14:30 und 0:15 Uhr", []),
        ("Werte von 0 bis 69", "values from 00 to 69", []),
        ("Zwei von 3", "2 of 3", []),
        ("12 Stück", "a dozen pieces", []),
        ("Hallo {name}!", "Hello {name} {name}!", ["parts"]),
        ("Siehe https://a.b/c", "See there", ["parts"]),
        ("Haus (alt)", "house (old", ["brackets"]),
        ("Haus (alt)", "old house", ["brackets"]),
        ("Haus", "house (old)", []),
        ("Er sagt „so“", 'He says "so', ["brackets"]),
        ("Er sagt „so“", "He says so", []),  # half of all references have fewer quotation marks, or other ones
        ("Er sagt „so“", 'He says "so"', []),
        ("Er sagt „so“", "He says “so»", ["brackets"]),
        ("Tippe auf „Weiter“.", "Tap „“.", ["brackets"]),
        ("Haus (alt) und so", "House ( ) and so", ["brackets"]),
        ("Zeichen wie „→“ und „so“", "signs such as “→” and “so”", []),
        ("Er sagt „so“ und „nein“", 'He says "so" and "no"', []),
        (":) so", ":( so", []),  # not balanced in the source
        ("Das Haus", "...", ["words"]),
        ("Das {name}", "{name}", ["words"]),
        ("12:30", "12.30", []),
        ("Haus & Hof", "& house yard", ["signs"]),
        ("Haus & Hof", "house & yard", []),
        ("Plan B und das ß", "plan B and it", ["signs"]),
        ("Die X-Taste, 5 m, um 10 h", "The key, 5 meters", []),
        ("Taste X drücken", "X-key", []),
        ("étudiant(e)s", "student()", []),
        ("Press 'OK' now", "Drücke 'OK jetzt", ["brackets"]),
        ("Press 'OK' now", "Drücke „OK“ jetzt", []),
        ("The dogs' house", "Das 'Haus", []),
    ],
)
def test_what_is_at_fault(source: str, written: str, faults: list[str]) -> None:
    assert list(find_faults(masked(source), written)) == faults


@pytest.mark.parametrize(
    ("source", "written", "hidden"),
    [
        ("Haus § Hund ‰", "house ‰ dog", ["§"]),
        ("1984 und 2024", "1984 and 2023", ["2024"]),
        ("Seite 3 von 17", "page 3 of 71", ["17"]),
        ("Haus (alt)", "house (old", ["(", ")"]),
        ("Tippe auf „Weiter“", "Tap „“", ["„", "“"]),
        ("Das Haús ist alt", "The \ufffd is old", ["Haús"]),
        ("Das Haus", "...", []),
        ("Łukasz aus Łódź", "Śukasz of Łódź", ["Łukasz", "Łódź"]),
        ("Łukasz aus Łódź", "Łukasz of Łódź", []),
        ("3½ km, ½ Tasse", "30 km, a cup", ["3½", "½"]),
        ('24" breit', "24 wide", ['24"']),
        ('Der 24" breite „Schirm“', 'The 24" wide "screen"', []),
        ("Haus • 24 §", "house", ["•", "§"]),
        ("Plan B am Berg", "plan", ["B"]),
        ("Press 'OK', now", "Drücke 'OK, jetzt", ["'", "'"]),
    ],
)
def test_what_is_lost_is_hidden_next(source: str, written: str, hidden: list[str]) -> None:
    rare = {*"½Łź"}
    places = to_hide(masked(source), written, find_faults(masked(source), written, rare), rare)
    assert [part.source for _, part in places] == hidden


PARTS = st.sampled_from(
    ["Haus", "{x}", "🩷", "§", "1984", "(", ")", '"', "„", " ", "*", "é", ".", "https://a.b", "#tag"]
)


@given(st.lists(PARTS).map(" ".join), st.lists(PARTS).map(" ".join))
def test_no_text_is_at_fault_beside_itself_and_what_is_hidden_was_not(source: str, written: str) -> None:
    text = masked(source)
    assert find_faults(text, source) == ()
    hidden = text.hide(to_hide(text, written, find_faults(text, written)))
    assert hidden.source == hidden.target == source
    assert len(hidden.hidden) >= len(text.hidden)


@pytest.mark.parametrize(
    ("source", "written", "wanted"),
    [
        ("Ich liebe dich", "I love you.", "I love you"),
        ("Danke!", "Thank you.", "Thank you!"),
        ("Wer?", "Who", "Who?"),
        ("Achtung:", "Attention.", "Attention:"),
        ("今日は。", "Hello.", "Hello."),
        ("Qui ?", "Who?", "Who?"),
        ("Who?", "Qui ?", "Qui ?"),
        ("in den USA", "in the U.S.", "in the U.S."),
        ("Brot und so weiter", "bread etc.", "bread etc."),
        ("Das war's...", "That's it.", "That's it..."),
        ("„So.“", "“So.”", "“So.”"),
        ('"Nicht", sagt sie, "so."', '"Don\'t," she says, "go"', '"Don\'t," she says, "go."'),
        ("(Siehe unten.)", "(See below)", "(See below.)"),
        ('Er sagt: "So."', 'He says "so".', 'He says "so".'),
        ("Haus", ".", "."),
        ("", "", ""),
    ],
)
def test_a_sentence_ends_like_its_source(source: str, written: str, wanted: str) -> None:
    assert ended_like(written, source) == wanted
    assert ended_like(wanted, source) == wanted


@pytest.mark.parametrize(
    ("source", "written", "wanted"),
    [
        ("Mo–Fr 9–17 Uhr", "Mon-Fri 9-17 o'clock", "Mon-Fri 9–17 o'clock"),
        ("9–17 und 9–17", "9-17 and 9-17", "9–17 and 9–17"),
        ("1914–1918", "1914–1918", "1914–1918"),
        ("9-17 Uhr", "9-17 o'clock", "9-17 o'clock"),
        ("3–5", "13-5 and 3-5-7", "13-5 and 3-5-7"),
        ("Die U.S.A. sind groß", "The U.S.A are big", "The U.S.A. are big"),
        ("Ein Ph.D., so", "A Ph.D, so", "A Ph.D., so"),
        ("z.B. so", "e.g. so", "e.g. so"),
        ("Python 2.0 ist da", "Python 2,0 is here", "Python 2.0 is here"),
        ("für $1,000.00 mehr", "for $1.000,00 more", "for $1,000.00 more"),
        ("1.500 mehr", "1,500 more", "1,500 more"),
        ("um 8.30 Uhr", "at 8:30", "at 8:30"),
    ],
)
def test_numbers_and_abbreviations_keep_their_marks(source: str, written: str, wanted: str) -> None:
    assert spelt_like(written, source, "en") == wanted


@pytest.mark.parametrize(
    ("source", "written", "wanted"),
    [
        ("Preise (in €)", "prices (in€)", "prices (in €)"),
        ("Na + Cl → NaCl", "Na+ Cl→NaCl", "Na + Cl → NaCl"),
        ("5 € und 3 % (leer)", "5€ and 3% ( empty )", "5€ and 3% (empty)"),
        ("A+B und C + D ( so)", "A+B and C+ D ( so)", "A+B and C+ D ( so)"),
        ("[ ] so", "[ ] so ( x)", "[ ] so ( x)"),
    ],
)
def test_signs_and_brackets_have_the_spaces_of_the_source(source: str, written: str, wanted: str) -> None:
    assert spelt_like(written, source) == wanted


@pytest.mark.parametrize(
    ("source", "written", "wanted"),
    [
        ("Zeile zwei", "row two", "Row two"),
        ("„Zeile zwei“", "“row two”", "“Row two”"),
        ("zeile zwei", "row two", "row two"),
        ("Das iPhone", "iPhone here", "iPhone here"),
        ("Datei main.c fehlt", "main.c is missing", "main.c is missing"),
        ("5 Häuser", "5 houses", "5 houses"),
        ("Wert $x", "$foo", "$foo"),
        ("École", "école", "École"),
    ],
)
def test_a_translation_begins_like_its_source(source: str, written: str, wanted: str) -> None:
    assert begun_like(written, masked(source)) == wanted


@pytest.mark.parametrize(
    ("source", "written", "language", "ended"),
    [
        ("Er rief: „Geh!“", "He called: “Go.”", "en", "He called: “Go!”"),
        ("Neu (siehe unten!)", "New (see below.)", "en", "New (see below!)"),
        ("Er rief: „Geh.“", "He called: “Go.”", "en", "He called: “Go.”"),
        ("»Komm her!«, rief er.", "“Come here.”, he called.", "en", "“Come here!”, he called."),
        ("»Komm her!«, rief er.", "“Come here,” he called.", "en", "“Come here!” he called."),
        ("»Komm her«, rief er.", "“Come here,” he called.", "en", "“Come here,” he called."),
        (
            '"Why?" he asked. "No!"',
            "« Pourquoi », demanda-t-il. « Non ! »",
            "fr",
            "« Pourquoi », demanda-t-il. « Non ! »",
        ),
        ('"Why?" he asked.', "« Pourquoi. », demanda-t-il.", "fr", "« Pourquoi ? », demanda-t-il."),
        ("You have %d messages!", "Vous avez %d messages!", "fr", "Vous avez %d messages !"),
        ("Are you sure?", "Êtes-vous sûr ?", "fr", "Êtes-vous sûr ?"),
        ("Done!", "Fait.", "fr", "Fait !"),
        ("Done!", "Fertig.", "de", "Fertig!"),
        ("Das ist so", "That is so.", "en", "That is so"),
        ("“It is so,” he said.", 'Er sagte: "Es ist so."', "de", 'Er sagte: "Es ist so."'),
        ("“It is so,” he said!", 'Er sagte: "Es ist so"', "de", 'Er sagte: "Es ist so"!'),
    ],
)
def test_a_translation_ends_as_its_source_does(source: str, written: str, language: str, ended: str) -> None:
    assert ended_like(written, source, language) == ended
