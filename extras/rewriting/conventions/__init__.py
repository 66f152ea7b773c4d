"""What languages write each in its own way, and the service instead of a model: dates, times, amounts, letters.

Small models lose or garble it, and there is nothing to learn about it that is not known.
"""

from __future__ import annotations

import re

from tandem.extras.rewriting.conventions.amounts import find_amounts
from tandem.extras.rewriting.conventions.dates import find_dates
from tandem.extras.rewriting.conventions.letters import find_formulae
from tandem.service.text.masking import HiddenPlace, merge

_DIGIT = re.compile(r"\d")


def find_conventional(text: str, source: str, target: str) -> list[HiddenPlace]:
    """What of a normalised sentence the service writes itself, in order.

    Args:
        text: the sentence.
        source, target: the languages of it and of its translation, as ISO 639 has them.
    """
    found = find_formulae(text, source, target)
    if _DIGIT.search(text):
        for find in (find_dates, find_amounts):
            found = merge(found, find(text, source, target))
    return found
