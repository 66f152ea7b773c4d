"""What the tests of conventions share."""

from __future__ import annotations

from collections.abc import Callable

from tandem.service.text.masking import HiddenPlace


def found(find: Callable[[str, str, str], list[HiddenPlace]], text: str, direction: str) -> list[tuple[str, str]]:
    """What is hidden in a text, and what is written for it: terms that no model reads and the reply is silent of."""
    source, target = direction.split("-")
    places = find(text, source, target)
    assert all(text[span.start : span.end] == part.source == part.term for span, part in places)
    assert not any(part.asked or part.read_first for _, part in places)
    return [(part.source, part.target) for _, part in places]
