"""What a page says in attributes: alternative texts, tips, labels, and how search engines shall describe it.

Which ones is what HTML's standard lists as translatable, and what ARIA adds for screen readers.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from tandem.extras.markup.html import KEPT, is_marked
from tandem.extras.markup.nesting import Nesting
from tandem.extras.markup.scanning import Kind, Token, scan_html
from tandem.service.text.blocks import MarkupOptions

_ANYWHERE = frozenset(("aria-description", "aria-label", "aria-placeholder", "placeholder", "title"))
_ELSEWHERE = {
    "abbr": ("th",),
    "alt": ("area", "img", "input"),
    "label": ("optgroup", "option", "track"),
}
_PRESSED = ("button", "reset", "submit")  # inputs whose value is what stands on them
_DESCRIPTIONS = frozenset(("description", "og:description", "og:title", "twitter:description", "twitter:title"))
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_NAME = re.compile(r"<[^\s/>]+")


def is_said(tag: Token, attribute: str) -> bool:
    """Whether an attribute of a tag is for readers."""
    if attribute in _ANYWHERE or tag.name in _ELSEWHERE.get(attribute, ()):
        return True
    given = tag.attributes
    if attribute == "value":
        return tag.name == "input" and (given.get("type") or "").lower() in _PRESSED
    return (
        attribute == "content"
        and tag.name == "meta"
        and not _DESCRIPTIONS.isdisjoint({(given.get("name") or "").lower(), (given.get("property") or "").lower()})
    )


def parts_of(tag: Token) -> Iterator[tuple[str, str | None]]:
    """A tag as it was written, in parts: what stays with None, and each value for readers with what it says."""
    done = 0
    name = _NAME.match(tag.raw)
    for found in _ATTRIBUTE.finditer(tag.raw, name.end() if name else len(tag.raw)):
        value = found[3]
        if value is None or not is_said(tag, found[1].lower()):
            continue
        quotes = value[0] in "\"'"
        start, end = found.start(3) + quotes, found.end(3) - quotes
        said = " ".join(html.unescape(tag.raw[start:end]).split())
        if any(map(str.isalpha, said)):
            yield tag.raw[done:start], None
            yield tag.raw[start:end], said
            done = end
    yield tag.raw[done:], None


def escape(text: str) -> str:
    """A translation as an attribute's value."""
    return html.escape(" ".join(text.split()), quote=True)


def said_in(page: str, options: MarkupOptions) -> list[str]:
    """What a page of HTML says in attributes, in order, each text once. Raises MarkupError."""
    tokens = scan_html(page, options)
    texts = (said for place in _spoken(tokens, options) for _, said in parts_of(tokens[place]) if said)
    return list(dict.fromkeys(texts))


def with_said(page: str, translations: Mapping[str, str], options: MarkupOptions) -> str:
    """A page of HTML with those texts replaced. Raises MarkupError."""
    if not translations:
        return page
    tokens = scan_html(page, options)
    raws = [token.raw for token in tokens]
    for place in _spoken(tokens, options):
        tag = ""
        for raw, said in parts_of(tokens[place]):
            new = translations.get(said, said) if said else None
            quote = "" if tag.endswith(('"', "'")) else '"'
            tag += raw if new is None or new == said else f"{quote}{escape(new)}{quote}"
        raws[place] = tag
    return "".join(raws)


def _spoken(tokens: list[Token], options: MarkupOptions) -> Iterator[int]:
    """Places of tags that are in nothing that stays."""
    partner, end = Nesting(tokens, options).partner, -1
    for place, token in enumerate(tokens):
        if place <= end or token.kind not in (Kind.START, Kind.EMPTY):
            continue
        if not is_marked(token):
            yield place
        if is_marked(token) or token.name in KEPT:
            end = max(place, partner[place])
