"""What reads texts with markup in them: those that are markup, and plain ones with tags in them."""

from __future__ import annotations

import re

from tandem.extras.markup.html import HtmlDocument
from tandem.extras.markup.nesting import BLOCKS
from tandem.extras.markup.tags import read_tags
from tandem.service.text.blocks import MarkupReader

READER = MarkupReader(parse=HtmlDocument.parse, parse_plain=read_tags)
_BLOCK = re.compile(rf"(</?(?:{'|'.join(sorted(BLOCKS))})(?:\s[^<>]*)?>)", re.IGNORECASE)


def divided(text: str) -> list[str]:
    """A text at the tags of paragraphs, items, cells and the like, which stand at the odd places.

    The text alone where the first of these ends something or the last does not: they are placeholders (as in ``open
    <menu>``), or the text is a part of one.
    """
    parts = _BLOCK.split(text)
    tags = parts[1::2]
    return parts if tags and not tags[0].startswith("</") and tags[-1].startswith("</") else [text]
