"""Tags and emphasis in a plain text: pairs on one line are inline markup, as in HTML; whatever else stays text.

Strings of applications and posts have ``<b>``, ``<1>``, ``[b]`` and ``**`` in them though nobody calls them HTML:
entities are none here, nothing is escaped, and a tag without its counterpart is a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from tandem.extras.markup.html import MOST_INLINE, HtmlDocument
from tandem.extras.markup.inline import BlockBuilder
from tandem.service.text.families import COPIED, PLACEHOLDERS, find_families
from tandem.service.text.spans import Span

_TAG = re.compile(
    r"""<(?P<end>/)?(?P<name>[A-Za-z][\w:.-]{0,100}|\d{1,3})(?:\s[^<>\n]{0,500})?(?<!/)>
      | \[(?P<code_end>/)?(?P<code>[A-Za-z]{1,20})(?:(?:=|[ ]+[\w-]{1,40}=)[^\[\]\n]{0,500})?\]  # BBCode, shortcodes
      | (?<![\w*_~])(?P<opening>\*{1,3}|~~|_)(?![\s*|_~])
      | (?<![\s*|_~])(?P<closing>\*{1,3}|~~|_)(?![\w*_~])
      | \n""",
    re.VERBOSE,
)
_DEEPEST = 50  # pairs within one another
_INSIDE = {**COPIED, **{name: PLACEHOLDERS[name] for name in ("template", "code element", "merge tag")}}


def read_tags(text: str, protected: Sequence[Span] = ()) -> HtmlDocument | None:
    """A text with pairs of tags as one block with inline markup; None where it has none, or more than are moved about.

    Args:
        text: any.
        protected: places of it whose tags are none, in order.
    """
    pairs = _pairs(text)
    if 0 < len(pairs) <= MOST_INLINE:
        taken = [*protected, *(span for span, _ in find_families(text, _INSIDE))]
        pairs = [pair for pair in pairs if not any(_breaks(span, tag) for tag in pair for span in taken)]
    if not 0 < len(pairs) <= MOST_INLINE:
        return None
    builder, done = BlockBuilder(xml=True), 0
    tags = chain.from_iterable(((opening, builder.open), (closing, builder.close)) for opening, closing in pairs)
    for span, add in sorted(tags, key=lambda tag: tag[0]):
        builder.write(text[done : span.start])
        add(text[span.start : span.end])
        done = span.end
    builder.write(text[done:])
    return HtmlDocument((replace(builder.block(text), plain=True),))


def _pairs(text: str) -> list[tuple[Span, Span]]:
    """Start and end of each pair: none goes over a line's end, and none over an end of another."""
    found: list[tuple[Span, Span]] = []
    begun: list[tuple[str, Span]] = []
    for match in _TAG.finditer(text):
        name = match["name"] or (match["code"] and f"[{match['code']}]") or match["opening"] or match["closing"]
        span, ends = Span(*match.span()), match["end"] or match["code_end"] or match["closing"]
        if match[0] == "\n":
            begun = []
        elif not ends:
            begun.append((name, span))
        elif name in [one for one, _ in begun[-_DEEPEST:]]:
            while (begin := begun.pop())[0] != name:
                pass
            found.append((begin[1], span))
    return found


def _breaks(kept: Span, tag: Span) -> bool:
    """Whether a part that is kept overlaps a tag, other than as an address within it."""
    return kept.start < tag.end and tag.start < kept.end and not (tag.start < kept.start and kept.end < tag.end)
