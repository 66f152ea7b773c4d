"""``/translate`` and ``/summarize`` with a model that copies: what a client sends and gets."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.support import Served, assert_error, served

pytestmark = pytest.mark.anyio
TEXT = "Wo ist der Bahnhof?"


async def test_texts_come_back_in_order_and_text_is_an_alias(service: Served) -> None:
    texts = ["Guten Morgen.", "", "Das Haus ist alt. " * 3, "😀"]
    assert (await service.translate(texts)).json() == {"translatedText": texts}
    response = await service.client.post("/translate", json={"text": texts, "source": "DE", "target": "en-GB"})
    assert response.json() == {"translatedText": texts}


@pytest.mark.parametrize("text", ["", "   ", "\n\t\n", "😀", "👨‍👩‍👧 ❤️", "...", "12:30", "\u202e"])
async def test_nothing_to_translate_comes_back_unchanged(service: Served, text: str) -> None:
    assert (await service.translate(text, alternatives=1)).json() == {"translatedText": text, "alternatives": []}
    summary = await service.client.post("/summarize", json={"q": text})
    assert (summary.json()["summary"], summary.json()["truncated"]) == ("", False)


async def test_a_sentence_over_the_models_limit_is_split_not_cut(service: Served) -> None:
    text = "das haus ist gross, und der morgen ist gut, " * 30 + "ende"
    assert (await service.translate(text)).json()["translatedText"] == text
    assert max(map(len, service.graphs.encoded)) <= 40


async def test_models_do_not_read_where_lines_may_break_and_which_way_text_runs(service: Served) -> None:
    text = "das ha\u00adus \u2067ist\u2060\u2069 alt\u2011\u200eneu"
    body = (await service.translate(text, details=True)).json()
    assert body["translatedText"] == "das haus ist alt-neu"
    (sentence,) = body["details"][0]["sentences"]
    assert sentence["source"] == {"start": 0, "end": len(text)}


@pytest.mark.parametrize("haus", ["ha\u00adus", "ha\u200bus", "\u2060haus\u00ad"])
async def test_terms_are_found_with_soft_hyphens_in_them(service: Served, haus: str) -> None:
    body = (await service.translate(f"das {haus} ist {{x}} alt", glossary={"haus": "house"})).json()
    assert "das house ist {x} alt" in body["translatedText"]
    assert body["glossary"] == [{"source": "haus", "target": "house", "found": True}]


async def test_reserved_strings_of_users_are_just_text(service: Served) -> None:
    text = "der ⟨ph3⟩ und ⟨de⟩ Morgen"
    assert (await service.translate(text)).json()["translatedText"] == text
    tokens = {token for source in service.graphs.encoded for token in source}
    vocabulary = service.bundle.target_vocabulary
    assert not tokens & {vocabulary.id_of("⟨ph3⟩"), vocabulary.language_tag("de")}


async def test_details_say_what_stands_where(service: Served) -> None:
    text = "Guten Morgen.  Wie geht es?"
    body = (await service.translate([text, "😀"], details=True, scores=True)).json()
    assert body["model"] == "de-en"
    assert body["usage"]["characters"] == len(text) + 1
    assert body["usage"]["source_tokens"] == body["usage"]["target_tokens"] > 0
    assert set(body["time"]) == {"queue", "encode", "decode", "total"}
    first, second = body["details"]
    assert second == {"sentences": []}
    for sentence in first["sentences"]:
        assert len(sentence["token_scores"]) == len(sentence["tokens"]) + 1
        assert sentence["score"] == pytest.approx(sum(sentence["token_scores"]), abs=1e-4)
    spans = [(s["source"], text[s["source"]["start"] : s["source"]["end"]]) for s in first["sentences"]]
    assert [words for _, words in spans] == ["Guten Morgen.", "Wie geht es?"]
    assert [s["target"] for s in first["sentences"]] == [span for span, _ in spans]


async def test_a_text_in_the_language_asked_for_comes_back(service: Served) -> None:
    text = "This  is {x} already.\n"
    for codes in ({"source": "en", "target": "en"}, {"source": "EN", "target": "en"}):
        assert (await service.translate([text], **codes)).json() == {"translatedText": [text]}
    assert_error(await service.translate(text, source="xx", target="xx"), 404, "language_not_served")


async def test_alternatives_differ_or_are_fewer(service: Served) -> None:
    """The copying model's hypotheses of one token are a few; what is not translated has none."""
    for text in ("Ja", "Guten Morgen", "{name}", "<b>{name}</b>"):
        body = (await service.translate(text, alternatives=3)).json()
        written = [body["translatedText"], *body["alternatives"]]
        assert len({*written}) == len(written)


async def test_alternatives_join_every_sentences_next_best(service: Served) -> None:
    body = (await service.translate("Guten Morgen. Wie geht es?", alternatives=3)).json()
    assert len(body["alternatives"]) == 3
    assert body["translatedText"] not in body["alternatives"]
    nested = (await service.translate([TEXT, "Ja"], alternatives=1)).json()["alternatives"]
    assert [len(one) for one in nested] == [1, 1]


async def test_decoding_options_reach_the_search(service: Served) -> None:
    short = (await service.translate("das haus ist gross und alt", max_length=3, details=True)).json()
    assert short["usage"]["target_tokens"] == 3
    long = (await service.translate("das", min_length=9, details=True)).json()
    assert long["usage"]["target_tokens"] >= 9
    begun = (await service.translate("das haus. das haus.", prefix="one two", beam_size=1)).json()
    assert begun["translatedText"].startswith("one two")
    assert begun["translatedText"].count("one") == 1
    sampling = {"temperature": 0.5, "top_k": 1, "seed": 7}
    assert (await service.translate(TEXT, sampling=sampling)).json() == {"translatedText": TEXT}


@pytest.mark.parametrize("way", ["form", "multipart", "query"])
async def test_forms_and_queries_are_read_and_extras_ignored(service: Served, way: str) -> None:
    fields = {"q": "Ünder Straße & más", "source": "de", "target": "en", "alternatives": "1", "api_key": "", "x": "y"}
    expected = {"translatedText": fields["q"]}
    if way == "form":
        response = await service.client.post("/translate", data=fields)
    elif way == "multipart":
        response = await service.client.post(
            "/translate", files={name: (None, value) for name, value in fields.items()}
        )
    else:
        response = await service.client.post("/translate", params=fields)
    assert response.status_code == 200, response.text
    assert response.json() | expected == response.json()
    assert len(response.json()["alternatives"]) == 1


async def test_a_repeated_form_field_is_a_list_and_sampling_is_json(service: Served) -> None:
    data = {"q": ["Guten", "Morgen"], "source": "de", "target": "en", "sampling": '{"top_k": 1}', "beam_size": ""}
    response = await service.client.post("/translate", data=data)
    assert response.json() == {"translatedText": ["Guten", "Morgen"]}


async def test_without_depth_a_summary_says_that_the_text_was_cut(bundles: dict[str, Bundle]) -> None:
    sentence = "one two three four five six. "
    async with served(bundles, Settings(summary_depth=0, shutdown_timeout=5)) as service:
        body = (await service.client.post("/summarize", json={"q": ["one two.\nthree", sentence * 20]})).json()
    assert body["summary"][0] == "one two. three"
    assert body["truncated"] == [False, True]
    assert body["summary"][1] == (sentence * body["summary"][1].count(".")).strip()
    assert body["model"] == "titles"
    assert body["method"] == ["model", "model"]
    assert set(body) == {"summary", "truncated", "method", "model", "usage", "time"}


async def test_a_summary_can_have_alternatives_and_details(service: Served) -> None:
    fields = {"q": "one two three", "alternatives": 1, "details": True, "language": "en", "model": "titles"}
    body = (await service.client.post("/summarize", json=fields)).json()
    assert len(body["alternatives"]) == 1
    assert body["details"][0]["sentences"][0]["source"] == {"start": 0, "end": 13}


async def test_big_requests_are_bulk_and_still_answered(bundles: dict[str, Bundle]) -> None:
    async with served(bundles, Settings(bulk_characters=10, shutdown_timeout=5)) as service:
        for extra in ({}, {"priority": "interactive"}, {"priority": "bulk", "timeout": 9.5}):
            assert (await service.translate(TEXT, **extra)).json() == {"translatedText": TEXT}


async def test_only_what_is_wrong_with_probes_is_told(bundles: dict[str, Bundle]) -> None:
    """They come every few seconds."""
    async with served(bundles) as service:
        with capture_logs() as logs:
            for path in ("/healthz", "/readyz", "/metrics", "/languages"):
                assert (await service.client.get(path)).status_code == 200
            service.engine.dispatcher.drain()
            assert (await service.client.get("/readyz")).status_code == 503
    levels = [(entry["route"], entry["log_level"]) for entry in logs if entry["event"] == "request"]
    assert levels == [
        *(("/healthz", "debug"), ("/readyz", "debug"), ("/metrics", "debug")),
        *(("/languages", "info"), ("/readyz", "info")),
    ]
