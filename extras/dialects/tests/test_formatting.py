"""``preserve_formatting``: how sentences begin and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.dialects.deepl.translate import preserve
from tandem.models.bundle import Bundle
from tandem.service.text.layout import Document, Splitting
from tests.service.support import served


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("guten morgen", "Good morning.", "good morning"),
        ("Guten Morgen!", "good morning", "Good morning!"),
        ("Wie bitte?", "Pardon.", "Pardon?"),
        ("Und so weiter...", "And so on", "And so on..."),
        ("das ist die NATO", "NATO is this", "NATO is this"),
        ("ich gehe", "I go.", "I go"),
        ("你好。", "Hello.", "Hello."),
        ("nur ein Wort", "…", "…"),
        ("…", "Word.", "Word"),
        ("3 häuser", "3 Houses", "3 Houses"),
        ("„haus“", "“House”", "“house”"),
        ("Haus:", " House ", " House:"),
        ("Haus", "", ""),
        ("ein Haus", "A house", "a house"),
    ],
)
def test_rules(source: str, translation: str, expected: str) -> None:
    assert preserve(source, translation) == expected


@given(st.text(max_size=40), st.text(max_size=40))
def test_only_the_ends_change(source: str, translation: str) -> None:
    found = preserve(source, translation)
    assert preserve(source, found) == found
    words = [char for char in translation.casefold() if char.isalnum()]
    assert [char for char in found.casefold() if char.isalnum()] == words


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "changes", "plain", "preserved"),
    [
        ("wort eins. Wort zwei!", {}, "Word eins. Word zwei!", "word eins. Word zwei!"),
        ("<p>das <i>wort</i> wort</p>", {"tag_handling": "html"}, "<p>das <i>Word</i> Word</p>", None),
        ("<p><i>wort</i> eins</p>", {"tag_handling": "html"}, "<p><i>Word</i> eins</p>", "<p><i>word</i> eins</p>"),
    ],
)
async def test_asked_for_and_not(
    both_ways: dict[str, Bundle], text: str, changes: dict[str, str], plain: str, preserved: str | None
) -> None:
    """The copying model changes nothing by itself, so a glossary does."""
    async with served(both_ways) as service:
        glossary = {"name": "x", "source_lang": "de", "target_lang": "en", "entries": "wort\tWord\nWort\tWord"}
        made = (await service.client.post("/v2/glossaries", json=glossary)).json()
        fields = {"text": text, "source_lang": "DE", "target_lang": "EN", "glossary_id": made["glossary_id"], **changes}

        async def translated(preserve_formatting: bool) -> str:
            reply = await service.client.post(
                "/v2/translate", json=fields | {"preserve_formatting": preserve_formatting}
            )
            assert reply.status_code == 200, reply.text
            return str(reply.json()["translations"][0]["text"])

        assert await translated(False) == plain
        assert await translated(True) == (preserved or plain)


def octets(text: str, source: int = 0) -> int:
    return len(text.encode())


@given(st.text(max_size=60), st.sampled_from(("lines", "sentences", "whole")))
def test_however_it_is_split_nothing_is_lost(text: str, splitting: Splitting) -> None:
    document = Document.parse(text, "de", "en", 20, octets, splitting)
    assert "".join(piece.text for piece in document.pieces) == text
    assert document.join([piece.text for piece in document.sentences])[0] == text


def test_where_it_is_split() -> None:
    text = "Das ist\ndas Haus. Und\r\nhier noch eins.\n\nUnd hier."

    def sentences(splitting: Splitting) -> list[str]:
        return [piece.text for piece in Document.parse(text, "de", "en", 1000, octets, splitting).sentences]

    assert sentences("lines") == ["Das ist", "das Haus.", "Und", "hier noch eins.", "Und hier."]
    assert sentences("sentences") == ["Das ist\ndas Haus.", "Und\r\nhier noch eins.", "Und hier."]
    assert sentences("whole") == [text]
