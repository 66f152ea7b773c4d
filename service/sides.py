"""A request's texts as the model reads them: one side per source, split into sentences that become jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.text import normalise
from service.decoding import Codec, Plan
from service.engine import Job
from service.errors import InvalidFields
from service.text import Document, ParallelDocument, is_translatable


@dataclass(frozen=True, slots=True)
class Sides:
    """The texts of a request in the order of the model's sources.

    Attributes:
        fields: per source, the request's field that holds its texts.
        columns: per source its texts, all columns equally long.
        languages: per source the code of its language.
        lead: the source whose layout the reply keeps, and whose text comes back where there is nothing to do.
        complete: whether a text that has words in one source must have some in all.
    """

    fields: tuple[str, ...]
    columns: tuple[Sequence[str], ...]
    languages: tuple[str, ...]
    lead: int = 0
    complete: bool = True

    @property
    def rows(self) -> Iterator[tuple[str, ...]]:
        """Each text in all sources."""
        return zip(*self.columns, strict=True)

    def place(self, source: int, number: int) -> str:
        """The field of a text; where there are several, with its number in the list, from 0."""
        return f"{self.fields[source]}.{number}" if len(self.columns[source]) > 1 else self.fields[source]


@dataclass(frozen=True, slots=True)
class Parsed:
    """One text of a request.

    Attributes:
        text: of the leading source, as it was sent.
        document: its layout and its sentences.
        sentences: per sentence of the document its text in every source.
    """

    text: str
    document: Document
    sentences: tuple[tuple[str, ...], ...]


def split(sides: Sides, plan: Plan) -> tuple[list[Parsed], list[Job]]:
    """Each text of a request in sentences, and the jobs of all of them in order.

    A text alone is split wherever its model's limit asks for it; texts in several sources only where all of them split
    alike, since nobody knows which part of one belongs to which part of another.

    Raises:
        InvalidFields: a text has words in some sources only, or is too long for the model and cannot be split.
    """
    codec = plan.codec
    parse = _parse_one if len(sides.columns) == 1 else _parse_several
    parsed = [parse(sides, number, row, codec) for number, row in enumerate(sides.rows)]
    return parsed, plan.jobs([one.sentences for one in parsed])


def _parse_one(sides: Sides, number: int, row: tuple[str, ...], codec: Codec) -> Parsed:
    target = codec.bundle.manifest.target_language
    document = Document.parse(normalise(row[0]), sides.languages[0], target, codec.limit, codec.measure)
    return Parsed(row[0], document, tuple((piece.text,) for piece in document.sentences))


def _parse_several(sides: Sides, number: int, row: tuple[str, ...], codec: Codec) -> Parsed:
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
    return Parsed(row[sides.lead], found.document, found.sentences)
