"""Words for all genders, as German and French write them with a sign: "Kolleg*innen", "étudiant·e·s".

No vocabulary has them, and the sign would stand in the translation between the halves of what was a word. They are read
without it, as the word that is left: "Kolleginnen", "étudiants".
"""

from __future__ import annotations

import re

# Of a noun: "Kolleg*innen", "Freund:in", "Schüler/-innen", "Student*innenwerk". Of what stands before one: "jede*r".
_GERMAN = re.compile(
    r"(?<![\w*:/])(?:(?P<noun>[A-ZÄÖÜ][a-zäöüß]{2,})(?:[*:·_]|/-?)"
    r"(?=(?:in|innen[a-zäöüß]*)(?![\w*]|[:/]\w))"
    r"|(?P<loud>[A-ZÄÖÜ]{3,})(?:[*:·]|/-?)(?=IN(?:NEN)?(?![\w*]|[:/]\w))"
    r"|(?P<before>(?i:[kmds]?eine?|ihre?|unsere?|jede|diese|welche|liebe|geehrte|neue|alle))[*:·/]"
    r"(?=(?:e[mnrs]?|[mnrs])(?![\w*]|[:/]\w)))"
)
_FRENCH = re.compile(
    r"(?<![\w·])(?P<word>[^\W\d_]{2,})·(?:e|[nltfsv]e|lle|nne|euse|ère|t?rice|sse)(?P<plural>·?s)?(?![\w·])"
)
_PLURALS = ("s", "x")


def as_words(text: str, language: str) -> str:
    """A sentence with its words for all genders as others are; as it is in other languages than these two."""
    if language == "de":
        return _GERMAN.sub(lambda match: match["noun"] or match["loud"] or match["before"], text)
    return _FRENCH.sub(_plain, text) if language == "fr" and "·" in text else text


def _plain(match: re.Match[str]) -> str:
    word = match["word"]
    return f"{word}s" if match["plural"] and not word.endswith(_PLURALS) else word
