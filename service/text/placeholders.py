"""Placeholders for the hidden parts of a sentence, and what they stand for put back into its translation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set

from tandem.service.text.glossary import capitalised
from tandem.service.text.masking import Hidden, Masked
from tandem.service.text.protect import is_unspaced, literals
from tandem.service.text.spans import Span

NAMES = range(0xF0000, 0xFFFFE)
"""Characters of private use that stand for parts until their surroundings are known."""


def choose_placeholders(known: Sequence[str], masked: Masked, covered: Set[int]) -> tuple[str, ...] | None:
    """Placeholders for hidden parts of a sentence, the same for the same, and nothing for the others.

    Args:
        known: those of the vocabulary; one that a client typed stands for nothing.
        masked: the sentence.
        covered: numbers of the parts.

    Returns:
        None where there are too few.
    """
    free = [name for name in known if name not in masked.source] if covered else []
    different = dict.fromkeys((one.target, one.term) for number, one in enumerate(masked.hidden) if number in covered)
    if len(different) > len(free):
        return None
    chosen = dict(zip(different, free, strict=False))
    return tuple(chosen[one.target, one.term] if number in covered else "" for number, one in enumerate(masked.hidden))


def set_apart(masked: Masked, shown: Sequence[str], names: Sequence[str]) -> list[str]:
    """What is read in the places of hidden parts, with spaces between names and the words that they would run into.

    Args:
        masked: the sentence.
        shown: what stands in each place.
        names: of the parts; empty for those that are read as they are.
    """
    around = masked.text.split(masked.mark)
    apart = []
    for number, (text, name) in enumerate(zip(shown, names, strict=True)):
        before = around[number] or (shown[number - 1] if number else "")
        left = " " * (bool(name) and before[-1:].isalnum())
        apart.append(left + text + " " * (bool(name) and around[number + 1][:1].isalnum()))
    return apart


def found_parts(text: str, hidden: Sequence[Hidden], names: Sequence[str]) -> tuple[bool, ...]:
    """Whether a text has what is hidden: of placeholders all, and of parts read as they are as many as there are."""
    due = Counter(names)
    left: dict[str, int] = {}
    found = []
    for one, name in zip(hidden, names, strict=True):
        if name:
            found.append(text.count(name) == due[name])
            continue
        if one.target not in left:
            ways = {one.target, capitalised(one.target)} if one.term is not None else {one.target}
            left[one.target] = sum(1 for _ in literals(ways).finditer(text))
        found.append(left[one.target] > 0)
        left[one.target] -= 1
    return tuple(found)


def marked(text: str, masked: Masked, names: Sequence[str]) -> tuple[str, Masked, tuple[str, ...]]:
    """A translation that has all parts, with a character of private use in the place of those that have no name and
    come back as they are: what ``restored`` takes."""
    free = (chr(code) for code in NAMES if chr(code) not in text)
    chosen = {one.target: "" for one in masked.hidden}
    given = []
    for one, name in zip(masked.hidden, names, strict=True):
        if not name and one.source == one.target and not chosen[one.target]:
            chosen[one.target] = next(free)
            text = literals((one.target,)).sub(chosen[one.target], text)
        given.append(name or chosen[one.target])
    return text, masked, tuple(given)


def restored(text: str, masked: Masked, names: Sequence[str]) -> str:
    """A translation with what its placeholders stand for, set off by spaces where the sentence does so.

    Spaces that the model writes stay, but for those between a tag or a sign and a word that it touches in the sentence:
    around other parts it writes what the language wants ("{n}fach", "{n} times").

    Args:
        text: with placeholders.
        masked: the sentence.
        names: the placeholder of each of its hidden parts; empty for those that have none.
    """
    return places_of_parts(text, masked, names)[0]


def places_of_parts(text: str, masked: Masked, names: Sequence[str]) -> tuple[str, list[tuple[int, Span]]]:
    """The same, and where the parts stand in it: their numbers and places, in order."""
    around = masked.text.split(masked.mark)
    places: dict[str, list[int]] = {}  # of each, from the last to the first
    for place, name in reversed([*enumerate(names)]):
        if name:
            places.setdefault(name, []).append(place)
    written, done, last = "", 0, -1
    found: list[tuple[int, Span]] = []
    for match in re.finditer("|".join(map(re.escape, places)), text) if places else ():
        written_before = len(written)
        written += text[done : match.start()]
        left = places[match[0]]
        place = left.pop() if len(left) > 1 else left[0]
        # Two parts with nothing between them but signs, here as there but for spaces, stay so.
        side_by_side = place == last + 1 and last >= 0 and text[done : match.start()].replace(" ", "") == around[place]
        written = written[:written_before] + around[place] if side_by_side else written
        last, done = place, match.end()
        written = _without_last(written, masked.hidden[place].instead_of)
        part = put = cased(masked.hidden[place], masked, not any(map(str.isalnum, written)))
        if _run_together(written[-1:], put[:1]) and not (side_by_side or around[place][-1:].isalnum()):
            put = f" {put}"
        if _run_together(put[-1:], text[done : done + 1]) and not around[place + 1][:1].isalnum():
            put = f"{put} "
        before, behind = around[place][-1:], around[place + 1][:1]
        written, done = _joined_as_before(written, text, done, around[place], around[place + 1])
        if _is_markup(put) or not any(map(str.isalnum, put)):
            written = written.removesuffix(" ") if before.isalnum() else written
            done += text[done : done + 1] == " " and behind.isalnum()
            if not _is_tag(put):
                done += behind != "-" and _COMPOUND.match(text, done) is not None  # a sign is no part of a word
                written = _COMPOUND_ENDS.sub("", written) if before.isspace() else written
                put = " " * (before.isspace() and written[-1:].isalnum()) + put
                put += " " * (behind.isspace() and text[done : done + 1].isalnum())
        start = len(written) + put.index(part)
        found.append((place, Span(start, start + len(part))))
        written += put
    return written + text[done:], found


def _joined_as_before(written: str, text: str, done: int, before: str, behind: str) -> tuple[str, int]:
    """What is written before a part, and where the text goes on, without spaces between it and a word that touches the
    part in the sentence too, as in ``{size}GB``."""
    touching = _LAST_LETTERS.search(before)
    if touching and written.endswith(f"{touching[0]} "):
        written = written[:-1]
    touching = _FIRST_LETTERS.match(behind)
    if touching and re.match(rf" {re.escape(touching[0])}(?!\w)", text[done:]):
        done += 1
    return written, done


_COMPOUND, _COMPOUND_ENDS = re.compile(r"-(?=[^\W\d_])"), re.compile(r"(?<=[^\W\d_])-\Z")
_FIRST_LETTERS, _LAST_LETTERS = re.compile(r"\w+"), re.compile(r"(?<!\w)\w+\Z")


def _without_last(written: str, words: Set[str]) -> str:
    last = _LAST_WORD.search(written) if words else None
    return written[: last.start()] if last and last[1].casefold() in words else written


_LAST_WORD = re.compile(r"(?<!\S)(\w+) \Z")


def cased(one: Hidden, masked: Masked, begins: bool) -> str:
    """A part as it is written: a term at the beginning of a sentence that begins with a capital gets one too."""
    if one.term is None or not begins or (one.source == one.target and not one.asked):
        return one.target
    letter = next(filter(str.isalpha, masked.source), "")
    return capitalised(one.target) if letter.isupper() else one.target


def divides(part: str) -> bool:
    """Whether a part is read with spaces around it, as models know it: markup, or a quotation mark."""
    return _is_markup(part) or part in _QUOTES


def _is_markup(part: str) -> bool:
    """Whether a part is no word of its sentence: a tag, also one of a template or a forum, an entity, an escape."""
    return _is_tag(part) or _CHARACTER.fullmatch(part) is not None


def _is_tag(part: str) -> bool:
    return _TAG.fullmatch(part) is not None


_TAG = re.compile(r"<.*>|\{%.*%\}|\{\{?[#/^:&>!].*\}|\[/?[A-Za-z][^\]]*\]", re.DOTALL)
_CHARACTER = re.compile(r"&\#?\w+;|\\[a-z\"]")
_QUOTES = frozenset("\"'„“”«»‘’‚")


def _run_together(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and not (is_unspaced(left) or is_unspaced(right))
