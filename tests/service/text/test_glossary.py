"""Glossaries: what matches, how it is written, and that the translation has it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.bundle import Training
from tandem.models.text import normalise
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tandem.service.text.glossary import Glossary, capitalised, has_inner_capitals
from tests.service.support import CopyGraphs, Served, assert_error, make_engine, running, tiny_bundle

pytestmark = pytest.mark.anyio


def found(text: str, **terms: str) -> list[tuple[str, str]]:
    return [(hidden.source, hidden.target) for _, hidden in Glossary.of(terms).find(text)]


def test_the_longest_term_counts() -> None:
    terms = {"Haus": "house", "Haus am See": "lake house", "See": "lake"}
    assert found("Das Haus am See, das Haus am Meer.", **terms) == [("Haus am See", "lake house"), ("Haus", "house")]
    assert found("See am Haus am", **terms) == [("See", "lake"), ("Haus", "house")]


def test_terms_match_at_word_boundaries() -> None:
    assert found("Haustür, Hochhaus, Haus-Tür, Haus_1, (Haus)", Haus="house") == [("Haus", "house")] * 2
    assert found("C++ und C", **{"C++": "Cpp", "C": "C-lang"}) == [("C++", "Cpp"), ("C", "C-lang")]
    assert found("naïve nai\u0308ve", **{"nai": "x"}) == []


def test_terms_that_differ_in_case_from_the_text_cost_no_more_than_others() -> None:
    glossary = Glossary.of({" ".join(["aA"] * length): "x" for length in range(1, 150)})
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        assert glossary.find("Aa " * 200) == []
    finally:
        sys.setprofile(None)
    assert steps < 100 * 200


def test_white_space_is_white_space() -> None:
    assert found("Haus \n am\u00a0See", **{"Haus am See": "x"}) == [("Haus \n am\u00a0See", "x")]
    assert found("HausamSee Haus-am-See", **{"Haus am See": "x"}) == []


@pytest.mark.parametrize(
    ("text", "terms", "wanted"),
    [
        ("机器学习和机器", {"机器": "machine", "机器学习": "machine learning"}, ["machine learning", "machine"]),
        ("サーバーAPIを使う", {"API": "interface", "サーバー": "server"}, ["server", "interface"]),
        ("ภาษาไทยดี", {"ไทย": "Thai"}, ["Thai"]),
        ("हिन्दी और हिन्द", {"हिन्द": "Hind", "हिन्दी": "Hindi"}, ["Hindi", "Hind"]),
    ],
)
def test_scripts_without_spaces_and_combining_marks(text: str, terms: dict[str, str], wanted: list[str]) -> None:
    assert [target for _, target in found(text, **terms)] == wanted


def test_case_counts_only_where_a_word_has_capitals_inside() -> None:
    assert len(found("Haus HAUS haus Straße STRASSE", Haus="x", straße="y")) == 5
    assert found("iPhone IPHONE iphone Iphone", iPhone="x") == [("iPhone", "x")]
    assert found("Die Deutsche Bahn, DEUTSCHE BAHN", **{"deutsche Bahn": "x"}) == [
        ("Deutsche Bahn", "x"),
        ("DEUTSCHE BAHN", "x"),
    ]
    assert found("NATO nato", NATO="OTAN", nato="x") == [("NATO", "OTAN"), ("nato", "x")]


def test_a_capital_is_put_where_the_target_has_none_of_its_own() -> None:
    assert [capitalised(text) for text in ("house", "iPhone case", "éa", "", "3d", "\u01c6")] == [
        "House", "iPhone case", "Éa", "", "3d", "\u01c5"
    ]  # fmt: skip


@given(
    text=st.text("aAbB .-\n我們é\u0301", max_size=40),
    terms=st.dictionaries(st.text("aAb 我é", min_size=1), st.just("x")),
)
def test_what_is_found_is_there(text: str, terms: dict[str, str]) -> None:
    end = 0
    for span, hidden in Glossary.of(terms).find(text):
        assert text[span.start : span.end] == hidden.source and hidden.term in terms
        assert " ".join(hidden.source.split()).casefold() == " ".join(normalise(hidden.term).split()).casefold()
        assert span.start >= end
        end = span.end


@given(
    text=st.lists(st.sampled_from(("aA", "aa", "b", "bB", "c")), max_size=15),
    terms=st.sets(st.lists(st.sampled_from(("aA", "aa", "b", "bB", "c")), min_size=1, max_size=4).map(" ".join)),
)
def test_at_each_place_the_longest_is_found(text: list[str], terms: set[str]) -> None:
    """Beside a search that tries every term at every place."""
    wanted, place = [], 0
    while place < len(text):
        best = (0, False)
        for term in terms:
            words, strict = term.split(), has_inner_capitals(term)
            there = text[place : place + len(words)]
            if there == words if strict else [*map(str.lower, there)] == [*map(str.lower, words)]:
                best = max(best, (len(words), strict))
        if best[0]:
            wanted.append((" ".join(text[place : place + best[0]]), best[1]))
        place += best[0] or 1
    found = Glossary.of(dict.fromkeys(terms, "x")).find(" ".join(text))
    assert [(hidden.source, has_inner_capitals(hidden.term or "")) for _, hidden in found] == wanted


async def test_terms_are_enforced_and_reported(service: Served) -> None:
    text = "Der Morgen ist gut. Das Haus und der Morgen."
    glossary = {"morgen": "dawn", "Haus": "Mansion", "Bahnhof": "station"}
    body = (await service.translate([text, "Ja"], glossary=glossary, details=True, alternatives=1)).json()
    assert body["translatedText"] == ["Der dawn ist gut. Das Mansion und der dawn.", "Ja"]
    assert body["glossary"] == [
        [{"source": "morgen", "target": "dawn", "found": True}, {"source": "Haus", "target": "Mansion", "found": True}],
        [],
    ]
    sentences = body["details"][0]["sentences"]
    spans = [(text[slice(*one["source"].values())], slice(*one["target"].values())) for one in sentences]
    assert [(source, body["translatedText"][0][target]) for source, target in spans] == [
        ("Der Morgen ist gut.", "Der dawn ist gut."),
        ("Das Haus und der Morgen.", "Das Mansion und der dawn."),
    ]
    assert all("dawn" in one for one in body["alternatives"][0])


async def test_a_term_at_the_beginning_of_a_sentence_gets_its_capital(service: Served) -> None:
    glossary = {"Morgen": "dawn", "Haus": "iHouse"}
    body = (
        await service.translate("Morgen ist gut. »Haus« ist alt\nmorgen ist er da\nMorgen", glossary=glossary)
    ).json()
    assert body["translatedText"] == "Dawn ist gut. »iHouse« ist alt\ndawn ist er da\nDawn"


async def test_what_is_protected_is_no_term(service: Served) -> None:
    fields = {"protect": ["placeholders", "Morgen"], "glossary": {"haus": "x", "morgen": "y"}}
    body = (await service.translate("Das {haus} Haus, guten Morgen.", **fields)).json()
    assert body["translatedText"] == "Das {haus} x, guten Morgen."
    assert body["glossary"] == [{"source": "haus", "target": "x", "found": True}]


async def test_where_the_translation_has_the_term_anyway_it_is_left_alone(service: Served) -> None:
    """The model reads the sentence as it is, and no placeholder."""
    body = (await service.translate("Guten Morgen du", glossary={"Morgen": "dawn", "guten": "Guten"})).json()
    assert body["translatedText"] == "Guten dawn du"
    first, second = service.graphs.encoded
    known = set(service.bundle.target_vocabulary.placeholders)
    assert not known & set(first)
    assert len(known & set(second)) == 1, "only the missing term is a placeholder"


async def test_many_terms_in_one_sentence(service: Served) -> None:
    glossary = {f"w{number}x": f"T{number}" for number in range(40)}
    body = (await service.translate("Der " + " und ".join(glossary), glossary=glossary)).json()
    assert body["translatedText"] == "Der " + " und ".join(glossary.values())
    assert all(one["found"] for one in body["glossary"])


async def test_a_model_without_placeholders_translates_around_the_terms(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path, training=Training((), {"data": {"placeholder_share": 0}}, 0, 0))
    app = create_app(Settings(shutdown_timeout=5), make_engine((bundle, CopyGraphs(bundle.target_vocabulary.size))))
    fields = {"q": "Der Morgen, das Haus.", "source": "de", "target": "en", "glossary": {"Haus": "home", "der": "the"}}
    async with running(app) as client:
        body = (await client.post("/translate", json=fields)).json()
    assert body["translatedText"] == "The Morgen, das home."
    assert [one["found"] for one in body["glossary"]] == [True, True]


@pytest.mark.parametrize(
    ("glossary", "field", "message"),
    [
        ({f"a{n}": "b" for n in range(5001)}, "glossary", "at most 5000"),
        ({"a" * 501: "b"}, "glossary", "at most 500"),
        ({"a": "b" * 501}, "glossary", "at most 500"),
        ({"a": ""}, "glossary", "must not be empty"),
        (["a"], "glossary", "object"),
    ],
)
async def test_limits_name_the_field_and_the_bound(
    service: Served, glossary: dict[str, str], field: str, message: str
) -> None:
    body = assert_error(await service.translate("Ja", glossary=glossary), 422, "invalid_field")
    assert body["detail"][0]["field"].startswith(field) and message in body["detail"][0]["message"]
