"""``/postedit``, and ``/translate`` from several languages at once: what a client sends and gets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.support import Served, assert_error, served

pytestmark = pytest.mark.anyio
GERMAN, FRENCH, CZECH = "Wo ist der Bahnhof?", "Où est la gare ?", "Kde je nádraží?"
TOGETHER = {"q": GERMAN, "source": "de", "target": "en", "others": {"fr": FRENCH, "cs": CZECH}}


@pytest.fixture
async def together(many_sources: dict[str, Bundle]) -> AsyncIterator[Served]:
    """Looking at the bundle that reads German, French and Czech together, and copies the French."""
    async with served(many_sources, first="together") as service:
        yield service


@pytest.fixture
async def repair(many_sources: dict[str, Bundle]) -> AsyncIterator[Served]:
    """Looking at the post-editor from English to German, which leaves the translation as it is."""
    async with served(many_sources, first="repair") as service:
        yield service


def read(service: Served) -> set[tuple[str, ...]]:
    """What the model was given, as text: one tuple per sentence."""
    decode = service.bundle.target_vocabulary.decode
    return {tuple(decode(source[:-1]) for source in one) for one in service.graphs.together}


async def translate(service: Served, **changes: Any) -> httpx.Response:
    return await service.client.post("/translate", json={**TOGETHER, **changes})


async def postedit(service: Served, q: Any, translation: Any, **fields: Any) -> httpx.Response:
    return await service.client.post("/postedit", json={"q": q, "translation": translation, **fields})


# --- several languages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["de", "fr", "cs"])
async def test_each_language_goes_to_its_encoder_whichever_is_q(together: Served, source: str) -> None:
    texts = {"de": GERMAN, "fr": FRENCH, "cs": CZECH}
    others = {code: text for code, text in reversed(texts.items()) if code != source}
    response = await translate(together, q=texts[source], source=source, others=others)
    assert response.json() == {"translatedText": FRENCH}
    assert read(together) == {(GERMAN, FRENCH, CZECH)}


async def test_codes_are_matched_as_those_of_a_pair(together: Served) -> None:
    response = await translate(together, source="DE-AT", others={"FR": FRENCH, "cs_CZ": CZECH}, target="en-GB")
    assert response.json() == {"translatedText": FRENCH}


async def test_texts_come_back_in_order_and_without_words_unchanged(together: Served) -> None:
    fields = {"q": ["Ja.", "😀", ""], "others": {"fr": ["Oui.", "", "12"], "cs": ["Ano.", "😀", ""]}}
    response = await translate(together, **fields, alternatives=1)
    assert response.json()["translatedText"] == ["Oui.", "😀", ""]
    assert response.json()["alternatives"][1:] == [[], []]


async def test_texts_that_split_alike_are_split_and_keep_the_layout_of_q(together: Served) -> None:
    german = "- Guten Morgen.  Wie geht es?\n\n  Das Haus ist alt. 😀\n"
    others = {"fr": "Bonjour. Ça va ?\nLa maison est vieille.", "cs": "Dobré ráno. Jak se máš?\n\n\n* Dům je starý."}
    response = await translate(together, q=german, others=others, details=True)
    body = response.json()
    assert body["translatedText"] == "- Bonjour.  Ça va ?\n\n  La maison est vieille. 😀\n"
    assert read(together) == {
        ("Guten Morgen.", "Bonjour.", "Dobré ráno."),
        ("Wie geht es?", "Ça va ?", "Jak se máš?"),
        ("Das Haus ist alt.", "La maison est vieille.", "Dům je starý."),
    }
    spans = [one["source"] for one in body["details"][0]["sentences"]]
    found = [german[span["start"] : span["end"]] for span in spans]
    assert found == ["Guten Morgen.", "Wie geht es?", "Das Haus ist alt."]
    assert body["usage"]["characters"] == len(german) + sum(map(len, others.values()))
    assert body["usage"]["source_tokens"] == sum(len(ids) - 1 for one in together.graphs.together for ids in one)


async def test_texts_that_do_not_split_alike_stay_whole(together: Served) -> None:
    others = {"fr": "Bonjour, ça va ?", "cs": "Dobré ráno. Jak se máš?"}
    response = await translate(together, q="  Guten Morgen. Wie geht es?", others=others)
    assert response.json() == {"translatedText": "  Bonjour, ça va ?"}
    assert read(together) == {("Guten Morgen. Wie geht es?", *others.values())}


async def test_lines_are_kept_where_lines_or_sentences_are_equally_many_and_else_lost(together: Served) -> None:
    """As the document says."""
    german, french = "- Guten Morgen.\n\n- Wie geht es?\n", "- Bonjour.\n\n- Ça va ?"
    kept = await translate(together, q=german, others={"fr": french, "cs": "Dobré ráno. Jak se máš?"})
    assert kept.json() == {"translatedText": "- Bonjour.\n\n- Ça va ?\n"}
    together.graphs.together.clear()
    lost = await translate(together, q=german, others={"fr": french, "cs": "Dobré ráno, jak se máš?"})
    assert lost.json() == {"translatedText": "- Bonjour. - Ça va ?\n"}
    assert read(together) == {("Guten Morgen. - Wie geht es?", "Bonjour. - Ça va ?", "Dobré ráno, jak se máš?")}
    paths = (await together.client.get("/openapi.json")).json()["paths"]
    for path in ("/translate", "/postedit"):
        description = " ".join(paths[path]["post"]["description"].split())
        assert "then stands on one line" in description


async def test_a_form_has_the_others_as_json(together: Served) -> None:
    data = {**TOGETHER, "others": json.dumps(TOGETHER["others"])}
    assert (await together.client.post("/translate", data=data)).json() == {"translatedText": FRENCH}


@pytest.mark.parametrize(
    ("changes", "missing", "surplus"),
    [
        ({"others": {"fr": FRENCH}}, ["cs"], []),
        ({"others": {"fr": FRENCH, "en": "Hello"}}, ["cs"], ["en"]),
        ({"others": {"fr": FRENCH, "cs": CZECH, "en": "Hello"}}, [], ["en"]),
        ({"others": None, "source": "fr"}, ["de", "cs"], []),
        ({"others": None, "model": "together"}, ["fr", "cs"], []),
        ({"others": {"fr": FRENCH}, "model": "de-en"}, [], ["fr"]),
    ],
)
async def test_what_is_missing_or_too_much_is_named(
    together: Served, changes: dict[str, Any], missing: list[str], surplus: list[str]
) -> None:
    response = await translate(together, **changes)
    known = "fr" not in surplus  # a single bundle that has never heard of it says so
    body = assert_error(response, 404, "pair_not_served" if known else "language_not_served")
    if not known:
        assert "'fr'" in body["error"]
        return
    assert (body["detail"]["missing"], body["detail"]["surplus"]) == (missing, surplus)
    for code in (*missing, *surplus):
        assert code in body["error"]
    assert "de+fr+cs-en" in body["error"]
    assert body["detail"]["combinations"] == [{"sources": ["de", "fr", "cs"], "target": "en"}]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"others": {"fr": FRENCH, "xx": CZECH}}, 404, ("'xx'", "de+fr+cs-en")),
        ({"others": {"fr": FRENCH, "tschechisch": CZECH}}, 422, ("others.tschechisch", "language code")),
        ({"others": {"fr": FRENCH, "de-AT": CZECH}}, 422, ("others.de-AT", "another language")),
        ({"others": {"cs": CZECH, "fr": FRENCH, "FR_ca": FRENCH}}, 422, ("others.FR_ca", "another language")),
        ({"others": {"pt_BR": FRENCH, "PT-br": CZECH}}, 422, ("others.PT-br", "another language")),
        ({"others": {"fr": FRENCH, "auto": CZECH}}, 422, ("others.auto", "detection")),
        ({"others": {"fr": [FRENCH] * 2, "cs": CZECH}}, 422, ("others.fr", "as many texts as q", "1", "2")),
        ({"others": {"fr": FRENCH, "cs": ""}}, 422, ("others.cs: ", "words", "is ''")),
        ({"q": "..."}, 422, ("q: ", "words", "is '...'")),
        ({"others": {"fr": 5, "cs": CZECH}}, 422, ("others.fr", "string")),
        ({"others": [FRENCH]}, 422, ("others: must be an object of language code -> text, but is a list",)),
        ({"others": FRENCH}, 422, ("others: must be an object of language code -> text", FRENCH)),
        ({"others": {f"{n}": FRENCH for n in range(16)}}, 422, ("others: may hold at most 15 languages, but is 16",)),
        ({"others": {"fr": FRENCH, "cs": "a" * 20_000}}, 413, ("20000",)),
        ({"q": "das haus, " * 30}, 422, ("q: ", "40 tokens", "but is ", "; shorten the text, or break lines")),
        ({"others": {"fr": FRENCH, "cs": "dům, " * 40}}, 422, ("others.cs: ", "40 tokens", "shorten the text")),
    ],
)
async def test_errors_name_the_text_at_fault(
    together: Served, changes: dict[str, Any], status: int, words: tuple[str, ...]
) -> None:
    code = {404: "language_not_served", 413: "too_large", 422: "invalid_field"}[status]
    body = assert_error(await translate(together, **changes), status, code)
    for word in words:
        assert word in body["error"]


async def test_of_several_texts_the_one_at_fault_is_quoted(together: Served) -> None:
    fields = {"q": ["Guten Tag.", "Hallo."], "others": {"fr": ["Bonjour.", "Salut."], "cs": ["Ahoj.", "-" * 200]}}
    body = assert_error(await translate(together, **fields), 422, "invalid_field")
    assert (body["detail"][0]["field"], body["detail"][0]["value"]) == ("others.cs.1", "-" * 80 + "…")
    fields["others"]["cs"] = ["dům, " * 40, "Ahoj."]  # type: ignore[index]
    body = assert_error(await translate(together, **fields), 422, "invalid_field")
    assert body["detail"][0]["field"] == "others.cs.0"
    assert body["detail"][0]["value"] > 40
    assert "shorten the text" in body["detail"][0]["message"]


async def test_as_many_other_languages_as_the_bound_are_looked_at(together: Served) -> None:
    others = {f"{first}{second}": FRENCH for first in "xyz" for second in "abcde"}
    assert_error(await translate(together, others=others), 404, "language_not_served")


async def test_a_model_of_several_languages_never_answers_for_a_pair(together: Served) -> None:
    plain = await translate(together, others=None)
    assert plain.json() == {"translatedText": GERMAN}  # of the bundle de-en
    assert together.graphs.together == []


async def test_what_is_served_is_described_truthfully(together: Served) -> None:
    combination = {"sources": ["de", "fr", "cs"], "target": "en"}
    assert (await together.client.get("/languages")).json() == [
        {"code": "cs", "name": "Czech", "targets": [], "combinations": [combination]},
        {"code": "de", "name": "German", "targets": ["en"], "combinations": [combination]},
        {"code": "en", "name": "English", "targets": []},
        {"code": "fr", "name": "French", "targets": [], "combinations": [combination]},
    ]
    models = (await together.client.get("/models")).json()
    assert {one["name"]: (one["task"], one["sources"]) for one in models} == {
        "de-en": ("translate", 1),
        "titles": ("summarize", 1),
        "together": ("translate", 3),
        "repair": ("postedit", 2),
    }
    assert (await together.client.get("/readyz")).status_code == 200


async def test_sources_of_different_length_share_batches(together: Served) -> None:
    """Each axis has its own padding; the longest source decides what fits into a batch."""
    words = ("Haus ", "maison ", "dům ")
    counts = [(1, 5, 2), (4, 1, 1), (2, 2, 6), (1, 1, 1)]
    columns = [[(word * one[k]).strip() for one in counts] for k, word in enumerate(words)]
    response = await translate(together, q=columns[0], others={"fr": columns[1], "cs": columns[2]})
    assert response.json() == {"translatedText": columns[1]}
    assert read(together) == set(zip(*columns, strict=True))


# --- post-editing ---------------------------------------------------------------------------------------------------


async def test_source_and_translation_reach_the_model_in_this_order(repair: Served) -> None:
    response = await postedit(repair, "Click OK.", "Klicken OK.")
    assert response.status_code == 200
    assert response.json() == {"translatedText": "Klicken OK."}
    assert read(repair) == {("Click OK.", "Klicken OK.")}


async def test_the_reply_keeps_the_layout_of_the_translation(repair: Served) -> None:
    source = "Save the file. Close the window.\nDone"
    translation = "* Speichern der Datei.  Schließen des Fenster.\n\n\tFertig 😀"
    body = (await postedit(repair, source, translation, scores=True)).json()
    assert body["translatedText"] == translation
    assert read(repair) == {
        ("Save the file.", "Speichern der Datei."),
        ("Close the window.", "Schließen des Fenster."),
        ("Done", "Fertig"),
    }
    first = body["details"][0]["sentences"][0]
    assert translation[first["source"]["start"] : first["source"]["end"]] == "Speichern der Datei."
    assert first["token_scores"]
    assert body["model"] == "repair"


async def test_what_does_not_split_alike_is_read_whole(repair: Served) -> None:
    source, translation = "Save. Close it.\nDone.", "Speichern und schließen.\nFertig. Ja."
    assert (await postedit(repair, source, translation)).json() == {"translatedText": translation}
    assert read(repair) == {("Save. Close it.", "Speichern und schließen."), ("Done.", "Fertig. Ja.")}
    repair.graphs.together.clear()
    whole = await postedit(repair, "Save.\nClose it.", "Speichern und schließen.")
    assert whole.json() == {"translatedText": "Speichern und schließen."}
    assert read(repair) == {("Save. Close it.", "Speichern und schließen.")}


@pytest.mark.parametrize(
    ("source", "translation"), [("", "Guten Tag."), ("Hello", ""), ("", ""), ("12", "Tag"), ("a", "😀")]
)
async def test_without_text_or_translation_the_translation_comes_back(
    repair: Served, source: str, translation: str
) -> None:
    body = (await postedit(repair, source, translation, alternatives=1)).json()
    assert body == {"translatedText": translation, "alternatives": []}
    assert repair.graphs.together == []


async def test_lists_and_forms(repair: Served) -> None:
    sources, translations = ["Hello", "", "Bye"], ["Hallo", "x", "Tschüss"]
    assert (await postedit(repair, sources, translations)).json() == {"translatedText": translations}
    form = {"q": ["Hello", "Bye"], "translation": ["Hallo", "Tschüss"], "beam_size": "2", "unknown": "z"}
    response = await repair.client.post("/postedit", data=form)
    assert response.json() == {"translatedText": ["Hallo", "Tschüss"]}
    query = await repair.client.post("/postedit", params={"text": "Hello", "translation": "Hallo"})
    assert query.json() == {"translatedText": "Hallo"}


async def test_decoding_options_are_those_of_translate(repair: Served) -> None:
    fields = {"max_length": 3, "details": True, "model": "repair", "source": "en", "target": "de-DE"}
    body = (await postedit(repair, "The house is old", "das haus ist gross und alt", **fields)).json()
    assert body["usage"]["target_tokens"] == 3
    assert set(body) == {"translatedText", "details", "model", "usage", "time"}
    assert len((await postedit(repair, "Hello", "das haus ist alt", alternatives=2)).json()["alternatives"]) == 2


@pytest.mark.parametrize(
    ("changes", "status", "code", "words"),
    [
        ({"translation": None}, 422, "invalid_field", ("translation",)),
        ({"translation": ["Hallo"] * 3}, 422, "invalid_field", ("translation", "as many texts as q", "1", "3")),
        ({"translation": "a" * 20_000}, 413, "too_large", ("20000",)),
        ({"translation": "das haus, " * 30}, 422, "invalid_field", ("translation", "40 tokens")),
        ({"q": "the house, " * 30}, 422, "invalid_field", ("q", "40 tokens")),
        ({"q": ["a"] * 101, "translation": ["b"] * 101}, 422, "invalid_field", ("q", "100", "101")),
        ({"source": "fr"}, 404, "language_not_served", ("'fr'", "en-de")),
        ({"source": "de", "target": "en"}, 404, "pair_not_served", ("de-en", "en-de")),
        ({"source": "!"}, 422, "invalid_field", ("source", "language code")),
        (
            {"source": "auto"},
            422,
            "invalid_field",
            ("source", "detection ('auto') is for the source of a translation alone", "name the language"),
        ),
        ({"model": "de-en"}, 404, "model_not_found", ("'de-en'", "repair")),
        ({"beam_size": 99}, 422, "invalid_field", ("beam_size", "10", "99")),
        ({"others": {"fr": "x"}}, 422, "invalid_field", ("others", "not a known field")),
    ],
)
async def test_postedit_errors(
    repair: Served, changes: dict[str, Any], status: int, code: str, words: tuple[str, ...]
) -> None:
    response = await repair.client.post("/postedit", json={"q": "Hello", "translation": "Hallo", **changes})
    body = assert_error(response, status, code)
    for word in words:
        assert word in body["error"]


async def test_a_missing_translation_is_named(repair: Served) -> None:
    body = assert_error(await repair.client.post("/postedit", json={"q": "Hello"}), 422, "invalid_field")
    assert [fault["field"] for fault in body["detail"]] == ["translation"]


async def test_without_a_post_editor_there_is_none(bundles: dict[str, Bundle]) -> None:
    async with served(bundles, Settings(shutdown_timeout=5)) as service:
        assert_error(await postedit(service, "Hello", "Hallo"), 404, "model_not_found")
