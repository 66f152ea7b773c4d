"""DeepL's own Python client, unchanged, against a server that listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import deepl
import httpx
import pytest
from deepl.api_data import ModelType, MultilingualGlossaryDictionaryEntries

from tandem.extras.accounts.tests.keyed import Keyed
from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.http.live import Live, live
from tests.service.support import PATIENCE, copying, make_engine

RAILWAY = {"bahnhof": "station", "haus": "house"}


@pytest.fixture
def client(server: Live) -> Iterator[deepl.DeepLClient]:
    with closing(connect(server.url, "any key will do")) as found:
        yield found


def connect(url: str, key: str) -> deepl.DeepLClient:
    return deepl.DeepLClient(key, server_url=url, send_platform_info=False)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own number of retries with hardly any time between them."""
    monkeypatch.setattr("deepl.http_client._BackoffTimer.BACKOFF_INITIAL", 0.01)
    monkeypatch.setattr("deepl.http_client._BackoffTimer.BACKOFF_MULTIPLIER", 1.0)


def test_a_text(client: deepl.DeepLClient) -> None:
    found = client.translate_text("Guten Morgen, wie geht es dir?", source_lang="DE", target_lang="EN-US")
    assert isinstance(found, deepl.TextResult)
    assert found.text == "Guten Morgen, wie geht es dir?"
    assert (found.detected_source_lang, found.billed_characters) == ("DE", 30)


def test_several_texts_each_in_its_language(client: deepl.DeepLClient) -> None:
    texts = ["Wo ist denn hier der Bahnhof?", "Das ist ein sehr altes Haus.\n\n Und hier ein neues."]
    found = client.translate_text(texts, target_lang="EN-GB")
    assert isinstance(found, list)
    assert [one.text for one in found] == texts
    assert {one.detected_source_lang for one in found} == {"DE"}
    assert [one.billed_characters for one in found] == [len(text) for text in texts]


def test_languages(client: deepl.DeepLClient) -> None:
    assert [(one.code, one.name) for one in client.get_source_languages()] == [("DE", "German"), ("EN", "English")]
    targets = client.get_target_languages()
    assert [one.code for one in targets] == ["DE", "EN-GB", "EN-US"]
    assert {one.supports_formality for one in targets} == {False}
    pairs = [(one.source_lang, one.target_lang) for one in client.get_glossary_languages()]
    assert pairs == [("de", "en"), ("en", "de")]


def test_each_target_that_is_listed_can_be_translated_into(client: deepl.DeepLClient) -> None:
    for language in client.get_target_languages():
        source = "EN" if language.code == "DE" else "DE"
        found = client.translate_text("guten morgen", source_lang=source, target_lang=language)
        assert str(found) == "guten morgen"


def test_usage(client: deepl.DeepLClient, keyed: Keyed) -> None:
    usage = client.get_usage()
    assert usage.character.valid and not usage.any_limit_reached
    poor = connect(keyed.live.url, keyed.poor)
    assert poor.get_usage().character.limit == 30


def test_a_glossarys_life(client: deepl.DeepLClient) -> None:
    made = client.create_glossary("Railway", "DE", "EN-US", RAILWAY)
    assert (made.name, made.source_lang, made.target_lang, made.entry_count) == ("Railway", "DE", "EN", 2)
    assert made.ready and made.creation_time.tzinfo is not None
    assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
    assert made.glossary_id in [one.glossary_id for one in client.list_glossaries()]
    assert client.get_glossary_entries(made) == RAILWAY
    client.delete_glossary(made)
    for gone in (client.get_glossary, client.get_glossary_entries, client.delete_glossary):
        with pytest.raises(deepl.GlossaryNotFoundException):
            gone(made.glossary_id)


def test_a_glossary_from_comma_separated_values(client: deepl.DeepLClient) -> None:
    made = client.create_glossary_from_csv("Railway", "DE", "EN", 'bahnhof,station\n"haus, alt",old house,DE,EN\n')
    assert client.get_glossary_entries(made) == {"bahnhof": "station", "haus, alt": "old house"}
    client.delete_glossary(made)


def test_a_glossary_of_several_pairs(client: deepl.DeepLClient) -> None:
    there = MultilingualGlossaryDictionaryEntries("DE", "EN", RAILWAY)
    back = MultilingualGlossaryDictionaryEntries("EN", "DE", {"house": "Haus"})
    made = client.create_multilingual_glossary("Both", [there, back])
    identifier = made.glossary_id
    assert [(one.source_lang, one.target_lang, one.entry_count) for one in made.dictionaries] == [
        ("DE", "EN", 2),
        ("EN", "DE", 1),
    ]
    assert identifier in [one.glossary_id for one in client.list_multilingual_glossaries()]
    assert identifier not in [one.glossary_id for one in client.list_glossaries()]
    assert client.update_multilingual_glossary_name(made, "Renamed").name == "Renamed"
    more = MultilingualGlossaryDictionaryEntries("EN", "DE", {"station": "Bahnhof"})
    assert client.update_multilingual_glossary_dictionary(made, more).dictionaries[1].entry_count == 2
    assert client.replace_multilingual_glossary_dictionary(made, more).entry_count == 1
    (entries,) = client.get_multilingual_glossary_entries(made, "EN", "DE").dictionaries
    assert str(entries.entries) == "station\tBahnhof"
    client.delete_multilingual_glossary_dictionary(made, source_lang="EN", target_lang="DE")
    assert len(client.get_multilingual_glossary(identifier).dictionaries) == 1
    client.delete_multilingual_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary(identifier)


def test_a_glossarys_terms_are_used(client: deepl.DeepLClient) -> None:
    made = client.create_glossary("Railway", "DE", "EN", RAILWAY)
    found = client.translate_text("wo ist der bahnhof heute", source_lang="DE", target_lang="EN-GB", glossary=made)
    assert str(found) == "wo ist der station heute"
    several = client.translate_text(
        "wo ist der bahnhof heute", source_lang="DE", target_lang="EN-GB", glossary_ids=[made.glossary_id]
    )
    assert str(several) == "wo ist der station heute"
    assert str(client.translate_text_with_glossary("das haus ist gross", made)) == "das house ist gross"
    client.delete_glossary(made)


def test_terms_within_markup(client: deepl.DeepLClient) -> None:
    """What is written in tags is no text."""
    made = client.create_glossary("Railway", "DE", "EN", RAILWAY)
    html = '<p class="haus" title="haus">das <b>haus</b> ist gross</p><pre>haus</pre><p>das haus</p>'
    found = client.translate_text(html, source_lang="DE", target_lang="EN-GB", tag_handling="html", glossary=made)
    assert str(found) == '<p class="haus" title="haus">das <b>house</b> ist gross</p><pre>haus</pre><p>das house</p>'
    xml = "<doc><haus>das haus</haus><raw>haus</raw></doc>"
    options = {"tag_handling": "xml", "ignore_tags": "raw"}
    found = client.translate_text(xml, source_lang="DE", target_lang="EN-GB", glossary=made, **options)  # type: ignore[arg-type]
    assert str(found) == "<doc><haus>das house</haus><raw>haus</raw></doc>"
    client.delete_glossary(made)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target_lang": "XX"}, r"'target_lang' not supported.*'XX'.*pairs served: de-en, en-de"),
        ({"source_lang": "XX"}, r"'source_lang' not supported.*'XX'"),
        ({"glossary": "00000000-0000-0000-0000-000000000000"}, "glossary_id: there is no such glossary"),
        ({"split_sentences": "never"}, "split_sentences"),
        ({"formality": "rude"}, "formality"),
    ],
)
def test_what_is_refused_says_why(client: deepl.DeepLClient, options: dict[str, str], says: str) -> None:
    fields: dict[str, Any] = {"source_lang": "DE", "target_lang": "EN-GB", **options}
    with pytest.raises(deepl.DeepLException, match=f"Bad request.*{says}") as caught:
        client.translate_text("guten morgen", **fields)
    assert caught.value.http_status_code == 400


@pytest.mark.parametrize(
    "options",
    [
        {"formality": "Less"},
        {"formality": deepl.Formality.MORE},
        {"formality": deepl.Formality.DEFAULT},
        {"context": "In a railway station."},
        {"custom_instructions": ["Be brief."]},
        {"style_rule": "some-style"},
        {"translation_memory": "some-memory", "translation_memory_threshold": 80},
        {"split_sentences": deepl.SplitSentences.NO_NEWLINES, "preserve_formatting": True},
        {"tag_handling": "xml", "outline_detection": False, "splitting_tags": "par,title", "ignore_tags": ["raw"]},
        {"ignore_tags": ["raw"]},
        {"extra_body_parameters": {"enable_beta_languages": True}},
    ],
)
def test_what_is_taken(client: deepl.DeepLClient, options: dict[str, Any]) -> None:
    found = client.translate_text("guten morgen", source_lang="DE", target_lang="EN-GB", **options)
    assert str(found) == "guten morgen"


@pytest.mark.parametrize("model_type", ModelType)
def test_the_model_type_used_is_named(client: deepl.DeepLClient, model_type: ModelType) -> None:
    found = client.translate_text("guten morgen", target_lang="EN-GB", model_type=model_type)
    assert isinstance(found, deepl.TextResult) and found.model_type_used
    assert found.model_type_used in model_type.value


def test_a_language_that_is_not_served_is_taken_for_the_likeliest(client: deepl.DeepLClient) -> None:
    texts = ["Pourriez-vous me dire où se trouve la gare ?", "Das ist ein sehr altes Haus."]
    found = client.translate_text(texts, target_lang="EN-GB")
    assert isinstance(found, list)
    assert [one.detected_source_lang for one in found] == ["DE", "DE"]


def test_a_text_in_the_target_language_stays(client: deepl.DeepLClient) -> None:
    found = client.translate_text("a proton beam", source_lang="EN", target_lang="EN-US")
    assert isinstance(found, deepl.TextResult)
    assert (found.text, found.detected_source_lang, found.billed_characters) == ("a proton beam", "EN", 13)


def test_a_glossary_as_large_as_deepls(keyed: Keyed) -> None:
    """More bytes than other bodies may have, and more terms than a request may hold."""
    client = connect(keyed.live.url, keyed.good)
    entries = {f"wort {number:04}": "x" * 200 for number in range(6_000)} | {"wort 5999": "last", "wort 0007": "one"}
    made = client.create_glossary("Large", "DE", "EN", entries)
    assert made.entry_count == 6_000
    text = "das wort 5999 und WORT 0007, kein wort 6000"
    found = client.translate_text(text, source_lang="DE", target_lang="EN-GB", glossary=made)
    assert str(found) == "das last und one, kein wort 6000"
    client.delete_glossary(made)


def test_a_key_that_is_none(keyed: Keyed) -> None:
    stranger = connect(keyed.live.url, "tandem_00000000_no")
    for attempt in (
        lambda: stranger.translate_text("guten morgen", target_lang="EN-GB"),
        stranger.get_usage,
        stranger.get_source_languages,
        stranger.list_glossaries,
        lambda: stranger.create_glossary("Railway", "DE", "EN", RAILWAY),
    ):
        with pytest.raises(deepl.AuthorizationException, match="not valid"):
            attempt()


def test_glossaries_are_the_keys_own(keyed: Keyed) -> None:
    good, poor = connect(keyed.live.url, keyed.good), connect(keyed.live.url, keyed.poor)
    made = good.create_glossary("Railway", "DE", "EN", RAILWAY)
    assert poor.list_glossaries() == []
    with pytest.raises(deepl.GlossaryNotFoundException):
        poor.get_glossary(made.glossary_id)
    with pytest.raises(deepl.DeepLException, match="no such glossary"):
        poor.translate_text("haus", source_lang="DE", target_lang="EN-GB", glossary=made.glossary_id)
    good.delete_glossary(made)


def test_the_quota(keyed: Keyed, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = connect(keyed.live.url, keyed.poor)
    before = poor.get_usage().character.count
    poor.translate_text("guten morgen", source_lang="DE", target_lang="EN-GB")
    assert poor.get_usage().character.count == (before or 0) + len("guten morgen")
    monkeypatch.delattr("deepl.http_client._BackoffTimer.sleep_until_deadline")  # it does not try again
    with pytest.raises(deepl.QuotaExceededException, match="at most 30 characters"):
        poor.translate_text("wo ist der bahnhof heute", source_lang="DE", target_lang="EN-GB")


@pytest.mark.usefixtures("quick_retries")
def test_the_rate(keyed: Keyed) -> None:
    slow = connect(keyed.live.url, keyed.slow)
    slow.translate_text("guten morgen", source_lang="DE", target_lang="EN-GB")
    with pytest.raises(deepl.TooManyRequestsException, match="at most 1 requests a minute"):
        slow.translate_text("wort", target_lang="EN-GB")


@pytest.mark.usefixtures("quick_retries")
def test_a_full_queue_is_waited_for(both_ways: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepl.http_client.max_network_retries", 3000)  # its five are over in 50 ms here
    bundle = both_ways["de-en"]
    graphs = copying(bundle)
    engine = make_engine((bundle, graphs), max_queue_tokens=100)
    with live(Settings(shutdown_timeout=5), engine) as running, ThreadPoolExecutor() as threads:
        graphs.gate.clear()
        try:
            form = {"q": "wo ist der bahnhof heute", "source": "de", "target": "en"}
            before = [threads.submit(httpx.post, f"{running.url}/translate", data=form) for _ in range(4)]
            wait_until(lambda: engine.dispatcher.queued_tokens > 50)
            client = connect(running.url, "any")
            text = [f"das haus ist {how}" for how in ("gross", "alt", "heute", "morgen")]
            later = threads.submit(client.translate_text, text, source_lang="DE", target_lang="EN-GB")
            wait_until(lambda: engine.dispatcher.counters.rejected.total() > 0)
        finally:
            graphs.gate.set()
        found = later.result(PATIENCE)
        assert isinstance(found, list) and [str(one) for one in found] == text
        assert {one.result(PATIENCE).status_code for one in before} <= {200, 503}


def test_a_client_that_leaves_takes_its_sentences_along(both_ways: dict[str, Bundle]) -> None:
    """DeepL's client gives up a read after ten seconds and sends the request again."""
    bundle = both_ways["de-en"]
    graphs = copying(bundle)
    engine = make_engine((bundle, graphs))
    with live(Settings(shutdown_timeout=5), engine) as running:
        graphs.gate.clear()
        try:
            form = {"text": ["guten morgen", "guten tag", "guten abend"], "source_lang": "DE", "target_lang": "EN"}
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{running.url}/v2/translate", data=form, timeout=httpx.Timeout(PATIENCE, read=0.3))
            # Before the gate opens: the service notices later than the client gives up.
            wait_until(lambda: engine.dispatcher.counters.cancelled == 3)
        finally:
            graphs.gate.set()
        wait_until(lambda: engine.dispatcher.sentences == (0, 0))


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)
