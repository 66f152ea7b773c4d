"""Quotation marks: small models open with one kind and close with another."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SPACE = "[ \u00a0\u202f]?"
_MARK = re.compile(f"«{_SPACE}|{_SPACE}»|[“”„]")


def with_even_quotes(text: str, source: str, kept: Iterable[str] = ()) -> str:
    """A translation with straight quotation marks alone, where its source has such and it has both kinds.

    Args:
        text: the translation.
        source: its source.
        kept: parts of the translation that are to stay as they are: where one has marks all do.
    """
    if '"' not in text or '"' not in source or any(map(_MARK.search, kept)):
        return text
    return _MARK.sub('"', text)
