"""Tags, links and emphasis in a plain text: pairs on one line are inline markup, as in HTML; all else stays text.

Strings of applications and posts have ``<b>``, ``<1>``, ``[b]``, ``**``, ``[so](https://…)`` and ``{{#x}}`` in them
though nobody calls them HTML: entities are none here, nothing is escaped, and a tag without its counterpart is a
placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain

from tandem.extras.markup.html import MOST_INLINE, HtmlDocument
from tandem.extras.markup.inline import BlockBuilder
from tandem.service.text.families import COPIED, PLACEHOLDERS, find_families
from tandem.service.text.layout import fenced
from tandem.service.text.spans import Span

_TARGET = r"""\]\((?=[^()\s]{0,200}[/.\#:])(?:[^()\s]|\([^()\s]{0,100}\)){1,500}(?:[ ]+"[^"\n]{0,200}")?\)"""
_TAG = re.compile(
    rf"""(?<![\w!])(?P<link>\[)(?=[^\[\]\n]{{1,200}}{_TARGET}) | (?P<link_end>{_TARGET})  # of Markdown
      | <(?P<end>/)?(?P<name>[A-Za-z][\w:.-]{{0,100}}|\d{{1,3}})(?:\s[^<>\n]{{0,500}})?(?<!/)>
      | \[(?P<code_end>/)?(?P<code>[A-Za-z]{{1,20}})(?:(?:=|[ ]+[\w-]{{1,40}}=)[^\[\]\n]{{0,500}})?\]  # BBCode
      # of templates: {{% x %}}so{{% endx %}}, {{{{#x}}}}so{{{{/x}}}}, {{{{< x >}}}}so{{{{< /x >}}}}
      | {{%-?\s*(?P<begun>(?!end)\w{{1,50}})\b[^%\n]{{0,200}}%}}(?=\S) | (?<=\S){{%-?\s*end(?P<ended>\w{{1,50}})\s*-?%}}
      | {{{{(?:[#^]|[<%]\s*(?!/))(?P<section>[\w.-]{{1,50}})[^{{}}\n]{{0,200}}}}}}(?=\S)
      | (?<=\S){{{{(?:[<%]\s*)?/\s*(?P<section_end>[\w.-]{{1,50}})\s*[%>]?}}}}
      | (?<![\w*_~'])(?P<opening>\*{{1,3}}|~~|_|'{{2,5}}(?!{{))(?![\s*|_~'])
      | (?<![\s*|_~'])(?P<closing>\*{{1,3}}|~~|_|(?<!}})'{{2,5}})(?![\w*_~'])
      | \n""",
    re.VERBOSE,
)
_ENDS = {"link_end": "link", "ended": "begun", "section_end": "section", "closing": "opening"}
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
        taken = [*protected, *_fences(text), *(span for span, _ in find_families(text, _INSIDE))]
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


def _fences(text: str) -> list[Span]:
    """The lines of fenced code, whose signs are no emphasis."""
    lines = text.splitlines(keepends=True)
    ends = [*accumulate(map(len, lines))]
    return [Span(ends[number] - len(lines[number]), ends[number]) for number in sorted(fenced(lines))]


def _pairs(text: str) -> list[tuple[Span, Span]]:
    """Start and end of each pair: none goes over a line's end, and none over an end of another."""
    found: list[tuple[Span, Span]] = []
    begun: list[tuple[str, str, Span]] = []
    for match in _TAG.finditer(text):
        kind, span = match.lastgroup or "", Span(*match.span())
        ends = kind in _ENDS or bool(match["end"] or match["code_end"])
        kind, name = _ENDS.get(kind, kind), "" if "link" in kind else match[match.lastgroup or 0]
        if match[0] == "\n":
            begun = []
        elif not ends:
            begun.append((kind, name, span))
        elif (kind, name) in [one[:2] for one in begun[-_DEEPEST:]]:
            while (begin := begun.pop())[:2] != (kind, name):
                pass
            found.append((begin[2], span))
    return found


def _breaks(kept: Span, tag: Span) -> bool:
    """Whether a part that is kept overlaps a tag, other than as an address within it."""
    return kept.start < tag.end and tag.start < kept.end and not (tag.start < kept.start and kept.end < tag.end)
