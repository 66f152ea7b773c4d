"""One text in several languages, cut into sentences only where all of them divide alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.service.text.layout import Document, Part, split_lines


@dataclass(frozen=True, slots=True)
class ParallelDocument:
    """A text whose sentences are known in several languages.

    Attributes:
        document: the leading text, whose layout around its sentences is kept.
        sentences: for each sentence of the document, its texts in the order of the languages.
    """

    document: Document
    sentences: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, texts: Sequence[str], languages: Sequence[str], lead: int, target: str) -> ParallelDocument:
        """Split normalised texts that say the same.

        Their lines with words in them are paired if all have equally many, and within a pair of lines the sentences.
        Otherwise the sentences of the whole text are paired if all have equally many. What does not divide alike stays
        one sentence: a whole line, or the whole text, line breaks included. Where one of the texts holds no words at
        all there is no sentence.

        Args:
            texts: one per language, as ``models.text.normalise`` returns them.
            languages: their codes.
            lead: which of them leads.
            target: code of the language that the sentences are replaced by.
        """
        sides = [split_lines(text, code, lambda one: [one]) for text, code in zip(texts, languages, strict=True)]
        wordy = [[line for line in lines if _count(line)] for lines in sides]
        if not all(wordy):
            return cls(Document.of(_as_layout(texts[lead]), languages[lead], target), ())
        if len({len(lines) for lines in wordy}) > 1:
            sides = [[[part for line in lines for part in line]] for lines in sides]
            wordy = sides
        paired = [_alike(group) for group in zip(*wordy, strict=True)]
        leading = iter([group[lead] for group in paired])
        parts = [part for line in sides[lead] for part in (next(leading) if _count(line) else line)]
        sentences = [one for group in paired for one in zip(*map(_sentences, group), strict=True)]
        return cls(Document.of(parts, languages[lead], target), tuple(sentences))


def _alike(group: Sequence[list[Part]]) -> Sequence[list[Part]]:
    """Lines with equally many sentences: their own, or each line's as one."""
    return group if len({_count(line) for line in group}) == 1 else [_merged(line) for line in group]


def _merged(line: list[Part]) -> list[Part]:
    """All from the first sentence of a line to the last as one; what stands around them stays."""
    inside = [index for index, (_, translatable) in enumerate(line) if translatable]
    first, last = inside[0], inside[-1] + 1
    return [*line[:first], ("".join(text for text, _ in line[first:last]), True), *line[last:]]


def _sentences(line: list[Part]) -> list[str]:
    return [text for text, translatable in line if translatable]


def _count(line: list[Part]) -> int:
    return sum(translatable for _, translatable in line)


def _as_layout(text: str) -> list[Part]:
    return [(text, False)] if text else []
