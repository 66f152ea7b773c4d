"""What load tests send, shared by Locust's users and the open-loop client: kinds of requests, and scenarios of them.

Files are jobs of several requests: only Locust's users send them. `tandem loadtest` sends sentences alone, which people
wait for.
"""

from __future__ import annotations

import http.client
import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from deploy.loadtest.texts import TextWriter

Kind = Literal["sentence", "document", "page", "texts", "file"]
PATH = "/translate"  # of every request but files
BULK_TEXTS = 32  # texts of a request of the kind "texts", and lines of a file
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy of the environment


SCENARIOS: Mapping[str, Mapping[Kind, float]] = {
    "interactive": {"sentence": 1.0},
    "documents": {"document": 0.65, "page": 0.35},
    "bulk": {"texts": 0.9, "file": 0.1},
    "mixed": {"sentence": 0.9, "document": 0.04, "page": 0.02, "texts": 0.03, "file": 0.01},
}
"""The share of each kind among the requests."""

# Seconds that a user takes before the next request, on average: to read a sentence or a document. Programs take none.
THINK: Mapping[Kind, float] = {"sentence": 5.0, "document": 20.0, "page": 20.0, "texts": 0.0, "file": 0.0}


@dataclass(frozen=True, slots=True)
class Pair:
    """Language codes."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True, slots=True)
class Call:
    """A request.

    Attributes:
        kind: see there.
        body: JSON; of a file its content.
        texts: how many translations the answer must have; of a file its lines.
        characters: that are to be translated, markup included.
    """

    kind: Kind
    body: bytes
    texts: int
    characters: int

    def fault(self, reply: bytes) -> str:
        """What is wrong with an answer of status 200; empty where nothing is."""
        if self.kind == "file":
            return _fault_of_lines(reply, self.texts)
        try:
            answer = json.loads(reply)
        except ValueError:
            return "the answer is not JSON"
        found = answer.get("translatedText") if isinstance(answer, dict) else None
        if self.kind != "texts":
            found = [found]
        if not isinstance(found, list) or len(found) != self.texts:
            return f"the answer must have {self.texts} translations"
        empty = sum(not isinstance(text, str) or not text.strip() for text in found)
        return f"{empty} of {self.texts} translations are missing or empty" if empty else ""


@dataclass(slots=True)
class Calls:
    """The requests of a scenario, one after the other, without end.

    Attributes:
        shares: of the kinds.
        pair: what is asked for.
        writer: of the texts, in the pair's source language.
        random: draws kinds.
        bulk_texts: texts of a request of the kind "texts".
    """

    shares: Mapping[Kind, float]
    pair: Pair
    writer: TextWriter
    random: random.Random
    bulk_texts: int = BULK_TEXTS

    @classmethod
    def of(cls, scenario: str, pair: Pair, seed: str, lines: Sequence[str] = ()) -> Calls:
        """The requests of a scenario.

        Args:
            scenario: name.
            pair: what is asked for.
            seed: the same seed gives the same requests.
            lines: real sentences of the source language to take instead of made ones.

        Raises:
            ValueError: no sentences can be made in the source language, and there are no lines.
        """
        return cls(SCENARIOS[scenario], pair, TextWriter.of(pair.source, seed, lines), random.Random(f"{seed}/kinds"))

    def __iter__(self) -> Iterator[Call]:
        return self

    def __next__(self) -> Call:
        (kind,) = self.random.choices(list(self.shares), list(self.shares.values()))
        if kind == "sentence":
            return self._call(kind, self.writer.sentence())
        if kind == "document":
            return self._call(kind, self.writer.document())
        if kind == "page":
            return self._call(kind, self.writer.page(), format="html")
        sentences = [self.writer.sentence() for _ in range(self.bulk_texts)]
        if kind == "texts":
            return self._call(kind, sentences, priority="bulk")
        content = "\n".join(sentences) + "\n"
        return Call(kind, content.encode(), len(sentences), len(content))

    def _call(self, kind: Kind, text: str | list[str], **options: str) -> Call:
        fields = {"q": text, "source": self.pair.source, "target": self.pair.target, **options}
        parts = [text] if isinstance(text, str) else text
        return Call(kind, json.dumps(fields, ensure_ascii=False).encode(), len(parts), sum(map(len, parts)))


def served_pairs(url: str) -> list[Pair]:
    """The pairs that a service translates, from its ``GET /languages``.

    Raises:
        ValueError: it does not answer, or with something else, or translates nothing.
    """
    where = f"{url}/languages"
    try:
        with _DIRECT.open(where, timeout=30) as response:
            languages: Any = json.load(response)
        pairs = [Pair(one["code"], target) for one in languages for target in one["targets"] if target != one["code"]]
    except (OSError, ValueError, TypeError, KeyError, http.client.HTTPException) as error:
        raise ValueError(f"{where} must list the languages of a running service: {error}") from error
    if not pairs:
        raise ValueError(f"{where} must have a pair of languages to translate, but has none")
    return pairs


def choose_pair(pairs: Sequence[Pair], wanted: str, makeable: Sequence[str]) -> Pair:
    """The pair to ask for.

    Args:
        pairs: that are served, at least one.
        wanted: such as "de-en"; empty = the first one whose source texts can be made in, else the first.
        makeable: codes of languages that texts can be made in.

    Raises:
        ValueError: the wanted pair is not served.
    """
    if wanted:
        found = [pair for pair in pairs if str(pair).lower() == wanted.lower()]
        if not found:
            raise ValueError(f"the pair must be one of {', '.join(map(str, pairs))}, but is {wanted}")
        return found[0]
    return next((pair for pair in pairs if pair.source.lower().partition("-")[0] in makeable), pairs[0])


def _fault_of_lines(reply: bytes, count: int) -> str:
    """What is wrong with a translated file, which must have a line with text for every line that was sent."""
    try:
        lines = reply.decode().removesuffix("\n").split("\n")  # other line breaks of Unicode may be in a line
    except UnicodeDecodeError:
        return "the file is not UTF-8"
    filled = sum(bool(line.strip()) for line in lines)
    return "" if len(lines) == filled == count else f"the file must have {count} lines of text, but has {filled}"
