"""Protected parts come back byte for byte, whatever the model, or the reply says which did not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.bundle import Bundle, Training
from tandem.service.app import create_app
from tandem.service.errors import InvalidOption
from tandem.service.settings import Settings
from tandem.service.text import protect
from tandem.service.text.masking import Hidden, Masked, merge
from tandem.service.text.protect import Protector, always_kept, literals
from tandem.service.text.spans import Span
from tests.service.support import CopyGraphs, Served, assert_error, make_engine, running, served, tiny_bundle

pytestmark = pytest.mark.anyio
KINDS = ["placeholders", "urls", "emails", "numbers"]


def found(text: str, *entries: str) -> list[str]:
    return [hidden.source for _, hidden in Protector.of(entries).find(text)]


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("placeholders", "a{name} {{ var }} ${x} #{y} %{z}, 3", "{name} {{ var }} ${x} #{y} %{z}"),
        ("placeholders", "%1$s %(foo)s %d %5.2f %", "%1$s %(foo)s %d %5.2f"),
        ("placeholders", "<x id=1/> und <b>fett</b>", "<x id=1/> <b> </b>"),
        ("placeholders", "100% of 50 %igen a < b und c > d", ""),
        ("urls", "(siehe https://a.b/c?d=(e)), www.foo.de. Ende http://", "https://a.b/c?d=(e) www.foo.de"),
        ("urls", "ftp://h/x_y! mailto:a@b.c, e.g. kein.punkt", "ftp://h/x_y mailto:a@b.c"),
        ("emails", "a.b+c@d-e.fr! <x@y.z> @kein", "a.b+c@d-e.fr x@y.z"),
        ("numbers", "1.000,50 am 3.5.2024 um 12:30, B2B v1.2 7", "1.000,50 3.5.2024 12:30 7"),
    ],
)  # fmt: skip
def test_what_each_kind_finds(kind: str, text: str, wanted: str) -> None:
    assert " ".join(found(text, kind)) == wanted


def test_literals_stand_at_word_boundaries_and_the_longest_counts() -> None:
    assert found("in finden in, binär in", "in") == ["in", "in", "in"]
    assert found("Foo Bar und Foo", "Foo", "Foo Bar") == ["Foo Bar", "Foo"]
    assert found("我爱北京", "北京") == ["北京"]
    assert found("C++ und C+++", "C++") == ["C++", "C++"]
    assert found("urls regex:x", "literal:urls", "literal:regex:x") == ["urls", "regex:x"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("setze max_filesize, countryCode und iPhone (wie app.config).", "max_filesize countryCode iPhone app.config"),
        (
            "TreeScope.Subtree, com.microsoft.azure.IngestClient: app.run() und Body()!",
            "TreeScope.Subtree com.microsoft.azure.IngestClient app.run() Body()",
        ),
        ("Hallo {userName} von %(brand)s und a@b.de", "{userName} %(brand)s a@b.de"),
        ("z.B. das Haus.Der Hund d.h. e.g. 3.5 U.S. K.o. __init__ ____ und/oder_so iPhone-Hülle", "__init__"),
        ("GitHub MitarbeiterInnen WLAN f() 1.a Ende.", "f()"),
        ("utf8mb4 (F7), W3C auf 192.168.0.1 und v1.2.3; 2.5 1.a B2-Kurs 3D", "utf8mb4 F7 W3C 192.168.0.1 v1.2.3"),
        ("/etc/fonts/, (~/.profile) und ../x oder ./run.sh. POST /a", "/etc/fonts/ ~/.profile ../x ./run.sh /a"),
        (r"von C:\Windows\System32 nach \\server\d.", r"C:\Windows\System32 \\server\d"),
        ("ls -l --all-files --size=2.", "-l --all-files --size=2"),
        ("und/oder A/B 24/7 km/h / Ein- und -ung -- 5 - 3 -- so --", ""),
    ],
)
def test_identifiers_and_placeholders_are_kept_unasked(text: str, wanted: str) -> None:
    kept = [part.source for _, part in always_kept(text, names=True)]
    assert " ".join(kept) == wanted
    assert always_kept(text, names=False) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("1.2.3 Das Haus", []),  # of a section
        ("so\n  1.2.3. Das Haus", []),
        ("1.2.3 das haus", ["1.2.3"]),
        ("Das Haus 1.2.3 Ist neu", ["1.2.3"]),
        ("v1.2.3 Das Haus", ["v1.2.3"]),
    ],
)
def test_the_number_of_a_section_is_layout(text: str, kept: list[str]) -> None:
    assert [part.source for _, part in always_kept(text, names=True)] == kept


@pytest.mark.parametrize(
    "word",
    ["a_" * 20_000, "aB" * 20_000, "ab.cd" * 20_000, "Ab_c.d" * 20_000 + "-", "/a" * 20_000 + "-", "/-" * 20_000],
)
def test_identifiers_are_found_in_linear_time(word: str) -> None:
    """Each would take minutes, were it tried from all of its parts."""
    assert [part.source for _, part in always_kept(word, names=True)] == [word]


def test_a_script_without_spaces_has_no_endless_words() -> None:
    assert always_kept(SIGNS, names=True) == [] != always_kept("ab" * 150, names=True)


LETTERS = "".join(chr(ord("a") + number * number // 3 % 26) for number in range(200))
SIGNS = "".join(chr(ord("一") + number) for number in range(300))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("das haus 🍕👍🏽, ist alt. 🎉 das 👨‍👩‍👧!", ["das haus , ist alt.", "das !"]),
        ("das (مرحبا) ist → 日本", ["das ( ) ist"]),
        ("日本 🍕 مرحبا بالعالم", []),
    ],
)
async def test_what_no_model_can_read_comes_back(service: Served, text: str, read: list[str]) -> None:
    """The vocabulary has no piece for these signs and letters."""
    reply = await service.translate(text)
    assert reply.json() == {"translatedText": text}
    decoded = [service.bundle.source_vocabularies[0].decode(ids) for ids in service.graphs.encoded]
    assert sorted(" ".join(re.sub("⟨ph[0-9]⟩", " ", seen).split()) for seen in decoded) == sorted(read)


@pytest.mark.parametrize("term", ["countryCode", "utf8mb4", "das utf8mb4"])
async def test_terms_go_before_what_nobody_asked_for(service: Served, term: str) -> None:
    body = (await service.translate(f"wo ist {term}?", glossary={term: "it"})).json()
    assert body["translatedText"] == "wo ist it?"


async def test_addresses_come_back_though_nobody_asked(service: Served) -> None:
    addresses = ("a@b.de", "https://a.de/?x=1")
    text = f"schreibe an {addresses[0]} oder {addresses[1]}."
    assert (await service.translate(text)).json() == {"translatedText": text}
    vocabulary = service.bundle.source_vocabularies[0]
    assert not any(one in vocabulary.decode(ids) for ids in service.graphs.encoded for one in addresses)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a" * 19_000, []),
        ("das haus " + "f0" * 101 + " ist alt\n" + "-" * 300, ["das haus ist alt"]),
        (LETTERS, [LETTERS]),  # no two of its pieces are equal, which would be read once
        (SIGNS, []),  # a script that the model cannot read
    ],
)
async def test_words_without_end_come_back_unread(service: Served, text: str, read: list[str]) -> None:
    reply = await service.translate(text, protect=["urls"])
    assert reply.json() == {"translatedText": text, "protected": []}
    vocabulary = service.bundle.source_vocabularies[0]
    seen = "".join(vocabulary.decode(ids) for ids in service.graphs.encoded)
    # In the order of the batch, which is none of the text.
    assert sorted(re.sub("⟨ph[0-9]⟩|\\s", "", seen)) == sorted(re.sub("\\s", "", "".join(read)))


@given(st.lists(st.text("aB-(", min_size=1, max_size=4), min_size=1, max_size=6), st.text("aB-( ", max_size=30))
def test_literals_in_a_tree_find_what_a_list_of_them_finds(texts: list[str], text: str) -> None:
    def alone(one: str) -> str:
        return (r"(?<!\w)" * one[0].isalpha()) + re.escape(one) + (r"(?!\w)" * one[-1].isalpha())

    listed = re.compile("|".join(alone(one) for one in sorted(texts, key=len, reverse=True)))
    assert [one.span() for one in literals(texts).finditer(text)] == [one.span() for one in listed.finditer(text)]


def test_what_literals_have_in_common_is_compared_once() -> None:
    many = literals([*("-" * 450 + chr(0x4E00 + number) for number in range(99)), "zz"])
    assert len(many.pattern) < 3 * 450
    assert [one[0] for one in many.finditer("-" * 451 + "\u4e05 zz")] == ["-" * 450 + "\u4e05", "zz"]


def test_overlapping_places_count_once_and_the_longest_of_the_first_wins() -> None:
    assert found("https://a.b/12/{id}?x=3 4", *KINDS) == ["https://a.b/12/{id}?x=3", "4"]


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)*b", "(?:a{0,30}){0,30}", "(.*)*x", "a*a*a*a*a*a*b", "(?i)(é|a)+!", ""]
)
def test_hostile_expressions_cost_linear_time(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With backtracking, each of the first six would take longer than anyone's life on this text."""
    monkeypatch.setattr(protect, "MAX_SECONDS", float("inf"))
    spans = [span for span, _ in Protector.of([f"regex:{pattern}"]).find("a" * 20_000 + "ü")]
    assert sum(span.end - span.start for span in spans) <= 20_001


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "(?:(?:x{1000}){1000}){1000}", "[^a"])
def test_expressions_that_are_not_read_are_named(pattern: str) -> None:
    with pytest.raises(InvalidOption, match=r"protect\.1: must be a regular expression") as raised:
        Protector.of(["urls", f"regex:{pattern}"])
    assert raised.value.field == "protect.1"


TEXTS = st.text(st.one_of(st.sampled_from("aß1 .{}<>/@:\n\ue000\u0301é"), st.characters(exclude_categories=["Cs"])))


@given(text=TEXTS, cuts=st.lists(st.integers(0, 40), max_size=8))
def test_what_is_masked_comes_back_however_it_is_cut(text: str, cuts: list[int]) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    pairs = zip(places[::2], places[1::2], strict=False)
    spans = [(Span(*pair), Hidden.kept(text[slice(*pair)])) for pair in pairs]
    masked = Masked.of(text).hide(spans)
    assert masked.source == masked.target == text
    middle = len(masked.text) // 2
    halves = list(masked.divide([masked.text[:middle], masked.text[middle:]]))
    assert "".join(half.source for half in halves) == text
    letters = [(Span(at, at + 1), Hidden("", "X", "term")) for at, one in enumerate(masked.text) if one == "a"]
    again = masked.hide(letters)
    assert again.target.count("X") - text.count("X") == len(letters)
    assert len(again.hidden) == len(masked.hidden) + len(letters)


def test_merged_places_do_not_overlap_and_the_first_win() -> None:
    def at(*places: tuple[int, int]) -> list[tuple[Span, Hidden]]:
        return [(Span(*place), Hidden.kept("x")) for place in places]

    assert merge(at((2, 4), (8, 9)), at((0, 3), (4, 6), (6, 9), (9, 10))) == at((2, 4), (4, 6), (8, 9), (9, 10))


@given(text=TEXTS)
def test_all_kinds_read_any_text(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:  # garbage of all tests, collected meanwhile, counts as time
        patch.setattr(protect, "MAX_SECONDS", float("inf"))
        spans = [span for span, _ in Protector.of([*KINDS, "regex:.a?"]).find(text)]
    assert all(one.end <= other.start for one, other in pairwise(spans))


# --- through the service ---


async def test_what_is_protected_is_read_as_placeholders_and_comes_back(service: Served) -> None:
    text = "Hallo {name}, https://a.de/?x=1. Der Morgen kostet 12,50 und {name}! Schreibe an a@b.de."
    body = (await service.translate(text, protect=KINDS)).json()
    assert body["translatedText"] == text
    assert body["protected"] == [
        {"text": one, "kept": True} for one in ("{name}", "https://a.de/?x=1", "12,50", "a@b.de")
    ]
    known = set(service.bundle.target_vocabulary.placeholders)
    used = [[token for token in source if token in known] for source in service.graphs.encoded]
    assert sorted(map(len, used)) == [1, 2, 2]
    assert "protected" not in (await service.translate(text)).json()


async def test_expressions_that_take_too_long_are_refused(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = ["numbers", "regex:a.c"]
    assert (await service.translate("Abc 1 abc.", protect=entries)).status_code == 200
    monkeypatch.setattr(protect, "MAX_SECONDS", 0.0)
    body = assert_error(await service.translate("Abc 1 abc.", protect=entries), 422, "invalid_field")
    assert body["detail"][0]["field"] == "protect.1" and body["detail"][0]["value"] == "regex:a.c"


async def test_a_protected_part_is_never_divided_or_normalised(service: Served) -> None:
    text = "Der {Satz. Ende? Ja} Morgen.\n\u2028{a\nb} ist {e\u0301\x07}"
    assert (await service.translate(text, protect=["regex:{[^}]*}"])).json()["translatedText"] == text


async def test_details_count_characters_of_what_was_sent_and_of_the_reply(service: Served) -> None:
    text = "Der {ein_langer_name} Morgen. Und 123456 mal {x}. 5\n{y}"
    body = (await service.translate(text, protect=KINDS, details=True, scores=True)).json()
    assert body["translatedText"] == text
    spans = [(one["source"], one["target"]) for one in body["details"][0]["sentences"]]
    assert [text[one["start"] : one["end"]] for one, _ in spans] == [
        "Der {ein_langer_name} Morgen.",
        "Und 123456 mal {x}.",
    ]
    assert all(one == other for one, other in spans)


async def test_more_parts_than_placeholders(service: Served) -> None:
    text = " und ".join(f"{{x{number}}}" for number in range(50))
    body = (await service.translate(text, protect=["placeholders"])).json()
    assert body["translatedText"] == text
    assert len(body["protected"]) == 50 and all(one["kept"] for one in body["protected"])


async def test_the_same_part_again_and_again_needs_one_placeholder(service: Served) -> None:
    text = "Der Morgen {x} " * 10
    body = (await service.translate(text, protect=["placeholders"])).json()
    assert (body["translatedText"], body["protected"]) == (text, [{"text": "{x}", "kept": True}])


async def test_placeholders_that_a_client_types_stay_text(service: Served) -> None:
    text = "Der ⟨ph0⟩ und {x} und ⟨ph3⟩"
    assert (await service.translate(text, protect=["placeholders"])).json()["translatedText"] == text
    every = "".join(f"⟨ph{number}⟩" for number in range(16))
    both = (await service.translate(f"a {{x}} b {every} c", protect=["placeholders"])).json()
    assert both["translatedText"] == f"a {{x}} b {every} c"
    assert both["protected"] == [{"text": "{x}", "kept": True}]


async def test_nothing_but_protected_parts_is_not_decoded(service: Served) -> None:
    text = "{a} {b}\n  12 {c}"
    body = (await service.translate(text, protect=KINDS)).json()
    assert body["translatedText"] == text and len(body["protected"]) == 4
    assert service.graphs.encoded == []


@pytest.mark.parametrize(
    ("protect", "field", "message"),
    [
        (["x"] * 101, "protect", "at most 100"),
        (["urls", "regex:("], "protect.1", "regular expression"),
        (["x" * 501], "protect.0", "at most 500"),
        (["literal: "], "protect.0", "white space"),
    ],
)
async def test_limits_name_the_field_and_the_bound(
    service: Served, protect: list[str], field: str, message: str
) -> None:
    body = assert_error(await service.translate("Ja", protect=protect), 422, "invalid_field")
    assert body["detail"][0]["field"] == field and message in body["detail"][0]["message"]


class Losing(CopyGraphs):
    """Writes one token again and again, and nothing of its source."""


async def with_graphs(folder: Path, graphs: type[CopyGraphs], **changes: Any) -> AsyncIterator[Served]:
    bundle = tiny_bundle(folder, **changes)
    model = graphs(bundle.target_vocabulary.size, endless=graphs is Losing)
    engine = make_engine((bundle, model))
    app = create_app(Settings(shutdown_timeout=5), engine)
    async with running(app) as client:
        model.together.clear()
        yield Served(app, client, engine, model, bundle)


UNTAUGHT = Training((), {"data": {"placeholder_share": 0.0}}, 0, 0)


@pytest.mark.parametrize("graphs", [CopyGraphs, Losing])
async def test_a_model_without_placeholders(tmp_path: Path, graphs: type[CopyGraphs]) -> None:
    """One that copies keeps what it reads; where one does not, the parts stand between what it makes of the rest."""
    text = "Der {name} Morgen, https://a.de/b und 12."
    async for service in with_graphs(tmp_path, graphs, training=UNTAUGHT):
        body = (await service.translate(text, protect=KINDS, max_length=9)).json()
        parts = ["{name}", "https://a.de/b", "12"]
        assert [one["text"] for one in body["protected"] if one["kept"]] == parts
        assert re.search(".*".join(map(re.escape, parts)), body["translatedText"])
        known = set(service.bundle.target_vocabulary.placeholders)
        assert not known & {token for source in service.graphs.encoded for token in source}


@pytest.mark.parametrize("length", [1, 2, 3, 60])
async def test_a_model_that_writes_no_placeholders_of_its_own(tmp_path: Path, length: int) -> None:
    """However short its sentences must be."""
    async for service in with_graphs(tmp_path, Losing):
        body = (await service.translate("Der {a} und {b} und {c}.", protect=KINDS, max_length=length)).json()
        assert all(one["kept"] for one in body["protected"])
        assert [body["translatedText"].count(one) for one in ("{a}", "{b}", "{c}")] == [1, 1, 1]


async def test_a_lost_part_of_several_texts_is_reported(many_sources: dict[str, Bundle]) -> None:
    """A model that reads several languages knows no placeholders, and cannot read its texts in parts."""
    others = {"fr": "la maison 12", "cs": "dům 12"}
    async with served(many_sources) as service:
        fields = {"q": "das Haus 13", "source": "de", "target": "en", "others": others, "protect": ["numbers"]}
        body = (await service.client.post("/translate", json=fields)).json()
    assert body["translatedText"] == "la maison 12"
    assert body["protected"] == [{"text": "13", "kept": False}]


@given(data=st.data())
async def test_any_text_with_any_protection_comes_back(bundles: dict[str, Bundle], data: st.DataObject) -> None:
    words = st.sampled_from(
        ["Haus", "der", "{x}", "%1$s", "⟨ph1⟩", "12,5", "a@b.de", "http://a.b", ".", "\n", "\ue000", "ü", "😀", "<b>"]
    )
    texts = data.draw(st.lists(st.lists(words, max_size=25).map(" ".join), min_size=1, max_size=3))
    async with served(bundles) as service:
        body = (await service.translate(texts, protect=[*KINDS, "regex:Ha", "der"])).json()
    assert body["translatedText"] == texts
    assert all(one["kept"] for text in body["protected"] for one in text)


@pytest.mark.anyio
async def test_what_is_kept_in_fenced_code_leaves_its_lines_as_they_are(service: Served) -> None:
    text = "Wo ist das?\n```\ndas haus {name}\r\n  rm --force\nkostet 5.000 €\n1.234,5 €\n{name}\n```\nDas {name}."
    assert (await service.translate(text)).json()["translatedText"] == text
    assert [one.replace("⟨ph0⟩", "{name}") for one in service.read_texts] == ["Wo ist das?", "Das {name}."]
