"""What reads texts with markup in them: those that are markup, and plain ones with tags in them."""

from __future__ import annotations

from tandem.service.text.blocks import MarkupReader
from tandem.service.text.html import HtmlDocument
from tandem.service.text.tags import read_tags

READER = MarkupReader(parse=HtmlDocument.parse, parse_plain=read_tags)
