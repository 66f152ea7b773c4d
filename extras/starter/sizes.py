"""How large a model, how long and with what: rules of thumb from the amount of training text.

Little text wants a small vocabulary, small batches and much dropout, and may be seen often (Sennrich and Zhang 2019,
"Revisiting Low-Resource Neural Machine Translation"); much text wants a wider model and larger batches. The numbers are
chosen so that the corpora that this project trains on (20,000 to 160,000 pairs) get about the sizes that served them
well. They are a beginning, and stand in a recipe to be changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tandem.extras.starter.text import Pair, character_count, estimated_tokens, form_count
from tandem.models.vocabulary import PLACEHOLDERS

_LARGEST = 32_000  # entries of a vocabulary
# Bytes, special tokens, placeholders, the tags of two languages, and the mark of a word's beginning.
_RESERVED = 256 + 4 + len(PLACEHOLDERS) + 2 + 1


@dataclass(frozen=True, slots=True)
class Amount:
    """How much text there is to train on.

    Attributes:
        pairs: in number.
        tokens: of the longer side, by estimate.
        words: of a target, the mean.
        characters: different ones that a joint vocabulary needs.
        forms: different words of both sides, counted up to the largest vocabulary.
    """

    pairs: int
    tokens: int
    words: float
    characters: int
    forms: int

    @classmethod
    def of(cls, pairs: Sequence[Pair], cut: int | None = None) -> Amount:
        """The amount of some training pairs, of whose sources so many tokens are read, or all."""
        sources = (estimated_tokens(source) for source, _ in pairs)
        read = sum(sources if cut is None else (min(tokens, cut) for tokens in sources))
        tokens = max(read, sum(estimated_tokens(target) for _, target in pairs))
        words = sum(len(target.split()) for _, target in pairs) / len(pairs)
        characters = character_count(text for pair in pairs for text in pair)
        forms = form_count((text for pair in pairs for text in pair), _LARGEST)
        return cls(len(pairs), tokens, words, characters, forms)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long to train.

    Attributes:
        updates: last update.
        warmup: updates over which the rate rises.
        cooldown: last updates, over which it falls to zero.
        every: updates between validations, and between checkpoints.
        passes: how often each pair is seen.
    """

    updates: int
    warmup: int
    cooldown: int
    every: int
    passes: float

    @classmethod
    def of(cls, amount: Amount, batch_tokens: int, *, updates: int, cooldown: float) -> Schedule:
        """The schedule of so many updates; ``cooldown`` is a share of them."""
        warmup = min(4000, max(1, updates // 10))
        every = max(1, updates // 10) if updates < 1000 else updates // 1000 * 100
        return cls(updates, warmup, round(updates * cooldown), every, updates * batch_tokens / amount.tokens)


def held_out(pairs: int) -> int:
    """Pairs of a validation or test set: a thirtieth, at most 2,000; of little text more, but at most a tenth."""
    return min(2000, max(pairs // 30, min(200, pairs // 10)))


def vocabulary(amount: Amount) -> int:
    """Entries: 7 times the root of the tokens: 2,000 for 80,000, 8,000 for 1.3 million, at most 32,000.

    At least twice the characters, on top of the 256 bytes and what is reserved; and at most so many that every word and
    every character is one: text of few words has no more pieces for sure.
    """
    wanted = min(_LARGEST, max(1000, round(7 * math.sqrt(amount.tokens) / 500) * 500))
    wanted = max(wanted, round((300 + 2 * amount.characters) / 500 + 0.5) * 500)
    return min(wanted, _RESERVED + amount.characters + amount.forms)


def batch_tokens(amount: Amount) -> int:
    """Target tokens of an update, about: 2,000, and from 2 million tokens on 4,000, from 20 million on 8,000."""
    return 2000 if amount.tokens < 2_000_000 else 4000 if amount.tokens < 20_000_000 else 8000


def passes(amount: Amount) -> int:
    """Over the text: 20 up to half a million tokens, 14 at two million, 8 at twenty million, at least 6."""
    return max(6, min(20, round(20 * math.pow(500_000 / amount.tokens, 0.25))))


def dropout(seen: float) -> float:
    """By how often the text is seen: what is seen once cannot be learnt by heart."""
    return 0.1 if seen < 8 else 0.2 if seen < 16 else 0.3


def wide(amount: Amount) -> bool:
    """Whether there is enough text for a model of width 512 rather than 256 (which then wants a GPU)."""
    return amount.tokens >= 10_000_000
