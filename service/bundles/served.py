"""A bundle as requests use it: everything that depends on the bundle alone, worked out once when it is loaded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tandem.models.bundle import Bundle
from tandem.models.errors import VocabularyError
from tandem.models.search import Hypothesis, SearchOptions
from tandem.models.text import as_read, single_spaced
from tandem.models.translation.rendering import Renderer
from tandem.models.vocabulary import EDITS
from tandem.service.text.foreign import Alphabet

Ids = tuple[int, ...]
"""Tokens of a text, with the end of the sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class ServedModel:
    """A bundle of one target language, and its text side: counts, encodes and decodes. Safe to use from any thread.

    A sentence is one text per source of the model, in the bundle's order: for most models a tuple of one. It is read as
    ``models.text.as_read`` has it.

    Attributes:
        bundle: as it was loaded, or its view for one of several target languages.
        options: its decoding defaults for one hypothesis, without the tokens that are written only when asked for.
        renderer: writes its hypotheses.
        placeholders: strings that can stand for parts of a text and that the model learnt to copy, and the token that
            each is written as; of several texts none are.
        alphabet: the characters that it reads, of its first source.
        aligns: whether hypotheses can carry their attention.
        reads_sources: whether what it writes depends on more than the hypothesis.
    """

    bundle: Bundle
    options: SearchOptions
    renderer: Renderer
    placeholders: Mapping[str, int]
    alphabet: Alphabet
    aligns: bool = False
    reads_sources: bool = True

    @classmethod
    def of(cls, bundle: Bundle, *, aligns: bool = False) -> ServedModel:
        """Work it out; ``aligns``: whether the bundle's graphs give attention, and something reads it."""
        renderer, defaults = Renderer.of(bundle), bundle.manifest.decoding
        suppressed = tuple(sorted({*defaults.suppressed, *_reserved(bundle)}))
        options = renderer.options(replace(defaults, n_best=1, suppressed=suppressed))
        return cls(
            bundle,
            options,
            renderer,
            _placeholders(bundle),
            Alphabet(bundle.source_vocabularies[0]),
            aligns,
            renderer.reads_sources,
        )

    @property
    def name(self) -> str:
        """That it is served under, with its version where it has one."""
        return self.bundle.manifest.name

    @property
    def target(self) -> str:
        """Code of the language that it writes."""
        return self.bundle.manifest.target_language

    @property
    def limit(self) -> int:
        """Tokens of a sentence in each source, EOS not counted."""
        return self.bundle.manifest.limits.max_source_tokens

    def encode(self, sentence: Sequence[str], reserved: Collection[str] = ()) -> tuple[Ids, ...]:
        """Ids with EOS per source.

        Args:
            sentence: one text per source.
            reserved: the reserved strings that stand for their tokens; all others are spelled like any other text.
        """
        return tuple(self._ids(as_read(text), source, reserved) for source, text in enumerate(sentence))

    def _ids(self, text: str, source: int, reserved: Collection[str] = ()) -> Ids:
        vocabulary = self.bundle.source_vocabularies[source]
        return (*vocabulary.encode(text, reserved=reserved or False), vocabulary.eos)

    def decode(self, hypothesis: Hypothesis, sentence: Sequence[str]) -> str:
        """A hypothesis as text, on one line; ``sentence`` is what was translated, as it was given to ``encode``."""
        lines = [as_read(text) for text in sentence] if self.reads_sources else ()
        return single_spaced(self.renderer.text(hypothesis, (), lines))

    def pieces(self, hypothesis: Hypothesis) -> list[str]:
        """A hypothesis as the vocabulary's pieces."""
        return [self.bundle.target_vocabulary.piece_of(token) for token in hypothesis.tokens]


class Tokeniser:
    """Tokenises the texts of one request, each text once: what was measured is not encoded again. Not thread-safe."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model
        self._known: dict[tuple[int, str], Ids] = {}

    def ids(self, text: str, source: int = 0) -> Ids:
        """As ``ServedModel.encode`` makes them of that source."""
        key = source, as_read(text)
        if key not in self._known:
            self._known[key] = self._model._ids(key[1], source)
        return self._known[key]

    def measure(self, text: str, source: int = 0) -> int:
        """Tokens of a text, without EOS."""
        return len(self.ids(text, source)) - 1


def _placeholders(bundle: Bundle) -> dict[str, int]:
    manifest, target = bundle.manifest, bundle.target_vocabulary
    learnt = manifest.training.recipe.get("data", {}).get("placeholder_share") != 0
    if len(bundle.sources) != 1 or manifest.target_form != "text" or not learnt:
        return {}
    (source,) = bundle.source_vocabularies
    written = {target.piece_of(token): token for token in target.placeholders}
    return {piece: written[piece] for piece in map(source.piece_of, source.placeholders) if piece in written}


def _reserved(bundle: Bundle) -> set[int]:
    """Placeholders and language tags: part of a translation only when they were asked for. Edits only where written."""
    vocabulary, manifest = bundle.target_vocabulary, bundle.manifest
    tokens = set(vocabulary.placeholders)
    for code in {*manifest.source_languages, manifest.target_language}:
        with suppress(VocabularyError):
            tokens.add(vocabulary.language_tag(code))
    for piece in EDITS if manifest.target_form == "text" else ():
        with suppress(VocabularyError):
            tokens.add(vocabulary.id_of(piece))
    return tokens
