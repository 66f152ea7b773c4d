"""Where sentences end in German, English and French: abbreviations, ordinals, names, brackets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.service.text.segmentation import split_sentences

ABBREVIATIONS = {
    "de": """z. B.|z.B.|d. h.|d.h.|u. a.|i. d. R.|z. T.|v. a.|s. o.|bzw.|ca.|evtl.|ggf.|inkl.|zzgl.|vgl.|Dr.|Prof.|Nr.
        |Abs.|Art.|Kap.|Abb.|Tab.|S.|Bd.|Hr.|Fr.|St.|Str.|Tel.|Mio.|Mrd.|max.|min.|mind.|geb.|Hrsg.|sog.|insb.|Aufl.
        |Dipl.-Ing.|Fa.|Anm.|bspw.|einschl.|Ziff.|Art.-Nr.|Inh.|z. Hd.""",
    "en": """e.g.|i.e.|Mr.|Mrs.|Ms.|Dr.|Prof.|St.|vs.|cf.|et al.|Fig.|Figs.|Eq.|Sec.|No.|vol.|Vol.|pp.|ca.|approx.|dept.
        |Gen.|Col.|Capt.|Lt.|Rev.|Gov.|Sen.|Mt.|Ft.|ch.|ed.|est.|min.|max.|Tel.|resp.|incl.|tbsp.""",
    "fr": """p. ex.|c.-à-d.|M.|MM.|Mme.|Mlle.|Dr.|Pr.|Me.|St.|Ste.|cf.|env.|éd.|fig.|chap.|vol.|p.|art.|tél.|boul.|ex.
        |réf.|max.|min.|trad.|Mgr.|op. cit.""",
}
FRAMES = {"de": ("Das ist", "Haus am Weg."), "en": ("This is", "House."), "fr": ("Ceci est", "Maison au bord.")}
CASES = [(language, word.strip()) for language, words in ABBREVIATIONS.items() for word in words.split("|")]


@pytest.mark.parametrize(("language", "word"), CASES)
def test_no_sentence_ends_with_an_abbreviation_of_what_follows(language: str, word: str) -> None:
    before, after = FRAMES[language]
    for follows in (after.lower(), after) if word != "op. cit." else (after.lower(),):
        text = f"{before} {word} {follows}"
        assert split_sentences(text, language) == [text]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Er kommt am 1. Mai, am 2. Juni und im 3. Jahr. Dann nicht.", 2),
        ("de", "Das 19. Jahrhundert war lang. Zum 3. Mal schon.", 2),
        ("de", "Er kam am 5. Sie ging am 6. Dann war Ruhe.", 3),
        ("de", "Sie wohnt in Nr. 5. Er auch.", 2),
        ("de", "menschen halten abstand. vermeiden augenkontakt.  gehen weiter.", 3),
        ("en", "It ends at 5 p.m. GMT. Come at 7 a.m. Tuesday. It is 8 a.m. The sun is up.", 4),
        ("de", "Er rief: ‚Halt!‘ Dann ging er. Sie rief: ›Halt!‹ Dann ging sie.", 4),
        ("de", "Der Laden hat alle Preise erhöht. hier", 2),
        ("de", "Ich trinke lieber Kaffee als Tee. so", 2),
        ("de", "Es geschah vor einem Jahr. oben.", 2),
        ("de", "Ein Haus, ein Hund usw. anzeigen", 1),
        ("de", "In 25 Min. hochladen", 1),
        ("de", "Alle Preise exkl. gesetzl.", 1),
        ("de", "Das steht in Abb. unten", 1),
        ("de", "Das kostet 5 Tsd. mehr", 1),
        ("de", "Das Feld Kontonr. und das Feld Lagerreg. buchen, einschl. allem, betr. euch.", 1),
        ("de", "Die Datei System.Out. ist da", 1),
        ("de", "Er bezahlt es inkl. Steuer. Sie nicht, d. h. später. Gut.", 3),
        ("de", "Das war im 5. Jh. Danach kam nichts. Am Hbf. war es um 9 Uhr.", 3),
        ("en", "He came at 5 p.m. She left at 6 p.m. and went home.", 2),
        ("en", "She has a Ph.D. Her name is Ms. Jones. See ch. 5, vol. 2.", 3),
        ("en", "(This was the end.) That is another one. Now it ends.) Yes.", 3),
        ("en", "Call System.Out now. Use Node.Js then.", 2),
        ("fr", "Mme. Durand est née en 50 av. J.-C. Elle est là, p. ex. ici.", 2),
        ("fr", "Il vient le 3 oct. 2020 avec Mgr. Martin. Oui.", 2),
        ("fr", "La commande n. 12 et le no. 3. Oui. Dites non. Merci.", 4),
        ("xx", "Here it is. Yes.", 2),
        ("de", "Er wohnt z. B. in der Königstr. 5. Dr. Müller kommt am 3. Oktober.", 2),
        ("en", "Dr. Smith paid $3.50. He left at 5 p.m. and went home. See e.g. Fig. 3.", 3),
        ("fr", "M. Dupont est là. « Vraiment ? » dit-elle. Oui !", 3),
        ("ja", "今日は。元気ですか？", 2),
        ("xx", "Hello. World.", 2),
    ],
)
def test_sentences_end_where_readers_would_say(language: str, text: str, expected: int) -> None:
    found = split_sentences(text, language)
    assert "".join(found) == text
    assert len(found) == expected, found


@given(
    st.text(st.sampled_from("aZ.Äéz0 \t)»\"'!?-今。") | st.characters(exclude_categories=["Cs"]), max_size=60),
    st.sampled_from(["de", "en", "fr", "ja", "xx", "de-AT"]),
)
def test_nothing_is_lost(text: str, language: str) -> None:
    found = split_sentences(text, language)
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("fr", "Selon l'art. 5 du code, le contrat est nul."),
        ("fr", "Il habite l’av. Foch, à 12 bd. Voltaire."),
        ("fr", "Il y a qu'env. 5 personnes d'apr. Hugo."),
        ("en", "Open Mon. to Fri. from 9 to 5."),
        ("de", "Gem. Satzung (ebd. S. 5) gilt das."),
        ("de", "Abt. Verkauf betr. Ihre Anfrage"),
        ("de", "Am 24.12. Heiligabend."),
        ("de", "Das ist am 3. Ja\u00adnu\u00adar so.\u200b"),
    ],
)
def test_an_abbreviation_ends_no_sentence(language: str, text: str) -> None:
    assert split_sentences(text, language) == [text]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["He is big. ", "she is not."]),
        ("fr", ["C'est l'été. ", "Il fait chaud."]),
        ("de", ["Er kam am 3.5. ", "Sie ging."]),
    ],
)
def test_what_is_none_ends_one(language: str, sentences: list[str]) -> None:
    assert split_sentences("".join(sentences), language) == sentences
