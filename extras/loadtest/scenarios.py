"""What load tests send: kinds of requests, and mixtures of them."""

from __future__ import annotations

import http.client
import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tandem.extras.loadtest.texts import TextWriter
from tandem.models.errors import ConfigError

Kind: TypeAlias = Literal["sentence", "document", "page", "texts"]
Scenario: TypeAlias = Literal["interactive", "documents", "bulk", "mixed"]
PATH = "/translate"  # of every request
_BULK_TEXTS = 32  # texts of a request of the kind "texts"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy of the environment

SCENARIOS: Mapping[Scenario, Mapping[Kind, float]] = {
    "interactive": {"sentence": 1.0},
    "documents": {"document": 0.65, "page": 0.35},
    "bulk": {"texts": 1.0},
    "mixed": {"sentence": 0.9, "document": 0.04, "page": 0.02, "texts": 0.04},
}
"""The share of each kind among the requests."""


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
        body: JSON.
        texts: how many translations the answer must have.
        characters: that are to be translated, markup included.
    """

    kind: Kind
    body: bytes
    texts: int
    characters: int

    def fault(self, reply: bytes) -> str:
        """What is wrong with an answer of status 200; empty where nothing is."""
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
    """

    shares: Mapping[Kind, float]
    pair: Pair
    writer: TextWriter
    random: random.Random

    @classmethod
    def of(cls, scenario: Scenario, pair: Pair, seed: str, lines: Sequence[str] = ()) -> Calls:
        """The requests of a scenario.

        Args:
            scenario: name.
            pair: what is asked for.
            seed: the same seed gives the same requests.
            lines: real sentences of the source language to take instead of made ones.

        Raises:
            ConfigError: no sentences can be made in the source language, and there are no lines.
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
        return self._call(kind, [self.writer.sentence() for _ in range(_BULK_TEXTS)], priority="bulk")

    def _call(self, kind: Kind, text: str | list[str], **options: str) -> Call:
        fields = {"q": text, "source": self.pair.source, "target": self.pair.target, **options}
        parts = [text] if isinstance(text, str) else text
        return Call(kind, json.dumps(fields, ensure_ascii=False).encode(), len(parts), sum(map(len, parts)))


def served_pairs(url: str) -> list[Pair]:
    """The pairs that a service translates, from its ``GET /languages``.

    Raises:
        ConfigError: it does not answer, or with something else, or translates nothing.
    """
    where = f"{url}/languages"
    try:
        with DIRECT.open(where, timeout=30) as response:
            languages: Any = json.load(response)
        pairs = [Pair(one["code"], target) for one in languages for target in one["targets"] if target != one["code"]]
    except (OSError, ValueError, TypeError, KeyError, http.client.HTTPException) as error:
        raise ConfigError(f"{where} must list the languages of a running service: {error}") from error
    if not pairs:
        raise ConfigError(f"{where} must have a pair of languages to translate, but has none")
    return pairs


def choose_pair(pairs: Sequence[Pair], wanted: str, makeable: Sequence[str]) -> Pair:
    """The pair to ask for.

    Args:
        pairs: that are served, at least one.
        wanted: such as "de-en"; empty = the first one whose source texts can be made in, else the first.
        makeable: codes of languages that texts can be made in.

    Raises:
        ConfigError: the wanted pair is not served.
    """
    if wanted:
        found = [pair for pair in pairs if str(pair).lower() == wanted.lower()]
        if not found:
            raise ConfigError(f"the pair must be one of {', '.join(map(str, pairs))}, but is {wanted}")
        return found[0]
    return next((pair for pair in pairs if pair.source.lower().partition("-")[0] in makeable), pairs[0])
