"""Loops: a model that writes the same words again and again although its source does not. They are cut to one round, or
to as many as the source has.

Two readings of a text are looked at: its words (in scripts without spaces its characters, and marks of punctuation
alone), and the characters of each word, for what goes on inside one. A loop is a row of rounds that is longer than what
people write (``MOST`` of words, ``MOST_LINKED`` of words with hyphens and of scripts without spaces, ``MOST_MARKS`` of
punctuation, ``MOST_CHARACTERS`` of a word's characters) and longer than any row in the source, in either reading: a
text that says "ha ha ha ha ha" may be translated so.

In the training text of the shipped German-English model, 160,000 pairs that people wrote, no translation has a word
three times in a row where its source does not; great-great-great-grandfathers are the only ones with hyphens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tandem.service.text.protect import is_unspaced
from tandem.service.text.spans import Span

MOST, MOST_LINKED, MOST_MARKS, MOST_CHARACTERS, MOST_DIGITS = 2, 3, 8, 12, 30
"""Rounds of words, words that nothing or a hyphen joins, punctuation, characters inside a word, and digits that are no
loop whatever the source says."""

_LONGEST_ROUND = 60  # atoms of a round
_LOOKED_AT = 4_000  # atoms; a hypothesis has some hundred tokens
# Three equal rounds of characters: without them there is no loop, and nearly all sentences are done with.
_REPEATING = re.compile(r"(.{2,300}?)\1\1|(.)\2{8}", re.DOTALL)
_ATOM = re.compile(r"⟨\w{1,20}⟩|\w+|[^\w\s]")

Atom = tuple[int, int, str]
"""Start and end in the text, and the atom as atoms are compared."""


def cut_loops(text: str, *sources: str) -> tuple[str, bool]:
    """A translation without its loops, and whether it had any.

    Args:
        text: of one hypothesis.
        sources: what it translates, in one language or several.
    """
    if not _REPEATING.search(text):
        return text, False
    usual = max(_usual(source) for source in sources)
    cut = text
    for read, most in ((_words, MOST), (_letters, MOST_CHARACTERS)):
        while loop := _first_loop(read(cut), most, usual):  # each time the text gets shorter
            cut = cut[: loop.start] + cut[loop.end :]
    return cut, cut != text


def _first_loop(atoms: Sequence[Atom], most: int, usual: int) -> Span | None:
    """What to leave out so that one round of the first loop stays."""
    values = _values(atoms)
    for size in range(1, min(_LONGEST_ROUND, len(values) // 2) + 1):
        for first, length in _rows(values, size):
            if length // size > max(_bound(values[first : first + size], most), usual):
                return _surplus(atoms, first + (usual - 1) * size, size, length - (usual - 1) * size)
    return None


def _bound(one_round: Sequence[str], most: int) -> int:
    """Rounds that are no loop yet."""
    if _has_letters(one_round):
        linked = "-" in one_round or any(is_unspaced(character) for value in one_round for character in value)
        return max(most, MOST_LINKED) if linked else most
    digits = any(character.isdigit() for value in one_round for character in value)
    return MOST_DIGITS if digits else max(most, MOST_MARKS)


def _surplus(atoms: Sequence[Atom], first: int, size: int, length: int) -> Span:
    """All rounds but the first; where the sentence ends in the loop, also what was begun of a further round."""
    kept, end = first + size, first + length
    rest = atoms[end:]
    if _has_letters([value for _, _, value in rest]):
        end -= length % size
    elif rest:  # "a, a, a." is "a." and not "a,."
        kept = max((at + 1 for at in range(first, kept) if atoms[at][2].isalnum()), default=kept)
    return Span(atoms[kept - 1][1], atoms[end - 1][1])


def _rows(values: Sequence[str], size: int) -> list[tuple[int, int]]:
    """First atom and number of atoms of each stretch that repeats its own first ``size`` atoms."""
    rows = []
    first = 0
    for place in range(size, len(values) + 1):
        if place == len(values) or values[place] != values[place - size]:
            if place - first >= 2 * size:
                rows.append((first, place - first))
            first = place - size + 1
    return rows


def _usual(source: str) -> int:
    """Rounds that a translation may have because its source has them; a double letter says nothing."""
    letters = _longest_row(_letters(source))
    return max(_longest_row(_words(source)), letters if letters > MOST else 1)


def _longest_row(atoms: Sequence[Atom]) -> int:
    values = _values(atoms)
    sizes = range(1, min(_LONGEST_ROUND, len(values) // 2) + 1)
    return max((length // size for size in sizes for _, length in _rows(values, size)), default=1)


def _has_letters(values: Sequence[str]) -> bool:
    return any(character.isalpha() for value in values for character in value)


def _values(atoms: Sequence[Atom]) -> list[str]:
    return [value for _, _, value in atoms[:_LOOKED_AT]]


def _words(text: str) -> list[Atom]:
    found: list[Atom] = []
    for match in _ATOM.finditer(text):
        start, end = match.span()
        if any(map(is_unspaced, match[0])):
            found += [(place, place + 1, text[place]) for place in range(start, end)]
        else:
            found.append((start, end, match[0].casefold()))
    return found


def _letters(text: str) -> list[Atom]:
    return [(place, place + 1, character) for place, character in enumerate(text) if not character.isspace()]
