"""From a request's fields to decoding jobs, and from decoded sentences to text: what all decoding routes share."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from models.bundle import Bundle
from models.errors import VocabularyError
from models.rendering import Renderer
from models.search import Hypothesis, Sampling, SearchOptions
from models.vocabulary import EDITS
from service.api.schemas import DecodingFields, Time, Usage
from service.engine import Decoded, Engine, Job, Priority
from service.http.errors import InvalidFields, TooLarge
from service.settings import Settings

Polish = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Codec:
    """A bundle's text side: counts, encodes and decodes. Safe to use from several threads.

    A sentence is one text per source of the model, in the bundle's order: for most models a tuple of one.
    """

    bundle: Bundle

    @property
    def limit(self) -> int:
        """Tokens of a sentence in each source, EOS not counted."""
        return self.bundle.manifest.limits.max_source_tokens

    def measure(self, text: str, source: int = 0) -> int:
        """Tokens of a text, as ``encode`` makes them of that source, without EOS."""
        return len(self.bundle.source_vocabularies[source].encode(_single_spaced(text)))

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Strings that can stand for parts of a text and that the model learnt to copy; of several texts none are."""
        manifest, target = self.bundle.manifest, self.bundle.target_vocabulary
        learnt = manifest.training.recipe.get("data", {}).get("placeholder_share") != 0
        if len(self.bundle.sources) != 1 or manifest.target_form != "text" or not learnt:
            return ()
        (source,) = self.bundle.source_vocabularies
        written = {target.piece_of(token) for token in target.placeholders}
        return tuple(piece for piece in map(source.piece_of, source.placeholders) if piece in written)

    def encode(self, sentence: Sequence[str], reserved: Collection[str] = ()) -> tuple[tuple[int, ...], ...]:
        """Ids with EOS per source; runs of white space count as one space, as in training text.

        Args:
            sentence: one text per source.
            reserved: the reserved strings that stand for their tokens; all others are spelled like any other text.
        """
        pairs = zip(self.bundle.source_vocabularies, sentence, strict=True)
        allowed = reserved or False
        return tuple(
            (*vocabulary.encode(_single_spaced(text), reserved=allowed), vocabulary.eos) for vocabulary, text in pairs
        )

    def decode(self, hypothesis: Hypothesis, sentence: Sequence[str]) -> str:
        """A hypothesis as text, on one line; ``sentence`` is what was translated, as it was given to ``encode``."""
        lines = [_single_spaced(text) for text in sentence]
        return _single_spaced(Renderer.of(self.bundle).text(hypothesis, (), lines))

    def pieces(self, hypothesis: Hypothesis) -> list[str]:
        """A hypothesis as the vocabulary's pieces."""
        return [self.bundle.target_vocabulary.piece_of(token) for token in hypothesis.tokens]


@dataclass(frozen=True, slots=True)
class Plan:
    """How one request is decoded.

    Attributes:
        codec: the bundle's text side.
        options: of every sentence but a text's first.
        first: of a text's first sentence, which carries the prefix.
        priority, deadline, tag: of every job.
        aligns: whether hypotheses can carry their attention.
        polish: what is made of a sentence's text and its translation before that takes its place; None = nothing.
    """

    codec: Codec
    options: SearchOptions
    first: SearchOptions
    priority: Priority
    deadline: float
    tag: str
    aligns: bool = False
    polish: Polish | None = None

    def job(
        self, sentence: Sequence[str], *, first: bool = False, reserved: Sequence[str] = (), attention: bool = False
    ) -> Job:
        """A sentence to decode.

        Args:
            sentence: one text per source.
            first: whether it is a text's first one.
            reserved: placeholders in it, as often as each is to be written.
            attention: whether the hypotheses are to carry theirs, where the model can give it.
        """
        target = self.codec.bundle.target_vocabulary
        options = self.first if first else self.options
        if reserved:
            options = replace(options, required=tuple(target.id_of(piece) for piece in reserved))
        if attention and self.aligns:
            options = replace(options, attention=True)
        ids = self.codec.encode(sentence, frozenset(reserved))
        return Job(self.codec.bundle.manifest.name, ids, options, self.priority, self.deadline, tag=self.tag)


def check_size(fields: DecodingFields, settings: Settings) -> int:
    """The characters of a request. Raises TooLarge or InvalidFields where it has too many characters or texts."""
    if len(fields.texts) > settings.max_texts:
        raise InvalidFields.of("q", f"may hold at most {settings.max_texts} texts", len(fields.texts))
    for name, texts in fields.further_texts.items():
        if len(texts) != len(fields.texts):
            message = f"must hold as many texts as q, which has {len(fields.texts)}"
            raise InvalidFields.of(name, message, len(texts))
    characters = sum(len(text) for texts in (fields.texts, *fields.further_texts.values()) for text in texts)
    if characters > settings.max_characters:
        raise TooLarge("characters", settings.max_characters, characters, "send it in several requests")
    return characters


def check_cost(jobs: Sequence[Job], settings: Settings) -> None:
    """Refuse what could take far more decoding than its characters suggest: wide beams, alternatives, long targets.

    Raises:
        InvalidFields: beam size x (alternatives + 1) x target tokens at most, summed over the sentences, is too much.
    """
    cost = 0
    for job in jobs:
        options = job.options
        cost += options.beam_size * options.n_best * options.bounds(job.length - 1)[1]
    if cost > settings.max_decoding_cost:
        what = "beam_size x (alternatives + 1) x max_length over all sentences"
        message = f"{what} may be at most {settings.max_decoding_cost}"
        raise InvalidFields.of("beam_size", message, cost, "ask for less of one of them, or send less text")


def make_plan(fields: DecodingFields, bundle: Bundle, engine: Engine, settings: Settings, tag: str) -> Plan:
    """Check a request's options against server and bundle.

    Raises:
        InvalidFields, OptionError, TooLarge: an option or the size is out of bounds.
    """
    characters = check_size(fields, settings)
    codec = Codec(bundle)
    options = search_options(fields, bundle, settings)
    if fields.alignments:
        options = replace(options, attention=True)
        if not engine.aligns(bundle.manifest.name):
            message = f"must be false for {bundle.manifest.name}, which does not say what its words align with"
            raise InvalidFields.of("alignments", message, True)
    prefix = tuple(bundle.target_vocabulary.encode(fields.prefix)) if fields.prefix else ()
    deadline = engine.clock() + request_seconds(fields, settings)
    priority = priority_of(characters, fields.priority, settings)
    aligns = engine.aligns(bundle.manifest.name)
    return Plan(codec, options, replace(options, prefix=prefix), priority, deadline, tag, aligns)


def priority_of(characters: int, asked: Literal["interactive", "bulk"] | None, settings: Settings) -> Priority:
    """The priority of a request: the one that it asks for, or by its characters."""
    bulk = characters > settings.bulk_characters if asked is None else asked == "bulk"
    return Priority.BULK if bulk else Priority.INTERACTIVE


def request_seconds(fields: DecodingFields, settings: Settings) -> float:
    """The request's deadline. Raises InvalidFields where it asks for more than the server's."""
    if fields.timeout is None:
        return settings.request_timeout
    _at_most("timeout", fields.timeout, settings.request_timeout)
    return fields.timeout


def search_options(fields: DecodingFields, bundle: Bundle, settings: Settings) -> SearchOptions:
    """The bundle's decoding defaults with the request's changes.

    Raises:
        InvalidFields, OptionError: out of the server's, the bundle's or the search's bounds.
    """
    defaults = bundle.manifest.decoding
    beam_size = fields.beam_size if fields.beam_size is not None else min(defaults.beam_size, settings.max_beam_size)
    _at_most("beam_size", beam_size, settings.max_beam_size)
    _at_most("alternatives", fields.alternatives, beam_size - 1, "the beam size less one, ")
    longest = bundle.manifest.limits.max_target_tokens
    for name in ("min_length", "max_length"):
        _at_most(name, getattr(fields, name), longest)
    names = ("length_penalty", "coverage_penalty", "min_length", "max_length", "no_repeat_ngram_size")
    given = {name: getattr(fields, name) for name in names if getattr(fields, name) is not None}
    if "min_length" in given and "max_length" not in given:
        given["max_length"] = max(defaults.max_length, given["min_length"])
    if "max_length" in given and "min_length" not in given:
        given["min_length"] = min(defaults.min_length, given["max_length"])
    if bundle.manifest.target_form == "edits" and given.get("no_repeat_ngram_size"):
        message = f"must be 0 for {bundle.manifest.name}, which writes edits, and most of those are equal"
        raise InvalidFields.of("no_repeat_ngram_size", message, given["no_repeat_ngram_size"])
    suppressed = tuple(sorted({*defaults.suppressed, *_reserved(bundle)}))
    sampling = _sampling(fields) or defaults.sampling
    options = replace(
        defaults, beam_size=beam_size, n_best=fields.alternatives + 1, suppressed=suppressed, sampling=sampling, **given
    )
    return Renderer.of(bundle).options(options)


def usage_of(characters: int, jobs: Sequence[Job], decoded: Sequence[Decoded]) -> Usage:
    """What a request amounted to."""
    source = sum(len(source) - 1 for job in jobs for source in job.sources)
    target = sum(len(one.hypotheses[0].tokens) for one in decoded if one.hypotheses)
    return Usage(characters=characters, source_tokens=source, target_tokens=target)


def time_of(decoded: Sequence[Decoded], total: float) -> Time:
    """Where a request's time went."""
    return Time(
        queue=round(max((one.queue for one in decoded), default=0.0), 6),
        encode=round(max((one.encode for one in decoded), default=0.0), 6),
        decode=round(max((one.decode for one in decoded), default=0.0), 6),
        total=round(total, 6),
    )


def _at_most(name: str, value: float | None, bound: float, why: str = "") -> None:
    if value is not None and value > bound:
        raise InvalidFields.of(name, f"must be at most {why}{bound}", value)


def _sampling(fields: DecodingFields) -> Sampling | None:
    wanted = fields.sampling
    if wanted is None:
        return None
    seed = secrets.randbits(31) if wanted.seed is None else wanted.seed
    return Sampling(wanted.temperature, wanted.top_k, wanted.top_p, seed)


def _reserved(bundle: Bundle) -> set[int]:
    """Placeholders and language tags: part of a translation only when they were asked for. Edits only where written."""
    vocabulary, manifest = bundle.target_vocabulary, bundle.manifest
    tokens = set(vocabulary.placeholders)
    for code in {*manifest.source_languages, manifest.target_language}:
        with suppress(VocabularyError):
            tokens.add(vocabulary.language_tag(code))
    for piece in EDITS if manifest.target_form == "text" else ():
        with suppress(VocabularyError):
            tokens.add(vocabulary.id_of(piece))
    return tokens


def _single_spaced(text: str) -> str:
    return " ".join(text.split())
