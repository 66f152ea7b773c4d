"""Stored glossaries: what comes back is what went in, for its owner only, within bounds, also after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.accounts.errors import GlossaryLimit
from tandem.extras.accounts.glossaries import MAX_DICTIONARIES, MAX_NAME, Glossaries, GlossaryDictionary
from tandem.extras.dialects.deepl.glossaries import format_tsv, parse_entries
from tandem.service.errors import GlossaryNotFound, InvalidOption
from tandem.service.http.error_replies import InvalidFields
from tandem.service.settings import Settings
from tandem.service.text.glossary import MAX_STORED_GLOSSARY, MAX_TERM

RAILWAY = {"Gleis": "track", "Bahnsteig": "platform"}


@pytest.fixture
def glossaries() -> Iterator[Glossaries]:
    store = Glossaries(Settings(max_glossaries=3, max_glossary_characters=200))
    yield store
    store.close()


def railway(**entries: str) -> GlossaryDictionary:
    return GlossaryDictionary.of("DE", "en-GB", entries or RAILWAY)


def test_a_glossary_comes_back_as_it_was_stored(glossaries: Glossaries) -> None:
    stored = glossaries.create("ada", "Railway", [railway(), GlossaryDictionary.of("de", "fr", {"Gleis": "voie"})])
    assert stored == glossaries.get("ada", stored.id)
    assert glossaries.of_owner("ada") == [stored]
    assert [(one.source, one.target, one.count) for one in stored.dictionaries] == [("de", "en", 2), ("de", "fr", 1)]
    assert list(glossaries.entries("ada", stored.id, "DE", "EN-US").items()) == list(RAILWAY.items())


def test_others_do_not_see_it(glossaries: Glossaries) -> None:
    identifier = glossaries.create("ada", "Railway", [railway()]).id
    assert glossaries.of_owner("bob") == []
    for attempt in (
        lambda: glossaries.get("bob", identifier),
        lambda: glossaries.entries("bob", identifier, "de", "en"),
        lambda: glossaries.change("bob", identifier, "Mine", [railway()]),
        lambda: glossaries.replace("bob", identifier, railway()),
        lambda: glossaries.delete_dictionary("bob", identifier, "de", "en"),
        lambda: glossaries.delete("bob", identifier),
    ):
        with pytest.raises(GlossaryNotFound):
            attempt()
    assert glossaries.get("ada", identifier).name == "Railway"


def test_changing_adds_terms_and_replacing_does_not(glossaries: Glossaries) -> None:
    identifier = glossaries.create("ada", "Railway", [railway()]).id
    changed = glossaries.change("ada", identifier, "Trains", [railway(Gleis="rail", Zug="train")])
    assert (changed.name, changed.dictionaries[0].count) == ("Trains", 3)
    assert glossaries.entries("ada", identifier, "de", "en") == RAILWAY | {"Gleis": "rail", "Zug": "train"}
    assert glossaries.replace("ada", identifier, railway(Zug="train")).count == 1
    assert glossaries.entries("ada", identifier, "de", "en") == {"Zug": "train"}


def test_terms_of_several_are_those_of_now(glossaries: Glossaries) -> None:
    first = glossaries.create("ada", "First", [railway(Gleis="rail")]).id
    second = glossaries.create("ada", "Second", [railway()]).id

    def found(*named: str) -> list[str]:
        terms = glossaries.terms("ada", named, "DE", "en-GB")
        return [hidden.target for _, hidden in terms.find("Gleis, Bahnsteig")]

    assert found(first, second) == ["rail", "platform"]
    assert found(second, first) == ["track", "platform"]
    assert glossaries.terms("ada", (first,), "de", "en") is glossaries.terms("ada", (first,), "de", "en-US")
    glossaries.change("ada", first, None, [railway(Bahnsteig="quay")])
    assert found(first, second) == ["rail", "quay"]
    assert found() == []
    for owner, pair in (("bob", ("de", "en")), ("ada", ("en", "de"))):
        with pytest.raises(GlossaryNotFound):
            glossaries.terms(owner, (first,), *pair)


def test_deleted_means_gone(glossaries: Glossaries) -> None:
    identifier = glossaries.create("ada", "Railway", [railway()]).id
    glossaries.delete_dictionary("ada", identifier, "de", "en")
    assert glossaries.get("ada", identifier).dictionaries == ()
    with pytest.raises(GlossaryNotFound, match="de-en"):
        glossaries.entries("ada", identifier, "de", "en")
    with pytest.raises(GlossaryNotFound, match="de-en"):
        glossaries.delete_dictionary("ada", identifier, "de", "en")
    glossaries.delete("ada", identifier)
    with pytest.raises(GlossaryNotFound):
        glossaries.get("ada", identifier)


def test_what_a_caller_may_store_is_bounded(glossaries: Glossaries) -> None:
    kept = [glossaries.create("ada", f"number {number}", [railway()]).id for number in range(3)]
    with pytest.raises(GlossaryLimit, match="at most 3 glossaries, and this would make 4"):
        glossaries.create("ada", "one more", [railway()])
    glossaries.create("bob", "another's bound", [railway()])
    for attempt in (
        lambda: glossaries.replace("ada", kept[0], railway(Zug="t" * 200)),
        lambda: glossaries.change("ada", kept[0], "renamed", [railway(Zug="t" * 200)]),
    ):
        with pytest.raises(GlossaryLimit, match="at most 200 characters"):
            attempt()
    assert glossaries.get("ada", kept[0]).name == "number 0"
    assert glossaries.entries("ada", kept[0], "de", "en") == RAILWAY  # what failed changed nothing


def test_one_dictionary_per_pair_and_not_too_many(glossaries: Glossaries) -> None:
    with pytest.raises(InvalidOption, match="one dictionary per language pair"):
        glossaries.create("ada", "twice", [railway(), GlossaryDictionary.of("de", "EN-US", RAILWAY)])
    with pytest.raises(InvalidOption, match=f"must be 1 to {MAX_DICTIONARIES}"):
        glossaries.create("ada", "none", [])
    for name in ("", " ", "n" * (MAX_NAME + 1)):
        with pytest.raises(InvalidOption, match=f"1 to {MAX_NAME} characters"):
            glossaries.create("ada", name, [railway()])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "at least one"),
        ({" ": "x"}, r"entries.1.source: must not be empty"),
        ({"a": "b", "x": ""}, r"entries.2.target: must not be empty"),
        ({"a\u2028b": "x"}, "line breaks"),
        ({"a\x85b": "x"}, "control characters"),
        ({"a" * (MAX_TERM + 1): "x"}, f"at most {MAX_TERM} characters"),
        ({str(number): "x" for number in range(MAX_STORED_GLOSSARY + 1)}, f"at most {MAX_STORED_GLOSSARY} terms"),
    ],
)
def test_terms_that_are_none(entries: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        GlossaryDictionary.of("de", "en", entries)


def test_a_restart_loses_nothing(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data")
    before = Glossaries(settings)
    stored = before.create("ada", "Railway", [railway()])
    before.close()
    after = Glossaries(settings)
    assert after.of_owner("ada") == [stored]
    assert after.entries("ada", stored.id, "de", "en") == RAILWAY
    after.close()


TERMS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)


@given(st.dictionaries(TERMS, TERMS, min_size=1, max_size=5))
def test_tab_separated_values_go_there_and_back(entries: dict[str, str]) -> None:
    assert parse_entries(format_tsv(entries), "tsv", "de", "en") == entries


def test_comma_separated_values() -> None:
    text = 'Gleis,track\r\n"Müller, Maier",  Miller \n\n"sagt ""ja""",says yes,de,EN-GB\n'
    expected = {"Gleis": "track", "Müller, Maier": "Miller", 'sagt "ja"': "says yes"}
    assert parse_entries(text, "csv", "DE", "EN-US") == expected


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("Gleis", "tsv", "line 1: must be a source and a target term with one tab"),
        ("Gleis\ttrack\tx", "tsv", r"line 1: .*, but is 'Gleis\\ttrack\\tx'"),
        ("a\tb\n\na\tc", "tsv", "line 3: must not name a source term that another line has, but is 'a'"),
        ("Gleis", "csv", "one comma between"),
        ("Gleis,track,de", "csv", "but is 'Gleis,track,de'"),
        ("Gleis,voie,de,fr", "csv", "must be of the dictionary's language en, but is 'fr'"),
        ('Gleis,"tr"ack', "csv", "must be comma-separated values"),
        ("\n".join(f"{n}\tx" for n in range(MAX_STORED_GLOSSARY + 1)), "tsv", f"at most {MAX_STORED_GLOSSARY} terms"),
    ],
)
def test_lines_that_are_no_entries(text: str, kind: str, message: str) -> None:
    with pytest.raises(InvalidFields, match=message):
        parse_entries(text, kind, "de", "en")  # type: ignore[arg-type]
