"""Where parts of a sentence stand in its translation, by the words that belong together, and the parts put there.

What comes back as it is and a model did not copy, it wrote as something else: words that it read off that part alone.
Their stretch is the part's place. Where no such words are known, the part goes behind the translation of what stood
before it. Models without placeholders are translated with so: their sentences stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from tandem.service.bundles.aligning import WordPairs
from tandem.service.text.masking import Hidden, Masked
from tandem.service.text.placeholders import NAMES, found_parts, places_of_parts
from tandem.service.text.protect import literals
from tandem.service.text.spans import Span


def project(masked: Masked, written: str, pairs: WordPairs, onward: bool = False) -> Masked:
    """A translation with each hidden part of its source at its place, hidden again.

    Args:
        masked: the source; it was read as it is, with nothing in the place of what is hidden.
        written: the translation.
        pairs: of words of ``masked.source`` and of the translation.
        onward: whether what stands for a term stays, as it is translated once more; no place without words has one.
    """
    spans = _spans(masked, written, pairs)
    hidden = list(masked.hidden)
    if onward:
        for number, (part, span) in enumerate(zip(hidden, spans, strict=True)):
            if part.read_first:
                hidden[number] = Hidden.kept(written[slice(*span)])
    names = [*islice((chr(code) for code in NAMES if chr(code) not in written), len(hidden))]
    named = _named(written, masked, spans, names)
    text, places = places_of_parts(named, Masked(masked.text, tuple(hidden), masked.mark), names)
    found = ((place, _as_written(masked.hidden[number], text[slice(*place)])) for number, place in places)
    return Masked(text).hide(sorted(found, key=lambda one: one[0]))


def pairs_of_parts(masked: Masked, written: str) -> WordPairs:
    """The hidden parts of a source, and what stands for them in a translation that has them in its order."""
    pairs, done = [], 0
    for read, part in zip(_places(masked) if masked.hidden else (), masked.hidden, strict=True):
        if match := re.compile(re.escape(part.target), re.IGNORECASE).search(written, done):
            pairs.append((read, Span(*match.span())))
            done = match.end()
    return pairs


def parted(pairs: WordPairs, source: str, written: str) -> Iterator[tuple[Span, Span]]:
    """Pairs, those of dates and times by their parts: "am" and "on", "Montag," and "Monday,", and the rest."""
    for read, to in pairs:
        for beginning in _BEGINNINGS:
            ours, theirs = beginning.match(source, *read), beginning.match(written, *to)
            if ours and theirs:
                yield Span(*ours.span(1)), Span(*theirs.span(1))
                read, to = Span(ours.end(), read.end), Span(theirs.end(), to.end)
        yield read, to


_BEGINNINGS = (re.compile(r"([^\W\d_]+) (?=\D*\d)"), re.compile(r"([^\W\d_]+), (?=\D*\d)"))


def _as_written(part: Hidden, text: str) -> Hidden:
    return Hidden(text, part.target, part.term, part.asked, part.at_once, part.instead_of)


def _spans(masked: Masked, target: str, pairs: WordPairs) -> list[Span]:
    """Per part the characters of the translation that stand for it; an empty span, at a place, where none do."""
    source = _places(masked)
    there = found_parts(target, masked.hidden, ("",) * len(source))
    spans: dict[int, Span] = {}
    for number, (part, place) in enumerate(zip(masked.hidden, source, strict=True)):
        if there[number] and (literal := _literal(part.target, target, _behind(place, pairs), spans.values())):
            spans[number] = literal
    lost = {number: place for number, place in enumerate(source) if number not in spans}
    own = _own_words(lost, pairs, [*spans.values()])
    for number, place in lost.items():
        at = _behind(place, pairs)
        run = _longest_run(own[number], target)
        spans[number] = _with_marks(run, masked.hidden[number].source, target) if run else Span(at, at)
    return [spans[number] for number in range(len(source))]


def _places(masked: Masked) -> list[Span]:
    """Where the hidden parts stand in the source."""
    places, done = [], 0
    for text, part in zip(masked.text.split(masked.mark), masked.hidden, strict=False):
        start = done + len(text)
        done = start + len(part.source)
        places.append(Span(start, done))
    return places


def _literal(part: str, target: str, expected: int, taken: Collection[Span]) -> Span | None:
    """Of the places where a part stands as it is the free one that is nearest to where it is expected."""
    found = (Span(*match.span()) for match in literals((part,)).finditer(target))
    free = [span for span in found if not any(_overlap(span, other) for other in taken)]
    return min(free, key=lambda span: abs(span.start - expected), default=None)


def _behind(place: Span, pairs: WordPairs) -> int:
    """Where the translation of what stands before a part ends; or else where that of what stands behind it begins."""
    before = [(read.end, written.end) for read, written in pairs if read.end <= place.start]
    if before:
        return max(before)[1]
    return min(((read.start, written.start) for read, written in pairs if read.start >= place.end), default=(0, 0))[1]


def _own_words(parts: dict[int, Span], pairs: WordPairs, taken: Collection[Span]) -> dict[int, list[Span]]:
    """Per lost part the words of the translation that belong to no other word of the source, in order."""
    reads: dict[Span, list[Span]] = {}
    for read, written in pairs:
        if not any(_overlap(written, span) for span in taken):
            reads.setdefault(written, []).append(read)
    own: dict[int, list[Span]] = {number: [] for number in parts}
    for written, of in sorted(reads.items()):
        owners = [next((number for number, place in parts.items() if _overlap(read, place)), None) for read in of]
        first = owners[0]
        if first is not None and all(owner == first for owner in owners):
            own[first].append(written)
    return own


def _longest_run(words: Iterable[Span], target: str) -> Span | None:
    """The longest stretch of words without others between them."""
    runs: list[Span] = []
    for word in words:
        if runs and not any(map(str.isalnum, target[runs[-1].end : word.start])):
            runs[-1] = Span(runs[-1].start, word.end)
        else:
            runs.append(word)
    return max(runs, key=lambda run: run.end - run.start, default=None)


def _with_marks(run: Span, part: str, target: str) -> Span:
    """A stretch with the marks around it with which the part begins and ends."""
    letters = [place for place, character in enumerate(part) if character.isalnum()] or [len(part)]
    lead, trail = part[: letters[0]], part[letters[-1] + 1 :]
    left = next((size for size in range(len(lead), 0, -1) if target[: run.start].endswith(lead[-size:])), 0)
    right = next((size for size in range(len(trail), 0, -1) if target.startswith(trail[:size], run.end)), 0)
    return Span(run.start - left, run.end + right)


def _named(target: str, masked: Masked, spans: Sequence[Span], names: Sequence[str]) -> str:
    """The translation with a name in the place of each part; of overlapping ones each gets one."""
    around = masked.text.split(masked.mark)
    written, done = "", 0
    for number in sorted(range(len(spans)), key=lambda number: (spans[number], number)):
        span, name = spans[number], names[number]
        written += target[done : max(done, span.start)]
        done = max(done, span.end)
        if span.start == span.end:
            before, behind = around[number][-1:].isspace(), around[number + 1][:1].isspace()
            name = " " * (before and not written[-1:].isspace() and bool(written)) + name
            name += " " * (behind and done < len(target) and not target[done].isspace())
        written += name
    return written + target[done:]


def _overlap(first: Span, other: Span) -> bool:
    return first.start < other.end and other.start < first.end
