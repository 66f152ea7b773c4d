"""How much of a text a bundle's shortlist covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem.extras.shared.alignment import Ids
from tandem.models.search.shortlist import Shortlist


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a text its sentences' shortlists hold.

    Attributes:
        tokens: share of the target tokens, EOS left out.
        sentences: share of the sentences of which they hold every token.
        listed: mean tokens of a list.
    """

    tokens: float
    sentences: float
    listed: float


def coverage(
    shortlist: Shortlist, sources: Sequence[tuple[NDArray[np.generic], ...]], targets: Sequence[Ids]
) -> Coverage:
    """How much of some sentences' targets their shortlists hold.

    Args:
        shortlist: the bundle's.
        sources: per sentence, as the model reads them.
        targets: ids without EOS.
    """
    held, whole, listed = 0, 0, 0
    for source, target in zip(sources, targets, strict=True):
        chosen = shortlist.select(source)
        found = np.isin(target, chosen)
        held, whole, listed = held + int(found.sum()), whole + bool(found.all()), listed + len(chosen)
    count, tokens = max(1, len(targets)), max(1, sum(map(len, targets)))
    return Coverage(held / tokens, whole / count, listed / count)
