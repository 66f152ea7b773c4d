"""Any Unicode text comes back from a model that copies as it was sent: letter by letter, line by line.

As sent means: after Unicode NFC, without control characters and those for the direction of text, which no model reads;
and within a sentence runs of white space are one space. Around sentences white space stays whatever it was, line ends
included.
"""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tandem.models.bundle import Bundle
from tandem.models.text import BIDI, normalise
from tandem.service.settings import Settings
from tandem.service.text.layout import Document
from tests.service.support import served

pytestmark = pytest.mark.anyio
TEXTS = 60
WITHOUT_DIRECTION = dict.fromkeys(map(ord, BIDI))

PROSE = st.text(
    st.sampled_from("aZäß é.!?,;:- \n\t\r\"'«»()12。、あ😀\u0301\u200d\ufe0f\u2028\u00a0*>#\u202e\u0085\0⟨⟩"),
    max_size=80,
)
WORDS = st.lists(
    st.sampled_from(
        ["wo ist", "das haus", "z. B.", "Dr. Müller.", "d. h.", "\n", "\n\n  - ", "1. ", "> ", "heute?", "Ja!", "  ",
         "{name}", "%1$s", "https://a.b/c?d=e", "⟨ph0⟩", "a@b.de", "3,14", "…", "„so“", "ＡＢＣ", "ﬁ", "①", "Å", "ſ"]
    ),
    max_size=14,
).map(" ".join)  # fmt: skip
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def normal(sent: str) -> str:
    """A text as sent, normalised, with the line ends that it has."""
    return "".join(part if part.startswith("\r") else normalise(part) for part in re.split("(\r\n?)", sent))


def spelt_out(text: str) -> str:
    """A text with letters in the place of ligatures."""
    return re.sub("[\ufb00-\ufb06]", lambda match: unicodedata.normalize("NFKC", match[0]), text)


def same_layout(sent: str, received: str) -> bool:
    """Whether two texts differ in nothing but white space within sentences, and in which way they run."""
    lines, others = (text.translate(WITHOUT_DIRECTION).splitlines(keepends=True) for text in (sent, received))
    return len(lines) == len(others) and all(
        _parts(one) == _parts(other) for one, other in zip(lines, others, strict=True)
    )


def _parts(line: str) -> tuple[str, list[str], str]:
    start = len(line) - len(line.lstrip())
    return line[:start], line.split(), line[len(line.rstrip()) :]


def drawn(strategy: st.SearchStrategy[str], count: int) -> list[str]:
    """Texts that Hypothesis makes: one request holds them all, so that a failure costs one round."""
    texts: list[str] = []

    @hypothesis_settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(strategy)
    def draw(text: str) -> None:
        texts.append(text)

    draw()
    return texts[:count]


@pytest.mark.parametrize("kind", ["prose", "words", "unicode"])
async def test_any_text_comes_back(bundles: dict[str, Bundle], kind: str) -> None:
    texts = drawn({"prose": PROSE, "words": WORDS, "unicode": UNICODE}[kind], TEXTS)
    async with served(bundles, Settings(max_texts=TEXTS, shutdown_timeout=5)) as service:
        response = await service.translate(texts, beam_size=1)
    assert response.status_code == 200, response.text
    for sent, received in zip(texts, response.json()["translatedText"], strict=True):
        untouched = received == sent  # nothing to translate: not even normalised
        # As English writes a number, and models read ligatures.
        wanted, found = (spelt_out(text.replace("3,14", "3.14")) for text in (normal(sent), received))
        assert untouched or same_layout(wanted, found), (sent, received)


@given(PROSE | WORDS | UNICODE, st.sampled_from(["de", "en", "fr", "ja", "zh", "xx"]), st.integers(1, 60))
@example("Wir gingen, weil es spät war, nach Hause; dann schliefen wir.", "de", 6)
async def test_translations_stand_where_their_sentences_stood(text: str, language: str, limit: int) -> None:
    """Replacing each sentence by a mark leaves everything else; which way text runs has a test of its own."""
    text = normal(text).translate(WITHOUT_DIRECTION)
    document = Document.parse(text, language, language, limit, lambda part: len(part.split()))
    kept = [piece.text for piece in document.pieces if not piece.translatable]
    joined, spans = document.join(["\u2603"] * len(document.sentences))
    assert all(joined[start:end] == "\u2603" for start, end in spans)
    assert joined.replace("\u2603", "") == "".join(kept).replace("\u2603", "")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("\u202eeins\u202c zwei.", "☃"),
        ("\u2067Eins zwei.\u2069 Drei.", "\u2067☃\u2069 ☃"),
        ("eins \u202bzwei\u202c.\u202c", "☃"),
        ("\u2067😀 \u202beins\u2069 zwei. \u202a😀\u202c", "😀 ☃ \u202a😀\u202c"),
        ("\u2067\u202bEins.\u202c\u2069 \u2066\u202cZwei", "\u2067\u202b☃\u202c\u2069 ☃"),
    ],
)
def test_text_does_not_turn_to_run_the_other_way_where_it_does_not_turn_back(text: str, written: str) -> None:
    document = Document.parse(text, "de", "en", 40, len)
    assert document.join(["☃"] * len(document.sentences))[0] == written


@pytest.mark.parametrize("protect", [[], ["zwei"]])
@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
async def test_line_ends_come_back_and_offsets_count_them(
    bundles: dict[str, Bundle], end: str, protect: list[str]
) -> None:
    text = f"wo ist es?{end}{end}- heute{end}zwei heute"
    async with served(bundles, Settings(shutdown_timeout=5)) as service:
        body = (await service.translate(text, details=True, protect=protect)).json()
    assert body["translatedText"] == text
    sentences = body["details"][0]["sentences"]
    for side in ("source", "target"):
        found = [text[one[side]["start"] : one[side]["end"]] for one in sentences]
        assert found == ["wo ist es?", "heute", "zwei heute"]


def test_a_sentence_that_is_too_long_is_cut_between_clauses() -> None:
    text = "Wir gingen früh nach Hause, weil es spät war; dann schliefen wir, bis der Wecker klingelte."
    document = Document.parse(text, "de", "en", 7, lambda part: len(part.split()))
    assert [piece.text for piece in document.sentences] == [
        "Wir gingen früh nach Hause,", "weil es spät war;", "dann schliefen wir, bis der Wecker klingelte.",
    ]  # fmt: skip
    assert document.join([piece.text for piece in document.sentences])[0] == text
