"""Putting what must be copied where both sides of a pair have the same number or name.

The place is aligned by being the same: where a number or a capitalised word stands exactly once on either side, its
translation is itself, and so is that of whatever is put there. Wrapped in marks, it shows that marks go with a word.
"""

from __future__ import annotations

import re
from random import Random

from tandem.extras.augmentation import copyables
from tandem.extras.augmentation import names as names_of
from tandem.extras.augmentation.borders import Texts, wrapped

_NUMBER = re.compile(r"(?<![\w.,:/%-])\d{1,6}(?![\w:/%]|[.,-]\d)")
_NAME = re.compile(r"(?<![\w.@/-])[A-Z][^\W_]+(?:[.-][^\W_]+)*(?![\w@/-])")
_LEAST = 3  # letters of a name: shorter ones are "I", "So" and "In"


def substituted(texts: Texts, random: Random, *, names: float) -> Texts | None:
    """A pair with something else to copy in the place of a number or name; None where neither stands on both sides.

    Args:
        texts: source and target.
        random: decides what goes where.
        names: share of the names that get another name of a person or place; the others get identifiers and the like.
    """
    places = _shared(_NUMBER, texts)
    make = _for_number
    if not places or random.random() < 0.3:
        found = [place for place in _shared(_NAME, texts) if len(place) >= _LEAST]
        if found:
            places, make = found, _for_name
    if not places:
        return None
    place = random.choice(places)
    if make is _for_name and random.random() < names:
        new = (names_of.name(random),) * 2
    elif random.random() < 0.12:
        new = wrapped((place, place), random)
    else:
        new = (make(random),) * 2
        if random.random() < 0.08:
            new = wrapped(new, random)
    source, target = (text.replace(place, own) for text, own in zip(texts, new, strict=True))
    return source, target


def _for_number(random: Random) -> str:
    kind = random.random()
    if kind < 0.65:
        return copyables.number(random)
    return copyables.slot(random) if kind < 0.85 else copyables.identifier(random)


def _for_name(random: Random) -> str:
    kind = random.random()
    if kind < 0.6:
        return copyables.identifier(random)
    return copyables.slot(random) if kind < 0.9 else copyables.number(random)


def _shared(pattern: re.Pattern[str], texts: Texts) -> list[str]:
    """The matches that stand exactly once on both sides, also as parts of other words."""
    source, target = ([match[0] for match in pattern.finditer(text)] for text in texts)
    both = sorted(set(source) & set(target))
    return [one for one in both if all(text.count(one) == 1 for text in texts)]
