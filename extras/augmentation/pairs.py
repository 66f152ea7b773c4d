"""Changing the text of training pairs on both sides at once (``[data.augmentation]``)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tandem.extras.augmentation import borders
from tandem.extras.augmentation.borders import Texts
from tandem.extras.augmentation.substitution import substituted
from tandem.training.data.config import AugmentationConfig

_SHORT = 32  # characters of an entry of a menu, on its longer side
_LABEL = 3  # words


class PairRewriter:
    """Rewrites some pairs of a block of neighbours.

    Args:
        config: the shares.
        columns: the sources and the targets.
        languages: for each pair those that its source may be in, and its target's.
        marked: for each pair whether it has placeholders of the vocabulary, whose spelling must stay.
        random: decides on everything.
    """

    def __init__(
        self,
        config: AugmentationConfig,
        columns: Sequence[Sequence[str]],
        languages: Sequence[tuple[Sequence[str], str]],
        marked: Sequence[bool],
        random: Random,
    ) -> None:
        self._config, self._languages, self._marked, self._random = config, languages, marked, random
        self._pairs: list[Texts] = list(zip(*columns, strict=True))
        self._short: dict[object, list[int]] = {}
        for place, pair in enumerate(self._pairs):
            if max(map(len, pair)) <= _SHORT and not marked[place]:
                self._short.setdefault(languages[place], []).append(place)

    def rewritten(self) -> dict[int, Texts]:
        """The changed pairs by their place; what could not be changed is not among them."""
        found = {place: self._one(place) for place in range(len(self._pairs))}
        return {place: texts for place, texts in found.items() if texts != self._pairs[place]}

    def _one(self, place: int) -> Texts:
        config, random, texts = self._config, self._random, self._pairs[place]
        drawn = [random.random() for _ in range(5)]
        plain = not self._marked[place]
        if drawn[0] < config.capitals and plain:
            texts = capitalised(texts, random)
        if drawn[1] < config.substitutes and plain:
            texts = substituted(texts, random, names=config.names) or texts
        if drawn[2] < config.ends:
            texts = borders.ended(texts, random)
        if drawn[3] < config.joins and max(map(len, texts)) <= 2 * _SHORT:
            texts = self._joined(place, texts)
        if drawn[4] < config.borders:
            texts = self._bordered(place, texts)
        return texts

    def _joined(self, place: int, texts: Texts) -> Texts:
        short = self._short.get(self._languages[place], [])
        if not short:
            return texts
        others = [self._pairs[other] for other in self._random.choices(short, k=self._random.randint(1, 3))]
        return borders.joined([texts, *others], self._random)

    def _bordered(self, place: int, texts: Texts) -> Texts:
        kind = self._random.randrange(4)
        if kind == 0:
            return borders.quoted(texts, self._random, self._languages[place])
        return (borders.wrapped, borders.preceded, borders.followed)[kind - 1](texts, self._random)


def capitalised(texts: Texts, random: Random) -> Texts:
    """A pair in capitals, a source with a capital at every word, or a label with one at its beginning on both sides."""
    source, target = texts
    kind = random.random()
    if kind < 0.4:
        return source.upper(), target.upper()
    if kind < 0.6:
        return " ".join(word[:1].upper() + word[1:] for word in source.split(" ")), target
    if len(source.split()) <= _LABEL:
        return source[:1].upper() + source[1:], target[:1].upper() + target[1:]
    return texts
