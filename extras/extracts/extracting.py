"""Summaries without a model: sentences of the text itself, found in its paragraphs, lists and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tandem.extras.extracts.ranking import extract
from tandem.models.text import normalise
from tandem.service.text.layout import is_translatable
from tandem.service.text.segmentation import split_sentences
from tandem.service.text.spans import Span, trim
from tandem.service.translation.requests import SummarizeTask
from tandem.service.translation.results import CharacterRange, SentenceDetail, WrittenText
from tandem.service.translation.summaries import ExtractedText

MOST_SENTENCES = 3
"""Sentences of an extract, unless a request wants others; of short texts a third of theirs."""
_BLOCK = re.compile(r"\n(?=\s*(?:\n|[-*•–]\s|\d+[.)]\s))")  # before an empty line or a list's mark
_UNWRAPPED = 0.6  # of the longest line: a shorter one was not wrapped, but ends there


def extract_text(request: SummarizeTask, number: int, language: str) -> ExtractedText:
    """The extract of one of a request's texts; ``language``: its code, for where sentences end."""
    content = normalise(request.texts[number])
    places = list(_sentences(content, language))
    texts = [" ".join(content[place.start : place.end].split()) for place in places]
    most = request.sentences or max(1, min(MOST_SENTENCES, round(len(texts) / 3)))
    chosen = extract(texts, most)
    sentences, start = [], 0
    for one in chosen if request.wants_details else ():
        end = start + len(texts[one])
        sentences.append(SentenceDetail(CharacterRange(*places[one]), CharacterRange(start, end), []))
        start = end + 1
    written = WrittenText(" ".join(texts[one] for one in chosen), sentences=sentences, method="extract")
    return ExtractedText(number, trim(content, 0, len(content)), written)


def _sentences(content: str, language: str) -> Iterator[Span]:
    """Where sentences with words stand in a normalised text."""
    for block in _lines(content):
        start = block.start
        for piece in split_sentences(content[block.start : block.end].replace("\n", " "), language):
            if is_translatable(piece):
                yield trim(content, start, start + len(piece))
            start += len(piece)


def _lines(content: str) -> Iterator[Span]:
    """Paragraphs, list items, and lines that were not wrapped."""
    start = 0
    for block in (*(match.start() for match in _BLOCK.finditer(content)), len(content)):
        lines = content[start:block].splitlines(keepends=True)
        longest = max((len(line) for line in lines), default=0)
        begin = start
        for line in lines:
            start += len(line)
            if len(line) < _UNWRAPPED * longest or start == block:
                yield Span(begin, start)
                begin = start
