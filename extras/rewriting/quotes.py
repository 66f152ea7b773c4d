"""Single guillemets, as German and Swiss books quote within what is quoted: "»›Warum?‹, fragte er«".

Small models have hardly read them, and write a word in their place. They are read as the marks that every language has.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r"(?<!\w)(?:‹(?=[^‹›]{1,200}›)|›(?=[^‹›]{1,200}‹))([^\s‹›](?:[^‹›]*[^\s‹›])?)[‹›](?!\w)")


def as_read_often(text: str) -> str:
    """A sentence with apostrophes around what single guillemets enclose; others stay, such as those between links."""
    return _QUOTED.sub(r"'\1'", text) if "‹" in text and "›" in text else text
