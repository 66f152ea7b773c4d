"""Elements of an HTML page.

A page is built as a tree (the standard library's ElementTree) and written at once, so that no text can be taken for
markup: nothing has to remember to escape. A template engine would be one more dependency for one page.
"""

from __future__ import annotations

import re
from typing import TypeAlias
from xml.etree import ElementTree

Element: TypeAlias = ElementTree.Element
Content: TypeAlias = "str | Element"

# What HTML has no form for, not even as a reference.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def element(tag: str, *contents: Content | None, **attributes: str) -> Element:
    """An element with its contents in order; None is nothing.

    Attributes are named as in HTML, with ``_`` for ``-``; a last ``_`` is dropped (``class_``).
    """
    names = {name.rstrip("_").replace("_", "-"): _writable(value) for name, value in attributes.items()}
    made = ElementTree.Element(tag, names)
    last: Element | None = None
    for content in contents:
        if isinstance(content, ElementTree.Element):
            made.append(content)
            last = content
        elif content is not None and last is None:
            made.text = (made.text or "") + _writable(content)
        elif content is not None and last is not None:
            last.tail = (last.tail or "") + _writable(content)
    return made


def document(root: Element) -> str:
    """The page's text."""
    return "<!doctype html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"


def table(caption: str, head: list[Element], rows: list[list[Content]]) -> Element:
    """A table that scrolls by itself where it is too wide; the first cell of each row is its heading.

    Args:
        caption: what it shows.
        head: its rows of headings.
        rows: cells.
    """
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    ]
    made = element("table", element("caption", caption), element("thead", *head), element("tbody", *body))
    return element("div", made, class_="wide", role="region", aria_label=caption, tabindex="0")


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
