"""Texts that formulas compare cells with: translated in the cells alone, they would be found no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_LITERAL = re.compile(r'"((?:[^"]|"")*)"')
_OPERATOR = re.compile(r"^(?:<>|[<>]=?|=)")  # of a criterion: COUNTIF(A1:A9; "<>red")
_COMPARED = r"B?\((?:[^()]|\([^()]*\))*\)\s*(?:<>|=)\s*"
_PART = re.compile(  # what stands before a text that parts of cells are compared with, by what may stand around it
    rf"\b(?:(?P<inner>(?:SEARCH|FIND)B?\(|(?:not-)?contains-text\(|(?:SUBSTITUTE|REGEX)\([^()\"]*[,;]\s*|MID{_COMPARED})"
    rf"|(?P<first>LEFT{_COMPARED}|begins-with\()|RIGHT{_COMPARED}|ends-with\()\Z",
    re.IGNORECASE,
)
_BEFORE = 200  # characters that are looked at for it
_WORD = re.compile(r"[^\W\d_]{2}")
_WILD = re.compile(r"~[*?~]|[*?]")


class ComparedTexts:
    """Texts, whatever their case is; some with ``*`` and ``?`` for other characters."""

    def __init__(self, texts: Iterable[str]) -> None:
        given = {text.strip().casefold() for text in texts} - {""}
        patterns = {text for text in given if _WILD.search(text) and text.strip("*?~")}
        self._texts = given - patterns
        self._pattern = re.compile("|".join(map(_expression, sorted(patterns))) if patterns else r"(?!)", re.DOTALL)
        self._any = bool(given)

    def __bool__(self) -> bool:
        return self._any

    def __contains__(self, text: object) -> bool:
        folded = str(text).strip().casefold()
        return folded in self._texts or self._pattern.fullmatch(folded) is not None


def literals_of(formula: str) -> Iterator[str]:
    """The texts in a formula, without a criterion's operator; of lists of choices each choice too.

    Words that a part of a cell is compared with have ``*`` where there may be more.
    """
    for literal in _LITERAL.finditer(formula):
        text = _OPERATOR.sub("", literal[1].replace('""', '"'))
        yield text
        within = _PART.search(formula[max(0, literal.start() - _BEFORE) : literal.start()])
        if within and _WORD.search(text):
            yield ("" if within["first"] else "*") + text + ("*" if within["first"] or within["inner"] else "")
        if "," in text:
            yield from text.split(",")


def _expression(text: str) -> str:
    """An expression for a text with wildcards."""
    parts, done = [], 0
    for sign in _WILD.finditer(text):
        parts += [re.escape(text[done : sign.start()]), {"*": ".*", "?": "."}.get(sign[0], re.escape(sign[0][1:]))]
        done = sign.end()
    return "".join([*parts, re.escape(text[done:])])
