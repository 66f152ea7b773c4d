"""What reads texts with markup in them: those that are markup, and plain ones with tags in them."""

from __future__ import annotations

from tandem.extras.markup.html import HtmlDocument
from tandem.extras.markup.tags import read_tags
from tandem.service.text.blocks import MarkupReader

READER = MarkupReader(parse=HtmlDocument.parse, parse_plain=read_tags)
