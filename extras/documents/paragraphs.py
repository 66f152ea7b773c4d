"""The paragraphs of an office document as texts, and translations as paragraphs again, formatting kept.

A paragraph is cut at tabs, line breaks and whatever is not known into stretches. A stretch in one format is plain text.
Where formats change in it, it becomes HTML: the format of most of its characters stays unmarked, the words in another
one stand in a ``<span>`` (raised and lowered ones in ``<sup>`` and ``<sub>``), and pictures, note references and
bookmarks are an ``<img>``. So the pipeline's word alignment, which carries markup over, decides where a format goes;
here it only becomes runs again.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tandem.extras.documents.runs import RunItem, Style, build, is_office, local_name, rows
from tandem.extras.files.bounds import Segment
from tandem.extras.files.formats.passages import Reader, is_text
from tandem.extras.files.formats.txt import one_line
from tandem.service.text.layout import is_translatable

Part = tuple[Style, str] | RunItem
"""A text in a format, or an object."""
_NAMES = ("p", "si", "is", "text")  # a paragraph; of a sheet a shared text, one in its cell, a comment's


def paragraphs_of(root: Any) -> list[Any]:
    """Every paragraph below an element, in order, also those in tables and text boxes; every text of a sheet."""
    found = root.iter(*(f"{{*}}{name}" for name in _NAMES))
    return [element for element in found if is_office(element, local_name(element))]


def stretches(paragraph: Any) -> Iterator[Stretch]:
    """What is to be translated in a paragraph; one may be replaced before the next one is asked for."""
    for row in rows(paragraph):
        items = row.items
        wordy = [number for number, item in enumerate(items) if item.text.strip()]
        if not any(is_text(item.text) for item in items):
            continue
        start, end = wordy[0], wordy[-1] + 1
        while not items[start].elements:  # it shares them with the one before
            start -= 1
        while end < len(items) and not items[end].elements:
            end += 1
        yield Stretch.of(row.parent, items[start:end])


@dataclass(frozen=True, slots=True)
class Stretch:
    """Texts and objects that follow one another, from the first word to the last.

    Attributes:
        parent: the element that they stand in.
        elements: its children that they are made of.
        parts: them; neighbouring texts in one format are one.
        lead, trail: white space around the whole.
    """

    parent: Any
    elements: tuple[Any, ...]
    parts: tuple[Part, ...]
    lead: str
    trail: str

    @classmethod
    def of(cls, parent: Any, items: Sequence[RunItem]) -> Stretch:
        """The stretch of items of which the first and the last have words."""
        parts: list[Part] = []
        for item in items:
            last = parts[-1] if parts else None
            if item.style is None:
                parts += [] if item.hint else [item]
            elif isinstance(last, tuple) and last[0].key == item.style.key:
                parts[-1] = (last[0], last[1] + item.text)
            else:
                parts.append((item.style, item.text))
        whole = "".join(part[1] for part in parts if isinstance(part, tuple))
        lead = whole[: len(whole) - len(whole.lstrip())]
        trail = whole[len(whole.rstrip()) :]
        _strip(parts, 0, len(lead), 0)
        _strip(parts, -1, 0, len(trail))
        return cls(parent, tuple(element for item in items for element in item.elements), tuple(parts), lead, trail)

    def segments(self, limit: int) -> list[Segment]:
        """What to translate: one text, or where that would be markup of more than ``limit`` characters, each format's
        own.
        """
        if len(self.parts) == 1:
            return [Segment(part[1]) for part in self.parts if not isinstance(part, RunItem)]
        markup = self._html()
        if len(markup) <= limit:
            return [Segment(markup, markup=True)]
        texts = (part[1] for part in self.parts if not isinstance(part, RunItem))
        return [Segment(text.strip()) for text in texts if is_translatable(text)]

    def replace(self, translations: Sequence[str], limit: int) -> None:
        """Put translations of the segments in the place of the stretch."""
        if len(self.parts) == 1:
            parts: list[Part] = [(self._styles[0], translations[0])]
        elif len(self._html()) <= limit:
            parts = self._parsed(translations[0])
        else:
            parts = self._apart(translations)
        place = self.parent.index(self.elements[0])
        for element in self.elements:
            self.parent.remove(element)
        for offset, element in enumerate(build(self._spaced(parts))):
            self.parent.insert(place + offset, element)

    @property
    def _styles(self) -> list[Style]:
        """Each format once; the first is the one that most characters have, of those in the paragraph itself."""
        counts: Counter[tuple[int, bytes]] = Counter()
        styles: dict[tuple[int, bytes], Style] = {}
        for part in self.parts:
            if isinstance(part, tuple):
                styles.setdefault(part[0].key, part[0])
                counts[part[0].key] += len(part[1])
        return sorted(styles.values(), key=lambda style: (style.wrap is not None, -counts[style.key]))

    @property
    def _objects(self) -> list[RunItem]:
        return [part for part in self.parts if isinstance(part, RunItem)]

    def _html(self) -> str:
        numbers = {style.key: number for number, style in enumerate(self._styles)}
        pieces, objects = [], 0
        for part in self.parts:
            if isinstance(part, RunItem):
                pieces.append(f'<img id="o{objects}">')
                objects += 1
                continue
            text, number = html.escape(part[1], quote=False).replace("\n", "<br>"), numbers[part[0].key]
            name = part[0].element
            pieces.append(f'<{name} id="s{number}">{text}</{name}>' if number else text)
        return "".join(pieces)

    def _parsed(self, translation: str) -> list[Part]:
        """A translated piece of HTML; an object that is missing in it comes last, for none may get lost."""
        styles, objects = self._styles, self._objects
        parts: list[Part] = []
        stack = [0]
        left = set(range(len(objects)))
        for name, number, text in Reader.read(one_line(translation)):
            if name == "text":
                parts.append((styles[stack[-1]], text))
            elif name == "span":
                stack.append(number if 0 <= number < len(styles) else stack[-1])
            elif name == "close":
                stack = stack[:-1] or [0]
            elif number in left:
                left.remove(number)
                parts.append(objects[number])
        return parts + [objects[number] for number in sorted(left)]

    def _apart(self, translations: Sequence[str]) -> list[Part]:
        remaining = iter(translations)
        parts: list[Part] = []
        for part in self.parts:
            if isinstance(part, RunItem) or not is_translatable(part[1]):
                parts.append(part)
                continue
            core = part[1].strip()
            start = part[1].index(core)
            parts.append((part[0], part[1][:start] + next(remaining) + part[1][start + len(core) :]))
        return parts

    def _spaced(self, parts: Sequence[Part]) -> list[Part]:
        base = self._styles[0]
        lead: list[Part] = [(base, self.lead)] if self.lead else []
        trail: list[Part] = [(base, self.trail)] if self.trail else []
        found: list[Part] = []
        for part in (*lead, *_whole(parts), *trail):
            last = found[-1] if found else None
            if isinstance(part, tuple) and isinstance(last, tuple) and last[0].key == part[0].key:
                found[-1] = (part[0], last[1] + part[1])
            else:
                found.append(part)
        return found


def _whole(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts, with a space between two words of one link or insertion within it: they would be two otherwise."""
    for number, part in enumerate(parts):
        around = parts[max(0, number - 1) : number + 2]
        styles = [one[0] for one in around if isinstance(one, tuple)]
        within = len(styles) == 3 and styles[0].wrap is not None and styles[0].wrap is styles[2].wrap
        yield (styles[0], part[1]) if isinstance(part, tuple) and within and part[1].isspace() else part


def _strip(parts: list[Part], place: int, first: int, last: int) -> None:
    part = parts[place]
    if isinstance(part, tuple):
        parts[place] = (part[0], part[1][first : len(part[1]) - last])
