"""A lexicon from aligned text, and the command that gives a bundle one."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.bundle import Bundle
from models.errors import BundleError, ConfigError
from models.lexicon import Lexicon
from tests.service.support import tiny_bundle
from training.export.commands import lexicon as lexicon_command
from training.lexicon import LEAST_LINKS, build_lexicon

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
    assert len(Bundle.load(bundle.path).lexicon) == 0
    held = Bundle.load(out)
    assert held.lexicon.translations("de", "en", "Katze") == ("cat",)
    assert held.lexicon.translations("en", "de", "cat") == ()
    assert "`lexicon.tsv`" in (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    (tmp_path / "de").write_text("", encoding="utf-8")
    (tmp_path / "en").write_text("", encoding="utf-8")
    lexicon_command(out, *text, in_place=True)
    assert Bundle.load(out).lexicon == Lexicon()


def test_a_bundle_of_both_directions_learns_both(tmp_path: Path, text: tuple[list[Path], list[Path]]) -> None:
    bundle = tiny_bundle(tmp_path, pairs=(("de", "en"), ("en", "de")))
    lexicon_command(bundle.path, *text, in_place=True)
    assert Bundle.load(bundle.path).lexicon.translations("en", "de", "cat") == ("Katze",)


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
    (bundle.path / "lexicon.tsv").write_text("de\ten\n", encoding="utf-8")
    with pytest.raises(BundleError, match=r"lexicon\.tsv was altered"):
        Bundle.load(bundle.path)
