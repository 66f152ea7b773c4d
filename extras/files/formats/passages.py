"""Texts with marks in them, and translations in a file's own writing again, whatever that is.

A file is divided into parts: strings, which stay, and passages. A passage is made of pieces: text, marks around some
of it (bold, a link), and what is kept whole (a placeholder, a picture, a note). Without marks it is translated as plain
text. With marks it becomes HTML: a mark is a ``<span>``, what is kept an ``<img>``, or ``<code>`` where its text is
part of the sentence. So the pipeline's word alignment, which carries markup over, decides where a mark goes.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from tandem.extras.files.bounds import Segment, SourceFile
from tandem.extras.files.formats.encoding import Text
from tandem.extras.markup.reading import divided
from tandem.service.text.layout import is_translatable
from tandem.service.text.protect import KEPT, Protector
from tandem.service.translation.stages import program_strings

Following: TypeAlias = Callable[[], str]
"""The next translation."""


class Translatable(Protocol):
    """A part of a file that is translated."""

    @property
    def raw(self) -> str | None:
        """It as it was written; None where that is not known."""

    def segments(self, limit: int) -> Iterator[Segment]:
        """Its texts; markup has at most ``limit`` characters."""

    def render(self, following: Following, limit: int) -> str:
        """It, with a translation for each of its texts."""


Part: TypeAlias = str | Translatable
Parts: TypeAlias = Sequence[Part]
Reading: TypeAlias = Callable[[SourceFile], Iterator[Segment]]
Writing: TypeAlias = Callable[[SourceFile, Sequence[str], Path], None]


class PieceRole(Enum):
    """What a piece of a passage is."""

    TEXT = "text"
    OPEN = "begins a mark"
    CLOSE = "ends the mark that began last"
    KEPT = "comes back as it was written"


class PassagePiece(NamedTuple):
    """A piece of a passage.

    Attributes:
        raw: as it was written.
        text: to translate, or to be shown to the model in the sentence; nothing for a mark and for what has no words.
        inner: what is kept, where there are texts in it that are translated by themselves.
        element: of a mark, the HTML element that says what it is, where it is not written as that.
    """

    role: PieceRole
    raw: str
    text: str = ""
    inner: Parts = ()
    element: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """What is translated as one text. Marks are balanced; those that stand at its ends are no part of the text.

    Attributes:
        pieces: joined, the passage.
        escape: writes a translated text as the file does.
        finish: writes the whole: quotes it, breaks its lines.
        raw: what is written where nothing changed; None = the pieces, finished.
    """

    pieces: Sequence[PassagePiece]
    escape: Callable[[str], str] = str
    finish: Callable[[str], str] = str
    raw: str | None = None
    _core: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_core", _core(self.pieces))

    def segments(self, limit: int) -> Iterator[Segment]:
        """Its text, format by format where that would be markup of too many characters; then those of notes in it."""
        yield from self._own(limit)
        for piece in self.pieces:
            yield from segments_of(piece.inner, limit)

    def render(self, following: Following, limit: int) -> str:
        """It, with its texts replaced."""
        own = self._own(limit)
        translations = [following() for _ in own]
        raws = [rendered(piece.inner, following, limit) if piece.inner else piece.raw for piece in self.pieces]
        if translations == [segment.text for segment in own]:
            same = raws == [piece.raw for piece in self.pieces]
            return self.raw if same and self.raw is not None else self.finish("".join(raws))
        first, last = self._core
        if not own[0].markup and not self._plain:
            inside = self._apart(raws, iter(translations))
        else:
            text = self._html
            lead, trail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
            new = self._marked(raws, translations[0]) if own[0].markup else self.escape(translations[0])
            inside = self.escape(lead) + new + self.escape(trail)
        return self.finish("".join(raws[:first]) + inside + "".join(raws[last:]))

    @property
    def plain(self) -> str | None:
        """Its text, where it has words and no marks in it, and nothing in it is translated by itself."""
        if not self._plain or any(piece.inner for piece in self.pieces):
            return None
        text = self._html.strip()
        return text if is_translatable(text) else None

    @property
    def _inside(self) -> Sequence[PassagePiece]:
        first, last = self._core
        return self.pieces[first:last]

    @property
    def _plain(self) -> bool:
        return all(piece.role is PieceRole.TEXT for piece in self._inside)

    @property
    def _html(self) -> str:
        """The text: as it is where it has no marks, else as HTML, with its line ends, indentation and columns."""
        if self._plain:
            return "".join(piece.text for piece in self._inside)
        found, opened = [], []
        for number, piece in enumerate(self._inside):
            if piece.role is PieceRole.OPEN:
                raised = _RAISED.match(piece.raw)
                opened.append(piece.element or (raised[1] if raised else "span"))
                found.append(f'<{opened[-1]} id="s{number}">')
            elif piece.role is PieceRole.CLOSE:
                found.append(f"</{opened.pop()}>")
            elif piece.role is PieceRole.KEPT:
                shown = html.escape(" ".join(piece.text.split()), quote=False)
                found.append(f'<code id="o{number}">{shown}</code>' if piece.text else f'<img id="o{number}">')
            else:
                found.append(html.escape(piece.text, quote=False))
        return "".join(found)

    def _own(self, limit: int) -> list[Segment]:
        if not any(piece.role is PieceRole.TEXT and is_text(piece.text) for piece in self._inside):
            return []
        text = self._html.strip()
        if self._plain:
            return [Segment(text)]
        text = _LAYOUT.sub("<br>", text)
        if len(text) <= limit:
            return [Segment(text, markup=True)]
        return [Segment(piece.text.strip()) for piece in self._inside if _wordy(piece)]

    def _marked(self, raws: Sequence[str], translation: str) -> str:
        """Translated HTML; every mark and everything kept comes back once, what is missing at the end."""
        first, _ = self._core
        layout = iter(_LAYOUT.findall(self._html.strip()))
        closing = _partners(self._inside)
        left = {number for number, piece in enumerate(self._inside) if piece.role in (PieceRole.OPEN, PieceRole.KEPT)}
        found: list[str] = []
        stack: list[int | None] = []

        def close() -> None:
            mark = stack.pop()
            found.append("" if mark is None else raws[first + closing[mark]])

        for name, number, text in Reader.read(translation):
            if name == "text":
                found.append(self.escape(next(layout, text) if text == "\n" else text))
            elif name == "close":
                if stack:
                    close()
            else:
                known = number in left and (self._inside[number].role is PieceRole.OPEN) == (name == "span")
                left -= {number}
                found.append(raws[first + number] if known else "")
                if name == "span":
                    stack.append(number if known else None)
        while stack:
            close()
        ends = {number: raws[first + end] for number, end in closing.items()}
        lost = (raws[first + number] + ends.get(number, "") for number in sorted(left))
        return "".join([*found, *lost])

    def _apart(self, raws: Sequence[str], translations: Iterator[str]) -> str:
        found = []
        for piece, raw in zip(self._inside, raws[self._core[0] :], strict=False):
            if not _wordy(piece):
                found.append(raw)
                continue
            core = piece.text.strip()
            start = piece.text.index(core)
            found.append(self.escape(piece.text[:start] + next(translations) + piece.text[start + len(core) :]))
        return "".join(found)


_SPANS = ("span", "sub", "sup")
_RAISED = re.compile(r"<(su[bp])\b")
_LAYOUT = re.compile("[ \t]*\n[ \t]*|[ ]*\t[ \t]*|[ \u00a0]{3,}")  # breaks, in HTML


class Reader(HTMLParser):
    """The texts of a piece of HTML, and by their numbers the elements that a passage put there."""

    _ID = re.compile(r"[so](\d{1,6})")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, int, str]] = []
        self._code = 0

    @classmethod
    def read(cls, markup: str) -> list[tuple[str, int, str]]:
        """In order: ``span`` and ``object`` with a number (-1 where it has none), ``close`` of a span, ``text``."""
        reader = cls()
        reader.feed(markup)
        reader.close()
        return reader.found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = self._ID.fullmatch(dict(attrs).get("id") or "")
        number = int(known[1]) if known else -1
        if tag in _SPANS:
            self.found.append(("span", number, ""))
        elif tag in ("img", "code"):
            self._code += tag == "code"
            self.found.append(("object", number, ""))
        elif tag == "br":
            self.found.append(("text", -1, "\n"))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SPANS:
            self.found.append(("close", -1, ""))
        elif tag == "code":
            self._code = max(0, self._code - 1)

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.found.append(("text", -1, data))


def segments_of(parts: Iterable[Part], limit: int) -> Iterator[Segment]:
    """The texts of a file's parts, in order."""
    for part in parts:
        if not isinstance(part, str):
            yield from part.segments(limit)


def rendered(parts: Iterable[Part], following: Following, limit: int) -> str:
    """A file's parts with their texts replaced."""
    return "".join(part if isinstance(part, str) else part.render(following, limit) for part in parts)


def text_format(
    document: Callable[[SourceFile], tuple[Text, Parts]],
    errors: str = "strict",
    finish: Callable[[str, str], str] = lambda old, new: new,
) -> tuple[Reading, Writing]:
    """The two functions of a format whose files are text: ``read`` and ``write`` (see ``Format``).

    Args:
        document: a file's text, and its parts in order. Raises FileRefused.
        errors: what becomes of characters that the file's encoding lacks: see ``bytes_of``.
        finish: from the old text and the new one: the new one as it is written.
    """

    def read(source: SourceFile) -> Iterator[Segment]:
        return segments_of(document(source)[1], source.bounds.markup_characters)

    def write(source: SourceFile, translations: Sequence[str], result: Path) -> None:
        text, parts = document(source)
        remaining, limit = iter(translations), source.bounds.markup_characters
        new = (rendered([part], lambda: next(remaining), limit) for part in parts)
        old = (part if isinstance(part, str) else part.raw or "" for part in parts)
        whole = finish(text.characters, text.with_ends(zip(old, new, strict=True)))
        result.write_bytes(text.bytes_of(whole, errors))

    return read, write


_PROTECTED = Protector.of(KEPT)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*|\d{1,3}(?=\s*/?>))[^<>]*?(/?)>")


_CODE = re.compile(r"[!-~\u00a1-\u024f]*(?:[\d_/\\@=<>{}$%&+*~^|#\[\]]|\w[.:]\w|[a-z][A-Z])[!-~\u00a1-\u024f]*")
_SPELLED = re.compile(
    r"[a-z]{2}-(?:[A-Z]{2}|[A-Z][a-z]{3})"  # the code of a language
    r"|(?=.*(?:yy|YY|LL|MM|dd|DD|HH|hh|mm|ss))(?:(?:Do|([yYLMdDEeHhmsSaAzZ])\1{0,4})(?:[ .,:/-]+|\Z))+"  # of a date
)
_AMOUNT = re.compile(r"[€$£¥]\s?\d|\d\s?[€$£¥]")
_MARK_BEHIND = re.compile(r"(?<=\w)[*:]+\Z")
_TWO_LABELS = re.compile(r"[^\W\d_a-zß-ÿ][^\W\d_]*(?:/[^\W\d_a-zß-ÿ][^\W\d_]*)+")  # each with a capital
_FORMS = re.compile(r"\{\s*[\w.]+\s*,\s*(plural|select|selectordinal)\s*,(?:\s*offset:\d+)?")
_FORM = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
_FORMS_END = re.compile(r"\s*\}")
_BRACES = re.compile(r"''|'[{}][^']*(?:'|\Z)|[{}]")  # and what is quoted
_PRIVATE = re.compile("[\ue000-\uf8ff]")  # of Unicode: no text, but what a format puts in the place of something
_ALONE = re.compile(rf"{_PRIVATE.pattern}|</?\d{{1,3}}\s*/?>")
_NUMBER = re.compile(f"{_ALONE.pattern}|#")  # which # stands for in a form
_QUOTED = re.compile(r"'[{}#|][^']*(?:'|\Z)")
_APOSTROPHE = re.compile(r"'(?=[{}#|']|\Z)")  # which would begin a quotation


def message(text: str, write: Callable[[str], str] = str) -> list[PassagePiece]:
    """A program's message: its tags are marks, its placeholders and addresses are kept.

    Of ICU's forms for numbers and cases (``{n, plural, one {# file} other {# files}}``) each is translated by itself.

    Args:
        text: the message.
        write: writes a part of it as the file does.
    """
    found: list[PassagePiece] = []
    done = 0
    for head in _FORMS.finditer(text):
        if head.start() < done:
            continue
        forms = _forms_of(text, head, write)
        if forms is None:
            return [PassagePiece(PieceRole.KEPT, write(text))]
        end, parts = forms
        found += _simple(text[done : head.start()], write)
        found.append(PassagePiece(PieceRole.KEPT, write(text[head.start() : end]), inner=parts))
        done = end
    return found + _simple(text[done:], write)


def has_forms(text: str) -> bool:
    """Whether a message has ICU's forms for numbers or cases in it."""
    return _FORMS.search(text) is not None


def _forms_of(text: str, head: re.Match[str], write: Callable[[str], str]) -> tuple[int, Parts] | None:
    """Where forms end that begin with ``head``, and their parts; None where they are not well-formed."""
    parts: list[Part] = [write(head[0])]
    place = head.end()
    while form := _FORM.match(text, place):
        depth, end = 1, form.end()
        for brace in _BRACES.finditer(text, end):
            depth += (brace[0] == "{") - (brace[0] == "}")
            if not depth:
                end = brace.start()
                break
        if depth:
            return None
        inner = text[form.end() : end]
        pieces = message(inner, write) if has_forms(inner) else _simple(inner, write, head[1])
        parts += [write(form[0]), Passage(pieces, lambda new: write(_APOSTROPHE.sub("''", new))), "}"]
        place = end + 1
    last = _FORMS_END.match(text, place)
    return (last.end(), (*parts, write(last[0]))) if last and len(parts) > 1 else None


def _simple(text: str, write: Callable[[str], str], form: str = "") -> list[PassagePiece]:
    """A message without forms, or one of ``form``: ``plural``, ``selectordinal`` or ``select``.

    Paragraphs, items, cells and the like of HTML are texts of their own.
    """
    if not form and len(blocks := divided(text)) > 1:
        inner = (write(one) if place % 2 else Passage(_simple(one, write), write) for place, one in enumerate(blocks))
        return [PassagePiece(PieceRole.KEPT, write(text), inner=tuple(inner))]
    signs = _NUMBER if form.startswith(("plural", "selectordinal")) else _ALONE
    found = ((span.start, span.end) for span, _ in _PROTECTED.find(text))
    quoted = (match.span() for match in _QUOTED.finditer(text)) if form else ()
    places: list[tuple[int, int]] = []
    candidates = (*quoted, *found, *(sign.span() for sign in signs.finditer(text)))
    for start, end in sorted(candidates, key=lambda place: place[0]):  # of those that begin alike the first stays
        if not places or start >= places[-1][1]:
            places.append((start, end))
    return [piece._replace(raw=write(piece.raw)) for piece in pieces_of(text, places)]


def pieces_of(text: str, places: Iterable[tuple[int, int]], read: Callable[[str], str] = str) -> list[PassagePiece]:
    """A text in pieces.

    Args:
        text: as it is written.
        places: start and end of its tags, which are marks where they belong together, and of what else is kept.
        read: makes of a text between them what is to be translated.
    """
    found: list[PassagePiece] = []
    opened: list[tuple[int, str]] = []
    names: Counter[str] = Counter()  # of what is open
    done = 0
    for start, end in places:
        if start > done:
            found.append(PassagePiece(PieceRole.TEXT, text[done:start], read(text[done:start])))
        raw, done = text[start:end], end
        tag = _TAG.fullmatch(raw)
        name = tag[2].partition(".")[0] if tag else ""  # a cue's <c.yellow> ends in </c>
        if tag and tag[1] and names[name]:
            while opened[-1][1] != name:
                names[opened.pop()[1]] -= 1  # never ends: stays kept
            names[name] -= 1
            place, _ = opened.pop()
            found[place] = found[place]._replace(role=PieceRole.OPEN)
            found.append(PassagePiece(PieceRole.CLOSE, raw))
            continue
        if tag and not tag[1] and not tag[3]:
            opened.append((len(found), name))
            names[name] += 1
        found.append(PassagePiece(PieceRole.KEPT, raw, "" if tag or _PRIVATE.fullmatch(raw) else raw))
    return [*found, PassagePiece(PieceRole.TEXT, text[done:], read(text[done:]))] if done < len(text) else found


def is_text(text: str) -> bool:
    """Whether a document's text is translated: it has words, or an amount of money, which languages write otherwise."""
    return is_translatable(text) or _AMOUNT.search(text) is not None


def is_prose(text: str) -> bool:
    """Whether a program's string is for people: a single word with a sign or a capital in it reads like code,
    and so do codes of languages and patterns of dates (``de-AT``, ``MMM D, YYYY``).

    But not a label with an accelerator (``E&xit``), with a mark behind it (``Name*``), or of two (``Yes/No``).
    """
    words = _TAG.sub(" ", text) if "</" in text else text  # of HTML, and not of ``List<String>``
    label = _MARK_BEHIND.sub("", program_strings().plain(words.strip()))
    code = _CODE.fullmatch(label) or _SPELLED.fullmatch(label)
    return is_translatable(text) and (not code or _TWO_LABELS.fullmatch(label) is not None)


def _wordy(piece: PassagePiece) -> bool:
    return piece.role is PieceRole.TEXT and is_translatable(piece.text)


def _partners(pieces: Sequence[PassagePiece]) -> dict[int, int]:
    """By the number of a piece that begins a mark, that of the piece that ends it."""
    found, opened = {}, []
    for number, piece in enumerate(pieces):
        if piece.role is PieceRole.OPEN:
            opened.append(number)
        elif piece.role is PieceRole.CLOSE:
            found[opened.pop()] = number
    return found


def _core(pieces: Sequence[PassagePiece]) -> tuple[int, int]:
    """First and last (exclusive) piece from the first word to the last, without marks that stand around all of it."""
    partners = _partners(pieces)
    first, last = 0, len(pieces)
    while first < last:
        if _is_empty(pieces[first]):
            first += 1
        elif _is_empty(pieces[last - 1]):
            last -= 1
        elif partners.get(first) == last - 1:
            first, last = first + 1, last - 1
        else:
            break
    return first, last


def _is_empty(piece: PassagePiece) -> bool:
    return piece.role in (PieceRole.TEXT, PieceRole.KEPT) and not piece.text.strip()
