"""A request's texts as the model reads them: one side per source, split into sentences that become jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from models.text import normalise
from service.api.schemas import DecodingFields, TranslateRequest
from service.http.errors import InvalidFields
from service.text import Document, Measure, ParallelDocument, Splitting, is_translatable
from service.text.glossary import Glossary
from service.text.masking import Hidden, Masked, merge
from service.text.protect import ProtectError, Protector
from service.text.spans import Span
from service.translation.decoding import Codec
from service.translation.sentences import Sentence


@dataclass(frozen=True, slots=True)
class Guard:
    """What a request hides of its texts: what it protects, and the terms of its glossary."""

    protector: Protector
    glossary: Glossary

    @classmethod
    def of(cls, request: DecodingFields) -> Guard:
        """The guard of a request. Raises InvalidFields for a bad entry of ``protect``."""
        asked = (request.protect, request.glossary) if isinstance(request, TranslateRequest) else ([], {})
        try:
            return cls(Protector.of(asked[0]), Glossary.of(asked[1]))
        except ProtectError as error:
            raise _bad_entry(error) from error

    def mask(self, text: str, kept: Sequence[Span] = ()) -> Masked:
        """A text, normalised but for what is protected in it, which comes back byte for byte.

        Args:
            text: any.
            kept: places in it that are protected whatever the request says, in order.

        Raises:
            InvalidFields: looking for what is protected takes too long.
        """
        always = [(span, Hidden.kept(text[span.start : span.end], asked=False)) for span in kept]
        try:
            found = merge(always, self.protector.find(text))
        except ProtectError as error:
            raise _bad_entry(error) from error
        masked = (Masked.of(text).hide(found) if found else Masked(text)).normalised()
        terms = self.glossary.find(masked.text)
        return (masked if masked.mark else Masked.of(masked.text)).hide(terms) if terms else masked


def _bad_entry(error: ProtectError) -> InvalidFields:
    return InvalidFields.of(f"protect.{error.number}", error.bound, error.entry)


@dataclass(frozen=True, slots=True)
class Sides:
    """The texts of a request in the order of the model's sources.

    Attributes:
        fields: per source, the request's field that holds its texts.
        columns: per source its texts, all columns equally long.
        languages: per source the code of its language.
        lead: the source whose layout the reply keeps, and whose text comes back where there is nothing to do.
        complete: whether a text that has words in one source must have some in all.
        splitting: where a text of one source is split; several are split where all of them are.
    """

    fields: tuple[str, ...]
    columns: tuple[Sequence[str], ...]
    languages: tuple[str, ...]
    lead: int = 0
    complete: bool = True
    splitting: Splitting = "lines"

    def row(self, number: int) -> tuple[str, ...]:
        """One text in all sources."""
        return tuple(column[number] for column in self.columns)

    def place(self, source: int, number: int) -> str:
        """The field of a text; where there are several, with its number in the list, from 0."""
        return f"{self.fields[source]}.{number}" if len(self.columns[source]) > 1 else self.fields[source]


@dataclass(frozen=True, slots=True)
class Parsed:
    """One text of a request.

    Attributes:
        text: of the leading source, as it was sent.
        document: its layout and its sentences.
        sentences: those of the document, as they go to the model.
    """

    text: str
    document: Document
    sentences: tuple[Sentence, ...]


def parse(sides: Sides, number: int, codec: Codec, guard: Guard) -> Parsed:
    """One text of a request in sentences.

    A text alone is split wherever its model's limit asks for it, or where more is hidden in a sentence than there are
    placeholders; texts in several sources only where all of them split alike, since nobody knows which part of one
    belongs to which part of another.

    Raises:
        InvalidFields: a text has words in some sources only, or is too long for the model and cannot be split.
    """
    if len(sides.columns) > 1:
        return _parse_several(sides, number, codec, guard)
    text = sides.columns[0][number]
    return parse_alone(text, guard.mask(text), sides, codec)


def parse_alone(text: str, masked: Masked, sides: Sides, codec: Codec) -> Parsed:
    """A text of one source in sentences.

    Args:
        text: as it was sent.
        masked: the same, as ``Guard.mask`` returns it.
        sides: says its language, and where it is split.
        codec: of the bundle that translates it.
    """
    language, target = sides.languages[0], codec.bundle.manifest.target_language
    document = Document.parse(masked.text, language, target, codec.limit, _measure(codec, masked), sides.splitting)
    if not masked.hidden:
        return Parsed(text, document, tuple(Sentence.plain(piece.text) for piece in document.sentences))
    own = list(masked.divide(piece.text for piece in document.pieces))
    translated = [piece.translatable or bool(one.hidden) for piece, one in zip(document.pieces, own, strict=True)]
    parts = [(one.source, flag) for one, flag in zip(own, translated, strict=True)]
    sentences = tuple(Sentence((one.source,), one) for one, flag in zip(own, translated, strict=True) if flag)
    return Parsed(text, Document.of(parts, language, target), sentences)


def _measure(codec: Codec, masked: Masked) -> Measure:
    """Counts tokens so that a sentence in which too much is hidden counts as too long."""
    if not masked.hidden:
        return codec.measure
    placeholders = len(codec.placeholders)
    longest = 0 if placeholders else max(codec.measure(one.source) for one in masked.hidden)

    def measure(text: str) -> int:
        hidden, tokens = text.count(masked.mark), codec.measure(text)
        if placeholders:
            return max(tokens, math.ceil(hidden * codec.limit / placeholders))
        return tokens + hidden * longest

    return measure


def _parse_several(sides: Sides, number: int, codec: Codec, guard: Guard) -> Parsed:
    row = sides.row(number)
    texts = [normalise(text) for text in row]
    wordy = [is_translatable(text) for text in texts]
    if sides.complete and any(wordy) and not all(wordy):
        source = wordy.index(False)
        message = "must have words where the same text in another language has some"
        raise InvalidFields.of(sides.place(source, number), message, row[source])
    found = ParallelDocument.parse(texts, sides.languages, sides.lead, codec.bundle.manifest.target_language)
    for sentence in found.sentences:
        for source, text in enumerate(sentence):
            tokens = codec.measure(text, source)
            if tokens > codec.limit:
                bound = f"must be at most {codec.limit} tokens long between two places where all of its texts break"
                remedy = "shorten the text, or break lines and sentences at the same places in all of them"
                raise InvalidFields.of(sides.place(source, number), bound, tokens, remedy)
    sentences = tuple(Sentence(one, guard.mask(one[sides.lead])) for one in found.sentences)
    return Parsed(row[sides.lead], found.document, sentences)
