"""The work that is measured: sentences with a fixed distribution of lengths, cut into batches of similar length, or as
requests of a service.

Lengths are log-normal, as those of sentences are; words are drawn evenly from a vocabulary, since the speed of a search
whose lengths are given does not depend on what the words say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.extras.loadtest.texts import DEVIATION, LONGEST, MEAN, SHORTEST
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.text import normalise
from tandem.models.vocabulary import Vocabulary, untagged

TASKS = ("translate", "summarize")
_FEWEST_WORDS = 2


@dataclass(frozen=True, slots=True)
class SentenceBatch:
    """Sentences that are decoded together.

    Attributes:
        indices: which sentences of the work these are.
        target: tokens that each of them is decoded to, without EOS; None where decoding stops by itself.
    """

    indices: tuple[int, ...]
    target: int | None


@dataclass(frozen=True, slots=True)
class TransformerSize:
    """A Transformer's sizes.

    Attributes:
        layers: of the encoder, and of the decoder.
        width: of the model.
        hidden: units of a feed-forward block.
        heads: of every attention.
        positions: longest sequence in symbols.
    """

    layers: int = 6
    width: int = 256
    hidden: int = 1024
    heads: int = 4
    positions: int = 1024

    @property
    def model(self) -> dict[str, Any]:
        """These sizes as a recipe's ``[model]`` has them."""
        sizes = {"encoder_layers": self.layers, "decoder_layers": self.layers, "max_positions": self.positions}
        return sizes | {"width": self.width, "hidden": self.hidden, "heads": self.heads}


def lengths(count: int = 2048, seed: int = 0) -> NDArray[np.int64]:
    """Source lengths in tokens without EOS: log-normal with the mean 23, rounded, clipped to 3..100.

    Args:
        count: sentences.
        seed: the same seed gives the same lengths on every machine.
    """
    mu = math.log(MEAN) - DEVIATION**2 / 2
    drawn = np.random.default_rng(seed).lognormal(mu, DEVIATION, count)
    return np.clip(np.rint(drawn), SHORTEST, LONGEST).astype(np.int64)


def texts(vocabulary: Vocabulary, count: int = 2048, seed: int = 0) -> list[str]:
    """Pseudo-text whose tokenised lengths are those of :func:`lengths`, in its order.

    Raises:
        ConfigError: hardly a piece of the vocabulary is a word of its own.
    """
    words = _words(vocabulary)
    if len(words) < _FEWEST_WORDS:
        raise ConfigError(
            f"the vocabulary must have at least {_FEWEST_WORDS} pieces that are whole words to make text of, but has"
            f" {len(words)}: give real text instead"
        )
    rng = np.random.default_rng([seed, 1])
    return [" ".join(words[int(i)] for i in rng.integers(len(words), size=n)) for n in lengths(count, seed)]


def batches(tokens: Sequence[int], size: int, *, forced: bool) -> list[SentenceBatch]:
    """Sentences sorted by length, cut into batches of ``size`` (the last one may be smaller), in a shuffled order.

    Args:
        tokens: length of each sentence without EOS.
        size: sentences of a batch.
        forced: whether a batch decodes exactly its mean source length, or stops by itself.
    """
    order = sorted(range(len(tokens)), key=lambda index: tokens[index])
    cut = [order[start : start + size] for start in range(0, len(order), size)]
    made = [SentenceBatch(tuple(one), _mean(tokens[i] for i in one) if forced else None) for one in cut]
    # The longest batches shall not end up with one worker at the end.
    return [made[int(i)] for i in np.random.default_rng(0).permutation(len(made))]


def sample(tokens: Sequence[int], count: int) -> list[int]:
    """At most ``count`` indices of sentences, evenly spread over the lengths."""
    order = sorted(range(len(tokens)), key=lambda index: tokens[index])
    if count >= len(order):
        return order
    return [order[int(place)] for place in (np.arange(count) + 0.5) * len(order) / count]


def _mean(tokens: Iterable[int]) -> int:
    return max(1, round(float(np.mean(list(tokens)))))


def _words(vocabulary: Vocabulary) -> list[str]:
    """Words that are one piece each: text made of them has as many tokens as words.

    Letters alone are left out, where there are others: a translation that lacks one is tried again.
    """
    found = []
    vocabulary = untagged(vocabulary)
    for token in range(vocabulary.size):
        word = vocabulary.piece_of(token).lstrip("\u2581")  # sentencepiece's mark of a word's beginning
        if word.isalpha() and vocabulary.encode(normalise(word)) == [token]:
            found.append(word)
    longer = [word for word in found if len(word) > 1]
    return longer if len(longer) >= _FEWEST_WORDS else found


def check_one_text(bundle: Bundle) -> None:
    """Raises ConfigError where a bundle does not read exactly one source that is text."""
    if len(bundle.sources) != 1 or bundle.sources[0] is None:
        raise ConfigError(
            f"this benchmark measures bundles with one source, a text, but {bundle.path} has {len(bundle.sources)}"
            f" sources, {len(bundle.source_vocabularies)} of them text"
        )


@dataclass(frozen=True, slots=True)
class ForcedText:
    """A text and how many tokens, without EOS, its translation must have."""

    text: str
    tokens: int


def forced_texts(bundle: Bundle, count: int) -> list[ForcedText]:
    """Distinct pseudo-texts, ``count`` at most, whose target length is their source length, so that the work does not
    depend on any weights.

    Raises:
        ConfigError: the bundle reads anything but one text, post-edits, or takes no text of such a length.
    """
    check_servable(bundle)
    vocabulary, limits = untagged(bundle.source_vocabularies[0]), bundle.manifest.limits
    longest = min(limits.max_source_tokens, limits.max_target_tokens)
    sized = {text: len(vocabulary.encode(text)) for text in texts(vocabulary, count)}
    found = [ForcedText(text, tokens) for text, tokens in sized.items() if tokens <= longest]
    if not found:
        raise ConfigError(f"the pseudo-text has no line of at most {longest} tokens")
    return found


def check_servable(bundle: Bundle) -> None:
    """Raises ConfigError where a bundle is not one that translates or summarizes one text."""
    check_one_text(bundle)
    if bundle.manifest.task not in TASKS:
        raise ConfigError(f"{bundle.path} must translate or summarize to be loaded with requests of one text")


def tandem_path(bundle: Bundle) -> str:
    """The route that answers for a bundle."""
    return f"/{bundle.manifest.task}"


def tandem_body(bundle: Bundle, text: str | list[str], **options: Any) -> bytes:
    """A request for Tandem as JSON; ``options`` are further fields."""
    manifest = bundle.manifest
    languages = {"source": manifest.source_languages[0], "target": manifest.target_language}
    where = languages if manifest.task == "translate" else {"language": manifest.source_languages[0]}
    return json.dumps({"q": text, "model": manifest.name, **where, **options}).encode()


def forced_bodies(bundle: Bundle, forced: list[ForcedText], beam_size: int) -> list[bytes]:
    """Requests for Tandem in which every text gets its length: none is decoded again for what looks like a name."""
    plain = {"lexicon": False} if bundle.manifest.task == "translate" else {}
    return [
        tandem_body(bundle, one.text, beam_size=beam_size, min_length=one.tokens, max_length=one.tokens, **plain)
        for one in forced
    ]


def naive_bodies(forced: list[ForcedText], beam_size: int) -> list[bytes]:
    """The same requests for :mod:`extras.laboratory.service.naive`."""
    return [json.dumps({"q": one.text, "length": one.tokens, "beam_size": beam_size}).encode() for one in forced]
