"""What people type first, over HTTP, with the answers that a speaker would accept: 50 phrases a direction, and words.

Each line of a table is a text, a tab, and acceptable translations parted by " | ". Case, what stands at the end of a
sentence and the form of apostrophes do not count. Of the words a line has those of a meaning in each language, and the
first of each is what is asked for; an article before the answer does not count.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from pathlib import Path

import httpx
import pytest

from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.service.support import running

ARTICLE = re.compile(r"^(?:the|an?|to|der|die|das|eine?|le|la|les|une?) |^l'")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# The least share of acceptable answers; raised with every better model, never lowered. One phrase below what was
# counted, for a near tie may fall otherwise on another processor. A direction that nothing serves has none.
FLOORS = {"de-en": 0.88, "en-de": 0.9, "fr-en": 0.82, "en-fr": 0.88}
WORD_FLOORS = {"de-en": 0.97, "en-de": 0.91, "fr-en": 0.91, "en-fr": 0.91}
# Of the page's examples all must be right, in every pair that is served.
EXAMPLES = {
    "de": r"Wo ist der Bahnhof\? Ich warte auf meine Freunde\.",
    "fr": r"Où (est|se trouve) la gare ?\? J'attends mes amis\.",
    "en": r"Where('s| is) the (train )?station\? (I'm|I am) waiting for my friends\.",
}
SUMMARIES = r"(Estimating )?(the )?Depth (Estimation )?(of a Scene )?from a Single Image"


def plain(text: str) -> str:
    """A text without what does not count."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(text.strip(" .!?…").replace(" ,", ",").split())


def table(direction: str) -> list[tuple[str, list[str]]]:
    lines = (HERE / f"{direction}.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(source, answers.split(" | ")) for source, answers in rows]


@pytest.mark.parametrize("direction", ["de-en", "en-de", "fr-en", "en-fr"])
def test_a_table_has_fifty_phrases_each_once(direction: str) -> None:
    rows = table(direction)
    assert len({source for source, _ in rows}) == len(rows) == 50
    assert all(len(set(map(plain, answers))) == len(answers) for _, answers in rows)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for all tests of this module, which share a service."""
    return "asyncio"


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """Of a service with the shipped bundles."""
    async with running(create_app(Settings(bundles=(ROOT / "bundles",)))) as client:
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("direction", sorted(FLOORS))
async def test_what_people_try_first_is_translated(client: httpx.AsyncClient, direction: str) -> None:
    source, target = direction.split("-")
    rows = table(direction)
    body = {"q": [text for text, _ in rows], "source": source, "target": target}
    reply = await client.post("/translate", json=body)
    assert reply.status_code == 200, reply.text
    pairs = zip(rows, reply.json()["translatedText"], strict=True)
    wrong = {text: answer for (text, good), answer in pairs if plain(answer) not in set(map(plain, good))}
    share = (len(rows) - len(wrong)) / len(rows)
    assert share >= FLOORS[direction], json.dumps(wrong, ensure_ascii=False, indent=1)


def word_table(direction: str) -> dict[str, set[str]]:
    """For each word that is asked for the acceptable answers, plain: all meanings of one that has several count."""
    header, *lines = (HERE / "words.tsv").read_text(encoding="utf-8").splitlines()
    source, target = (header.split("\t").index(language) for language in direction.split("-"))
    rows = [[cell.split(" | ") for cell in line.split("\t")] for line in lines]
    answers: dict[str, set[str]] = {row[source][0]: set() for row in rows}
    for row in rows:
        for word in row[source]:
            if word in answers:
                answers[word] |= set(map(plain, row[target]))
    return answers


@pytest.mark.anyio
@pytest.mark.parametrize("direction", sorted(WORD_FLOORS))
async def test_single_words_are_translated(client: httpx.AsyncClient, direction: str) -> None:
    source, target = direction.split("-")
    words = word_table(direction)
    assert len(words) >= 440
    right = 0
    for some in batched(words, 100):
        reply = await client.post("/translate", json={"q": some, "source": source, "target": target})
        assert reply.status_code == 200, reply.text
        answers = [ARTICLE.sub("", plain(answer)) for answer in reply.json()["translatedText"]]
        right += sum(answer in words[word] for word, answer in zip(some, answers, strict=True))
    assert right / len(words) >= WORD_FLOORS[direction]


def batched(words: Iterable[str], size: int) -> Iterator[list[str]]:
    remaining = iter(words)
    while some := list(islice(remaining, size)):
        yield some


@pytest.mark.anyio
async def test_what_the_page_offers_as_an_example_is_translated_right(client: httpx.AsyncClient) -> None:
    script = (ROOT / "service/web/strings.js").read_text(encoding="utf-8")
    examples = dict(re.findall(r'^  (\w\w): "(.*)",$', script, re.MULTILINE))
    (summary,) = re.findall(r"SUMMARY_EXAMPLE =((?:\s+\".*\" ?\+?)+);", script)
    for language in (await client.get("/languages")).json():
        source = language["code"]
        for target in set(language["targets"]) - {source}:
            body = {"q": examples[source], "source": source, "target": target}
            answer = (await client.post("/translate", json=body)).json()["translatedText"]
            assert re.fullmatch(EXAMPLES[target], answer.replace("’", "'")), f"{source}-{target}: {answer}"
    reply = await client.post("/summarize", json={"q": "".join(re.findall('"(.*)"', summary))})
    assert re.fullmatch(SUMMARIES, reply.json()["summary"]), reply.text
