"""Sentences and documents for load tests, with the lengths of real text.

Lengths in tokens are log-normal as those of the laboratory, whose vocabularies the client of a service does not have;
what sentences are made of stands in ``grammar.toml``. The same seed gives the same texts. Sentences
hardly ever come twice, but for the shortest, so that no cache answers in the service's place. Packages that make text
(Faker, lorem) were left out: their sentences are salads of words, to which a translation model answers with text of any
length.
"""

from __future__ import annotations

import html
import math
import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.models.errors import ConfigError

MEAN, DEVIATION = 23.0, 0.6  # tokens of a sentence before clipping, and the deviation of their logarithm
SHORTEST, LONGEST = 3, 100  # tokens
_MU = math.log(MEAN) - DEVIATION**2 / 2
_NAMED = 0.7  # share of the subjects that are names
_SHORT = 4  # words up to which a sentence is one of the short ones
_PARAGRAPHS, _SENTENCES = (2, 6), (2, 5)  # of a document, and of a paragraph; at least and at most
_GRAMMARS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("grammar.toml").read_text(encoding="utf-8"))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.split("|"))


# In any combination: they keep sentences from coming twice.
_FIRST_NAMES, _LAST_NAMES = _parts(_GRAMMARS.pop("first_names")), _parts(_GRAMMARS.pop("last_names"))
LANGUAGES = tuple(_GRAMMARS)


@dataclass(frozen=True, slots=True)
class Grammar:
    """The parts of one language's sentences.

    Attributes:
        subjects: third person singular, without a capital letter where the language needs none.
        predicates: a verb and its object, separated by a comma where further words may stand between them.
        times, places: adverbials.
        connectors: that join two main clauses without a change of their order.
        shorts: clauses of three words at most, for the shortest sentences.
        tokens_per_word: of such sentences, the full stop counted: in the vocabulary of 16,000 pieces of the shipped
            bundle for the three languages that it reads, of Spanish about.
        time_first: whether times stand between verb and object, places behind it; otherwise both stand behind it.
    """

    subjects: tuple[str, ...]
    predicates: tuple[str, ...]
    times: tuple[str, ...]
    places: tuple[str, ...]
    connectors: tuple[str, ...]
    shorts: tuple[str, ...]
    tokens_per_word: float
    time_first: bool = False

    @classmethod
    def of(cls, language: str) -> Grammar | None:
        """Of a language code, of which the part before a hyphen counts; None where there is none."""
        given = _GRAMMARS.get(language.lower().partition("-")[0])
        if given is None:
            return None
        parts: dict[str, Any] = {name: _parts(given[name]) for name in given if isinstance(given[name], str)}
        return cls(**given | parts)


@dataclass(slots=True)
class TextWriter:
    """Makes texts of one language, one after the other.

    Attributes:
        random: its draws.
        grammar: what sentences are made of; not used where there are lines.
        lines: real sentences, which are taken instead, in a random order.
    """

    random: random.Random
    grammar: Grammar | None = None
    lines: Sequence[str] = ()

    @classmethod
    def of(cls, language: str, seed: str, lines: Sequence[str] = ()) -> TextWriter:
        """A writer of a language.

        Args:
            language: code; the part before a hyphen counts.
            seed: the same seed gives the same texts.
            lines: real sentences of that language.

        Raises:
            ConfigError: there are neither lines nor a grammar of the language.
        """
        grammar = Grammar.of(language)
        if grammar is None and not lines:
            known = ", ".join(LANGUAGES)
            raise ConfigError(f"texts are made in {known}, but not in {language}: give real ones, one sentence a line")
        return cls(random.Random(seed), grammar, lines)

    def sentence(self) -> str:
        if self.grammar is None or self.lines:
            return self.random.choice(self.lines)
        tokens = min(LONGEST, max(SHORTEST, self.random.lognormvariate(_MU, DEVIATION)))
        words = _sentence(self.grammar, tokens / self.grammar.tokens_per_word, self.random)
        return words[0].upper() + words[1:] + "."

    def paragraphs(self) -> list[list[str]]:
        """The sentences of a document, by paragraphs."""
        sizes = [self.random.randint(*_SENTENCES) for _ in range(self.random.randint(*_PARAGRAPHS))]
        return [[self.sentence() for _ in range(size)] for size in sizes]

    def document(self) -> str:
        """Plain text of several paragraphs with an empty line between them."""
        return "\n\n".join(" ".join(sentences) for sentences in self.paragraphs())

    def page(self) -> str:
        """The like as HTML: a heading, paragraphs with inline markup, and a list at the end."""
        first, *rest = self.paragraphs()
        heading, *items = (html.escape(sentence) for sentence in first)
        body = "".join(f"<p>{' '.join(map(self._marked, sentences))}</p>\n" for sentences in rest)
        return f"<h1>{heading}</h1>\n{body}<ul>\n" + "".join(f"<li>{item}</li>\n" for item in items) + "</ul>\n"

    def _marked(self, sentence: str) -> str:
        """A sentence with one of its words in inline markup, or as it is."""
        words = [html.escape(word) for word in sentence.split()]
        place = self.random.randrange(len(words))
        before, after = self.random.choice(
            (("", ""), ("<b>", "</b>"), ("<em>", "</em>"), ('<a href="/page?a=1&amp;b=2">', "</a>"))
        )
        words[place] = before + words[place] + after
        return " ".join(words)


def read_lines(path: Path) -> list[str]:
    """The lines of a file that are not empty.

    Raises:
        ConfigError: there is none, the file cannot be read, or it is not UTF-8.
    """
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} must be a text file in UTF-8: {error}") from error
    if not lines:
        raise ConfigError(f"{path} must have at least one line of text, but has none")
    return lines


def _sentence(grammar: Grammar, wanted: float, draw: random.Random) -> str:
    """Clauses of so many words altogether, as nearly as whole parts allow, without capital letter and full stop."""
    if wanted <= _SHORT:
        return draw.choice(grammar.shorts)
    text = _clause(grammar, wanted, draw)
    while True:
        further = draw.choice(grammar.connectors) + " " + _clause(grammar, wanted - _words(text), draw)
        if _words(text) + _words(further) / 2 > wanted:
            return text
        text += further


def _clause(grammar: Grammar, wanted: float, draw: random.Random) -> str:
    """Subject and predicate; time and place where there is room for them."""
    named = f"{draw.choice(_FIRST_NAMES)} {draw.choice(_LAST_NAMES)}"
    subject = named if draw.random() < _NAMED else draw.choice(grammar.subjects)
    verb, _, rest = draw.choice(grammar.predicates).partition(", ")
    time, place = draw.choice(grammar.times), draw.choice(grammar.places)
    size = _words(f"{subject} {verb} {rest}")
    if size + _words(time) / 2 > wanted:
        time = ""
    if size + _words(time) + _words(place) / 2 > wanted:
        place = ""
    order = (subject, verb, time, rest, place) if grammar.time_first else (subject, verb, rest, place, time)
    return " ".join(part for part in order if part)


def _words(text: str) -> int:
    return len(text.split())
