"""Summaries of texts longer than the model reads, with models that copy as much as they may write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import permutations
from pathlib import Path

import pytest

from tandem.models.bundle import Bundle, Limits
from tandem.models.search import SearchOptions
from tandem.service.settings import Settings
from tests.service.support import Served, assert_error, served, tiny_bundle

pytestmark = pytest.mark.anyio
WORDS = ("one", "two", "three", "four")
SENTENCES = [" ".join(words) + "." for words in (*permutations(WORDS), *permutations(WORDS))][:40]  # no equal parts
TEXT = " ".join(SENTENCES)


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Reads 60 tokens and writes 10 of them."""
    return tiny_bundle(
        tmp_path_factory.mktemp("brief"),
        "brief",
        task="summarize",
        source_languages=("en",),
        decoding=SearchOptions(beam_size=2, max_length=10),
        limits=Limits(max_source_tokens=60, max_target_tokens=60),
    )


@pytest.fixture
async def short(brief: Bundle) -> AsyncIterator[Served]:
    async with served({"brief": brief}, first="brief") as service:
        yield service


async def test_where_summaries_stay_long_they_are_the_answer_and_nothing_is_missing(bundles: dict[str, Bundle]) -> None:
    """Text that is copied can be read as often as one likes: no part of it ever leaves."""
    async with served(bundles, Settings(summary_depth=2, shutdown_timeout=5), first="titles") as service:
        fields = {"q": f"  {TEXT}\n\n", "details": True}
        body = (await service.client.post("/summarize", json=fields)).json()
        lines = body["summary"].split("\n")
        assert " ".join(lines) == TEXT and len(lines) > 3
        assert all(line.endswith(".") for line in lines), "parts end where sentences do"
        assert body["truncated"] is False
        assert max(map(len, service.graphs.encoded)) <= 61
        assert body["usage"]["source_tokens"] == sum(len(source) - 1 for source in service.graphs.encoded)
        spans = [sentence["target"] for sentence in body["details"][0]["sentences"]]
        assert [body["summary"][span["start"] : span["end"]] for span in spans] == lines


async def test_summaries_are_summarized_until_one_is_left(short: Served) -> None:
    body = (await short.client.post("/summarize", json={"q": TEXT, "max_length": 3, "details": True})).json()
    (sentence,) = body["details"][0]["sentences"]
    assert len(sentence["tokens"]) == 3, "the length is the answer's"
    assert sentence["source"] == {"start": 0, "end": len(TEXT)}
    vocabulary = short.bundle.target_vocabulary
    last = vocabulary.decode(short.graphs.encoded[-1][:-1])
    assert last.startswith(body["summary"]) and len(last.split()) > 3, "what it is made of had the model's own"
    assert last.endswith(".") and not body["summary"].endswith("."), "summaries that stand together are sentences"
    assert body["truncated"] is False


async def test_summaries_that_are_left_over_are_sentences(brief: Bundle) -> None:
    async with served({"brief": brief}, Settings(summary_depth=1, shutdown_timeout=5), first="brief") as service:
        fields = {"q": TEXT * 4, "details": True, "alternatives": 1}
        body = (await service.client.post("/summarize", json=fields)).json()
    lines = body["summary"].split("\n")
    spans = [sentence["target"] for sentence in body["details"][0]["sentences"]]
    assert [body["summary"][span["start"] : span["end"]] for span in spans] == lines
    for answer in (body["summary"], *body["alternatives"]):
        assert len(answer.split("\n")) > 1
        assert all(line.endswith(".") and not line.endswith("..") for line in answer.split("\n"))


async def test_summaries_have_a_limit_of_their_own(bundles: dict[str, Bundle]) -> None:
    settings = Settings(max_characters=4, max_summary_characters=8, shutdown_timeout=5)
    async with served(bundles, settings) as service:
        for text, status in (("one two", 200), ("one three", 413)):
            reply = await service.client.post("/summarize", json={"q": text, "language": "en"})
            assert reply.status_code == status, reply.text
        assert_error(await service.translate("one two"), 413, "too_large")
        shown = (await service.client.get("/frontend/settings")).json()
        assert (shown["charLimit"], shown["summaryCharLimit"]) == (4, 8)


async def test_texts_of_a_request_are_read_as_often_as_each_needs(short: Served) -> None:
    texts = ["one two.", "", TEXT]
    together = (await short.client.post("/summarize", json={"q": texts})).json()["summary"]
    alone = [(await short.client.post("/summarize", json={"q": text})).json()["summary"] for text in texts]
    assert together == alone and alone[:2] == ["one two.", ""]
    response = await short.client.post("/summarize", json={"q": texts, "stream": True})
    events = [line for line in response.text.splitlines() if line.startswith('data: {"text"')]
    assert len(events) == 2, "one for each text with words, and none for a summary that is read again"
    assert f'"text":2,"source":{{"start":0,"end":{len(TEXT)}}},"summary":"{alone[2]}"' in events[1]


@pytest.mark.parametrize(("text", "sentences", "summary"), [
    ("one two. three four. one.", 2, "one two. three four."),
    (TEXT, 5, None),
])  # fmt: skip
async def test_a_summary_ends_with_a_sentence_where_those_are_bounded(
    bundles: dict[str, Bundle], text: str, sentences: int, summary: str | None
) -> None:
    async with served(bundles, Settings(summary_depth=1, shutdown_timeout=5)) as service:
        body = (await service.client.post("/summarize", json={"q": text, "sentences": sentences})).json()
        assert body["summary"].replace("\n", " ") == (summary or " ".join(SENTENCES[:sentences]))


async def test_a_text_in_another_language_is_refused_unless_its_language_is_named(short: Served) -> None:
    german = "Wo ist der Bahnhof? Ich muss heute noch nach Hause fahren, und es ist schon spät."
    response = await short.client.post("/summarize", json={"q": ["one two", german], "method": "model"})
    body = assert_error(response, 422, "invalid_field")
    assert body["detail"][0]["field"] == "q.1" and body["detail"][0]["value"].startswith("Wo ist")
    assert "'de'" in body["error"] and "(en)" in body["error"]
    body = (await short.client.post("/summarize", json={"q": german, "language": "en"})).json()
    assert body["method"] == "model"


@pytest.mark.slow
async def test_the_shipped_model_summarizes_ten_thousand_words(request: pytest.FixtureRequest) -> None:
    from tandem.service.app import create_app
    from tests.service.support import running

    folder = Path(request.config.rootpath) / "bundles" / "arxiv-title"
    sentence = "We show in experiment {} that a model reads the long text of report {} in parts. "
    text = "".join(sentence.format(number, number * 7) for number in range(650))
    assert len(text.split()) > 10_000
    app = create_app(Settings(bundles=(folder,), shutdown_timeout=5))
    async with running(app) as client:
        body = (await client.post("/summarize", json={"q": text, "method": "model"})).json()
        assert body["truncated"] is False and body["usage"]["source_tokens"] > 10_000
        assert 0 < len(body["summary"].splitlines()) < 3
