"""Words and phrases that stand alone are looked up in the lexicons of what translates them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tandem.extras.rewriting.lexicon import Lexicon
from tandem.extras.rewriting.stage import look_up
from tandem.extras.rewriting.tests.support import with_lexicon
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tandem.service.text.detection import Detector, Guess
from tandem.service.translation.requests import Context, TranslateTask
from tests.service.support import assert_error, copying, make_engine, running, tiny_bundle

pytestmark = pytest.mark.anyio
WORDS: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    ("fr", "en"): {
        "chien": ("dog", "hound"),
        "maison": ("house", "home"),
        "aujourd'hui": ("today",),
        "salut": ("hi",),
        "Save": ("Save",),
        "chat": ("Chat", "cat"),
        "Londres": ("London",),
        "au revoir": ("goodbye", "bye"),
        "cordialement": ("regards",),
        "l'eau qui dort n'est pas": ("still water",),
    },
    ("en", "de"): {
        "dog": ("Hund",),
        "house": ("Haus",),
        "home": ("Zuhause", "Haus"),
        "hi": ("hallo",),
        "save": ("speichern",),
        "chat": ("Chat",),
    },
    ("de", "fr"): {"hallo": ("salut",)},
}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """French goes into English, that into German, and that into French; all copy what they decode."""
    bundles = []
    for source, target in WORDS:
        bundle = tiny_bundle(tmp_path, f"{source}-{target}", source_languages=(source,), target_language=target)
        lexicon = Lexicon({(source, target): WORDS[source, target]})
        bundles.append(with_lexicon(bundle, lexicon))
    engine = make_engine(*((bundle, copying(bundle)) for bundle in bundles))
    async with running(create_app(Settings(shutdown_timeout=5), engine)) as client:
        yield client


async def translated(client: httpx.AsyncClient, q: Any, **fields: Any) -> Mapping[str, Any]:
    response = await client.post("/translate", json={"q": q, "source": "fr", "target": "en", **fields})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("chien", "dog"),
        ("Chien", "Dog"),
        ("CHIEN !", "DOG!"),
        ("  - chien...\n\nmaison", "  - dog...\n\nhouse"),
        ("aujourd’hui", "today"),
        ("Salut ! Maison ?", "Hi! House?"),
        ("le cheval", "le cheval"),
        ("Au revoir !", "Goodbye!"),
        ("Chien. Au  revoir\u00a0! Au revoir chien.", "Dog. Goodbye! Au revoir chien."),
        ("l’eau qui dort n’est pas", "still water"),
        ("au revoir, au revoir", "au revoir, au revoir"),
        ("cheval", "cheval"),
        ("chien2", "chien2"),
        ("chien,", "chien,"),
    ],
)
async def test_what_stands_alone_is_looked_up(client: httpx.AsyncClient, text: str, translation: str) -> None:
    assert (await translated(client, text))["translatedText"] == translation


async def test_details_say_where_it_came_from(client: httpx.AsyncClient) -> None:
    body = await translated(client, "Chien. Le chien dort.", details=True, alternatives=2)
    looked_up, decoded = body["details"][0]["sentences"]
    assert looked_up == {
        "source": {"start": 0, "end": 6},
        "target": {"start": 0, "end": 4},
        "tokens": [],
        "lexicon": True,
    }
    assert decoded["tokens"] and "lexicon" not in decoded
    assert [text.split(". ")[0] for text in body["alternatives"]] == ["Hound", "Hound"]


async def test_a_language_between_has_its_own_words(client: httpx.AsyncClient) -> None:
    body = await translated(client, ["maison", "chien", "salut!", "aujourd'hui"], target="de", alternatives=1)
    # "today" is not known further on, so that the word is decoded all the way
    assert body["translatedText"] == ["Haus", "Hund", "hallo!", "aujourd'hui"]
    assert body["alternatives"][0] == ["Zuhause"]
    assert body["via"] == [None, None, None, "en"]


async def test_french_marks_stand_apart(client: httpx.AsyncClient) -> None:
    assert (await translated(client, "Hallo!", source="de", target="fr"))["translatedText"] == "Salut !"
    assert (await translated(client, "Hallo.", source="de", target="fr"))["translatedText"] == "Salut."


async def test_a_stream_does_not_keep_for_the_end_what_is_looked_up(client: httpx.AsyncClient) -> None:
    body = {"q": "Le cheval dort. Chien. Le cheval mange.", "source": "fr", "target": "en", "stream": True}
    response = await client.post("/translate", json=body)
    events = re.findall(r"event: sentence\ndata: (.*)\n", response.text)
    first, *others = ([event["sentence"], event["translation"]] for event in map(json.loads, events))
    assert first == [1, "Dog."]
    assert sorted(others) == [[0, "Le cheval dort."], [2, "Le cheval mange."]]


@pytest.mark.parametrize(
    "fields",
    [
        {"lexicon": False},
        {"prefix": "chien"},
        {"sampling": {"temperature": 0.01, "seed": 1}},
        {"protect": ["chien"]},
        {"glossary": {"chien": "chien"}},
        {"q": "<b>chien</b> <i>chien</i>", "format": "html"},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_who_wants_something_else_gets_that(client: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    assert "dog" not in (await translated(client, fields.pop("q", "chien"), **fields))["translatedText"]


async def test_a_block_of_markup_is_looked_up(client: httpx.AsyncClient) -> None:
    body = await translated(client, "<p>chien</p><p>le <b>cheval</b></p>", format="html")
    assert body["translatedText"] == "<p>dog</p><p>le <b>cheval</b></p>"


async def test_the_memory_goes_before_a_lexicon(client: httpx.AsyncClient) -> None:
    texts = client._transport.app.state.parts.texts  # type: ignore[attr-defined]
    task = TranslateTask(
        q=["chien", "maison"],
        source="fr",
        target="en",
        details=True,
    )
    context = Context(recall=lambda source, target, sentences: {"chien": "hot dog"})
    result = await texts.translate(task, context)
    assert [text.text for text in result.texts] == ["hot dog", "house"]
    remembered, looked_up = (text.sentences[0] for text in result.texts)
    assert (remembered.match, remembered.lexicon) == (100, None)
    assert (looked_up.match, looked_up.lexicon) == (None, True)


async def test_letters_begin_and_end_as_letters_do(client: httpx.AsyncClient) -> None:
    """Neither the model reads it, which copies, nor is it looked up; a caller's own correction goes before it."""
    letter = "Le cheval.\n\nCordialement\n\nMadame, Monsieur, au revoir!"
    written = "Le cheval.\n\nKind regards\n\nDear Sir or Madam, au revoir!"
    assert (await translated(client, letter))["translatedText"] == written
    texts = client._transport.app.state.parts.texts  # type: ignore[attr-defined]
    own = {"Cordialement": "Cheers"}
    task = TranslateTask(q=[*own], source="fr", target="en")
    context = Context(recall=lambda source, target, sentences: own)
    assert [text.text for text in (await texts.translate(task, context)).texts] == ["Cheers"]


@pytest.mark.parametrize("text", ["MAISON : le CHIEN n'est PAS là.", "<p>MAISON : le <b>CHIEN n'est</b> PAS là.</p>"])
async def test_loud_words_are_read_like_others_and_labels_are_loud_again(client: httpx.AsyncClient, text: str) -> None:
    body = await translated(client, text, format="html" if text.startswith("<") else "text")
    assert body["translatedText"] == text.replace("PAS", "pas")
    body = await translated(client, text, format="html" if text.startswith("<") else "text", lexicon=False)
    assert body["translatedText"] == text


@pytest.mark.parametrize(
    ("word", "language", "translation"),
    [("hallo", "de", "salut"), ("dog", "en", None), ("Hallo!", "de", "Salut !"), ("zzz", None, None)],
)
async def test_lexicons_say_what_language_a_word_is_in(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, word: str, language: str | None, translation: str | None
) -> None:
    """The detector takes them all for Basque."""
    detect = Detector.detect

    def basque(self: Detector, text: str, preferred: Any = None, every: bool = False) -> list[Guess]:
        rest = detect(self, text, preferred, every=True) if every else []
        return [Guess("eu", 86.9), *rest]

    monkeypatch.setattr(Detector, "detect", basque)
    target = "fr" if language == "de" else "de"
    body = {"q": word, "source": "auto", "target": target}
    response = await client.post("/translate", json=body)
    if language is None:
        assert_error(response, 404, "language_not_served")
    else:
        assert response.json()["detectedLanguage"]["language"] == language
        assert translation is None or response.json()["translatedText"] == translation
    assert_error(await client.post("/translate", json={**body, "lexicon": False}), 404, "language_not_served")


@pytest.mark.parametrize(("word", "language", "translation"), [("Save", "en", "Speichern"), ("chat", "fr", "Chat")])
async def test_a_word_that_a_lexicon_only_copies_is_of_another_language(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, word: str, language: str, translation: str
) -> None:
    """French text has "Save" from English programs; "chat" is its own, and English has both."""
    monkeypatch.setattr(Detector, "detect", lambda *_: [Guess("fr", 14.6), Guess("en", 14.3)])
    response = await client.post("/translate", json={"q": word, "source": "auto", "target": "de"})
    assert response.json()["detectedLanguage"]["language"] == language
    assert response.json()["translatedText"] == translation


async def test_a_label_keeps_its_capital(client: httpx.AsyncClient) -> None:
    body = {"q": ["Chien", "chien", "Au revoir!", "SALUT", "Londres"], "source": "fr", "target": "en"}
    reply = await client.post("/translate", json=body)
    assert reply.json()["translatedText"] == ["Dog", "dog", "Goodbye!", "HI", "London"]
    reply = await client.post("/translate", json={"q": ["Dog", "dog"], "source": "en", "target": "fr"})
    assert reply.json()["translatedText"] == ["Dog", "dog"]


@pytest.mark.parametrize(("source", "target", "written"), [("de", "en", "!!! NOTE !!!"), ("fr", "en", "!!! NOTE!!!")])
def test_the_space_before_marks_stays_where_it_is_not_french(source: str, target: str, written: str) -> None:
    lexicon = Lexicon({(source, target): {"achtung": ("note",)}})
    found = look_up([(lexicon, source, target)], "ACHTUNG !!!")
    assert found is not None and f"!!! {found.translations[0]}" == written
