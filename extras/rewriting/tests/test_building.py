"""A lexicon from aligned text, and the command that gives a bundle one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import pytest

from tandem.extras.rewriting.building import LEAST_LINKS, build_lexicon
from tandem.extras.rewriting.command import lexicon as lexicon_command
from tandem.extras.rewriting.lexicon import Entries, Lexicon
from tandem.extras.rewriting.tests.support import shipped_lexicon
from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError, ConfigError
from tests.service.support import tiny_bundle

PAIRS = [
    ("Die Katze schläft.", "The cat sleeps."),
    ("Der Hund schläft.", "The dog sleeps."),
    ("Hier trinkt die Katze Wasser.", "Here the cat drinks water."),
    ("Hier trinkt der Hund Wasser.", "Here the dog drinks water."),
    ("Katze und Hund trinken.", "Cat and dog drink."),
    ("Wir sehen die Katze.", "We see the cat."),
    ("Wir sehen den Hund.", "We see the dog."),
    ("Das Wasser ist hier.", "The water is here."),
    ("DER HUND SCHLÄFT", "THE DOG SLEEPS"),
    ("Dort ist Kowalski.", "There is Kowalski."),
    ("Der Hund trinkt l’eau hier, und l'eau ist l’eau.", "Here the dog drinks l'eau, and l'eau is l'eau."),
]


def test_words_have_the_translations_that_they_are_linked_to_most_often() -> None:
    entries, turned = build_lexicon(*zip(*PAIRS, strict=True))
    assert (entries["Katze"], entries["Hund"], entries["Wasser"]) == (("cat",), ("dog",), ("water",))
    assert (turned["cat"], turned["dog"], turned["water"]) == (("Katze",), ("Hund",), ("Wasser",))
    assert (entries["hier"], entries["schläft"]) == (("here",), ("sleeps",))  # as they are written inside sentences
    assert entries["eau"] == ("eau",)
    assert (entries["Kowalski"], turned["Kowalski"]) == (("Kowalski",), ("Kowalski",))  # once is enough
    assert not {"sehen", "Hier", "HUND", "l'", "Katze-Wal"} & set(entries)  # too rare, or not a word by itself
    assert LEAST_LINKS == 3


def phrases(lines: Sequence[tuple[str, str]]) -> tuple[Entries, Entries]:
    """What lines add to what is learnt of phrases, in text that says what their words are."""
    before, after = (build_lexicon(*zip(*PAIRS, *some, strict=True)) for some in ((), lines))
    source, target = (
        {name: texts for name, texts in side.items() if " " in name and name not in known}
        for side, known in zip(after, before, strict=True)
    )
    return source, target


def test_a_phrase_that_several_lines_have_is_an_entry() -> None:
    entries, turned = phrases(
        [("Auf Wiedersehen!", "Goodbye!"), ("Auf  Wiedersehen", "Goodbye"), ("Bis dann!", "Bye!")]
    )
    assert (entries, turned) == ({"Auf Wiedersehen": ("Goodbye",)}, {})
    assert phrases([("Der Hund!", "The dog!"), ("Ach, der Hund!", "Oh, the dog!")])[1] == {"the dog": ("der Hund",)}
    assert phrases([("Hello World", "Hello World")] * 3) == ({}, {})  # not translated
    assert phrases([("Auf Wiedersehen 2", "Goodbye 2"), ("a b c d e f", "g h i j k l")] * 2) == ({}, {})


def test_a_phrase_of_one_line_is_an_entry_where_others_have_it_within_them() -> None:
    line, longer = ("Frohes Fest!", "Merry feast!"), ("Er wünscht ein frohes Fest.", "He wishes a merry feast.")
    apart = ("Er wünscht ein frohes, großes Fest.", "He wishes a merry, big feast.")
    entry = {"frohes Fest": ("merry feast",)}, {"merry feast": ("frohes Fest",)}
    assert phrases([line]) == phrases([longer]) == phrases([line, apart]) == ({}, {})
    assert phrases([line, longer]) == entry
    # The others mostly have the translation too.
    otherwise = [("Das war ein frohes Fest.", "That was fun."), ("Ein frohes Fest hatten wir.", "We had fun.")]
    assert phrases([line, longer, *otherwise]) == entry
    assert phrases([line, longer, *otherwise, ("Gern ein frohes Fest.", "Gladly some fun.")]) == ({}, entry[1])


def test_a_word_that_alignment_does_not_know_is_an_entry_as_phrases_are() -> None:
    line, longer = ("Tschüss!", "See you!"), ("Er sagte nie tschüss.", "He never said see you.")
    assert not {"Tschüss", "tschüss"} & set(build_lexicon(*zip(*PAIRS, line, strict=True))[0])
    assert build_lexicon(*zip(*PAIRS, line, longer, strict=True))[0]["tschüss"] == ("see you",)
    # Parts of lines are taken to follow each other, though no word of them is known, where they stand so elsewhere.
    part, again = ("Bonsoir, Katze", "Good evening, cat"), ("Hund! Bonsoir!", "Dog! Good evening!")
    assert build_lexicon(*zip(*PAIRS, part, again, strict=True))[0]["Bonsoir"] == ("Good evening",)
    crossed = ("Bonsoir, Wasser", "Water, not here")
    assert "Bonsoir" not in build_lexicon(*zip(*PAIRS, part, crossed, crossed, strict=True))[0]


def test_what_is_longer_and_translated_word_by_word_is_left_to_the_model() -> None:
    long, short = ("Der Hund trinkt hier Wasser.", "The dog drinks here water."), ("Der Hund hier.", "The dog here.")
    assert phrases([long, short] * 2) == ({"der Hund hier": ("the dog here",)}, {"the dog here": ("der Hund hier",)})
    idiom = ("Der Hund liegt dort begraben.", "The point is there.")
    assert set(phrases([idiom] * 2)[0]) == {"der Hund liegt dort begraben"}


def test_a_part_of_a_line_counts_where_a_word_of_it_is_known_in_the_other() -> None:
    begins = [("Das tut mir leid: der Hund!", "Excuse me: the dog!"), ("Das tut mir leid, Hund!", "Excuse me, dog!")]
    assert "Das tut mir leid" not in phrases(begins)[0]
    assert phrases([*begins, ("Das tut mir leid.", "Excuse me."), ("Das tut mir leid", "Excuse me")])[1] == {
        "Excuse me": ("Das tut mir leid",),
        "the dog": ("der Hund",),
    }


def test_the_translation_of_a_phrase_is_what_most_agree_with() -> None:
    answers = ["a time", "what time is it now", "what time is it", "how late is it"]
    entries, turned = phrases([("Wie spät?", f"{answer}?") for answer in answers])
    assert (entries, turned) == ({"Wie spät": ("what time is it",)}, {"what time is it": ("Wie spät",)})
    entries, _ = phrases([("Wie spät?", f"{answer}?") for answer in answers + answers[-1:] * 9])
    assert entries["Wie spät"][0] == "how late is it"
    entries, _ = phrases([("Frohes Fest!", "have a good feast!"), ("Frohes Fest!", "merry feast!")])
    assert entries["Frohes Fest"] == ("merry feast",)  # as many words


def test_a_phrase_is_spelt_as_it_mostly_is() -> None:
    lines = [("Datei öffnen", "Open File"), ("DATEI ÖFFNEN", "Open file"), ("Datei öffnen", "open file")]
    assert phrases([*lines, ("Datei öffnen", "open file")]) == (
        {"Datei öffnen": ("open file",)},
        {"open file": ("Datei öffnen",)},
    )


@pytest.mark.parametrize(("within", "translation"), [(3, ("cheers",)), (97, ("cheers",)), (98, None)])
def test_what_a_word_is_as_a_phrase_counts_where_it_often_is_one(
    within: int, translation: tuple[str, ...] | None
) -> None:
    """Three lines in a hundred are enough."""
    others = (("Hund", "dog"), ("Katze", "cat"), ("Wasser", "water"))
    text = [(f"{german} danke", f"{english} thank") for german, english in islice(cycle(others), within)]
    entries, _ = build_lexicon(*zip(*text, *[("Danke!", "cheers!")] * 3, strict=True))
    assert entries.get("danke") == translation
    assert "Danke" not in entries


def test_nothing_is_learnt_of_nothing() -> None:
    assert build_lexicon([], []) == build_lexicon(["...", "1 2 3"], ["eins", "4"]) == ({}, {})


@pytest.fixture
def text(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    for place, language in enumerate(("de", "en")):
        (tmp_path / language).write_text("".join(f"{pair[place]}\n" for pair in PAIRS), encoding="utf-8")
    return [tmp_path / "de"], [tmp_path / "en"]


def test_the_command_gives_a_bundle_a_lexicon(
    tmp_path: Path, text: tuple[list[Path], list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, out = tiny_bundle(tmp_path), tmp_path / "worded"
    lexicon_command(bundle.path, *text, out)
    assert capsys.readouterr().out == f"{out}\n"
    assert not Bundle.load(bundle.path).manifest.lexicon
    held = shipped_lexicon(out)
    assert held.translations("de", "en", "Katze") == ("cat",)
    assert held.translations("en", "de", "cat") == ()
    assert "`lexicon.tsv.gz`" in (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    (tmp_path / "de").write_text("", encoding="utf-8")
    (tmp_path / "en").write_text("", encoding="utf-8")
    lexicon_command(out, *text, in_place=True)
    assert shipped_lexicon(out) == Lexicon()


def test_a_bundle_of_both_directions_learns_both(tmp_path: Path, text: tuple[list[Path], list[Path]]) -> None:
    bundle = tiny_bundle(tmp_path, pairs=(("de", "en"), ("en", "de")))
    lexicon_command(bundle.path, *text, in_place=True)
    assert shipped_lexicon(bundle.path).translations("en", "de", "cat") == ("Katze",)


def test_the_command_says_what_is_wrong(tmp_path: Path, text: tuple[list[Path], list[Path]]) -> None:
    bundle = tiny_bundle(tmp_path)
    with pytest.raises(ConfigError, match="either --out"):
        lexicon_command(bundle.path, *text)
    with pytest.raises(BundleError, match="already something"):
        lexicon_command(bundle.path, *text, tmp_path)
    summarizer = tiny_bundle(tmp_path, "titles", task="summarize", target_language="de")
    with pytest.raises(ConfigError, match="a translator of one text"):
        lexicon_command(summarizer.path, *text, in_place=True)


def test_a_lexicon_that_was_broken_is_refused(tmp_path: Path, text: tuple[list[Path], list[Path]]) -> None:
    bundle = tiny_bundle(tmp_path)
    lexicon_command(bundle.path, *text, in_place=True)
    (bundle.path / "lexicon.tsv.gz").write_text("de\ten\n", encoding="utf-8")
    with pytest.raises(BundleError, match=r"lexicon\.tsv\.gz was altered"):
        Bundle.load(bundle.path)
