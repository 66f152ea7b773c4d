"""How a hypothesis becomes text, given the sources it was decoded from. Needs no torch.

    plain      the target vocabulary's own decoding
    edits      post-editing: the hypothesis is a script (``models.vocabulary.edits``), applied to the machine
               translation, which is the last source
    words      each unknown word is replaced (ConvS2S, sec. 4.1): of the source words, that with the largest attention
               (averaged over layers) is looked up in the dictionary, and copied where it is not there; or it stays

Edits and words go together: an unknown word that is inserted is replaced like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tandem.models.bundle import Bundle
from tandem.models.search.hypotheses import Hypothesis
from tandem.models.search.options import SearchOptions
from tandem.models.text import normalise
from tandem.models.vocabulary import BOS, EOS, PAD, UNK, Vocabulary, WordVocabulary
from tandem.models.vocabulary.dictionary import Dictionary
from tandem.models.vocabulary.edits import Operations, apply, origins

TargetForm: TypeAlias = Literal["text", "edits"]


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes hypotheses of one model as text.

    Attributes:
        sources: per source of the model its vocabulary; None for feature matrices, which have no words.
        target: the vocabulary of the hypotheses.
        target_form: whether a hypothesis is text or a script of edits on the last source.
        dictionary: for unknown words.
        keep_unknown: whether unknown words stay as they are instead.
    """

    sources: tuple[Vocabulary | None, ...]
    target: Vocabulary
    target_form: TargetForm = "text"
    dictionary: Dictionary = Dictionary()
    keep_unknown: bool = False

    @classmethod
    def of(cls, bundle: Bundle) -> Renderer:
        """The renderer of a bundle."""
        about = bundle.manifest
        return cls(bundle.sources, bundle.target_vocabulary, about.target_form, bundle.dictionary, about.keep_unknown)

    @property
    def needs_attention(self) -> bool:
        """Whether hypotheses must carry their attention: where unknown words are replaced and sources have words."""
        replaced = isinstance(self.target, WordVocabulary) and not self.keep_unknown
        return replaced and any(map(_has_words, self.sources))

    @property
    def reads_sources(self) -> bool:
        """Whether the text depends on the sources at all."""
        return self.target_form == "edits" or self.needs_attention

    def options(self, options: SearchOptions) -> SearchOptions:
        """The same options, with attention where it is needed."""
        return replace(options, attention=True) if self.needs_attention and not options.attention else options

    def text(self, hypothesis: Hypothesis, sources: Sequence[Sequence[int]], lines: Sequence[str]) -> str:
        """A hypothesis as text.

        Args:
            hypothesis: with its attention where :attr:`needs_attention`; without it unknown words stay as they are.
            sources: per source its token ids, with or without EOS, where they are not simply those of ``lines``
                (reserved tokens among them); empty otherwise.
            lines: per source its whole text (anything for feature matrices), even where the decoder was given only the
                beginning: of a translation that is edited, the rest is kept.
        """
        if isinstance(self.target, WordVocabulary) and self.reads_sources:
            return " ".join(self._words(hypothesis, [normalise(line).split() for line in lines]))
        if self.target_form == "edits":
            given = sources[-1] if sources else self.target.encode(normalise(lines[-1]))
            translation = [int(token) for token in given if token != EOS]
            return self.target.decode(apply(hypothesis.tokens, translation, Operations.of(self.target)))
        return self.target.decode(hypothesis.tokens)

    def _words(self, hypothesis: Hypothesis, lines: Sequence[Sequence[str]]) -> list[str]:
        steps = range(len(hypothesis.tokens))
        if self.target_form == "text":
            written = [self._word(hypothesis, step, lines) for step in steps]
        else:
            placed = origins(hypothesis.tokens, len(lines[-1]), Operations.of(self.target))
            written = [lines[-1][o.index] if o.kept else self._word(hypothesis, o.index, lines) for o in placed]
        return [word for word in written if word]

    def _word(self, hypothesis: Hypothesis, step: int, lines: Sequence[Sequence[str]]) -> str:
        """The word that one step produced, replaced where it is unknown; empty for padding, begin and end."""
        token = hypothesis.tokens[step]
        if token in (PAD, BOS, EOS):
            return ""
        replaced = token == UNK and not self.keep_unknown
        found = self._most_attended(hypothesis, step, lines) if replaced else None
        if found is None:
            return self.target.piece_of(token)
        source, place = found
        return self.dictionary.translate(source, lines[source][place])

    def _most_attended(
        self, hypothesis: Hypothesis, step: int, lines: Sequence[Sequence[str]]
    ) -> tuple[int, int] | None:
        """The source and the place in it of the word with the largest attention; of equal ones the first.

        Attention is relative to its own source: each source's weights sum to 1, whatever a source counts for.
        """
        best, largest = None, 0.0
        for source, weights in enumerate(hypothesis.attention or ()):
            words = min(len(lines[source]), weights.shape[1] - 1)  # what the decoder read, less its end of sentence
            if words < 1 or not _has_words(self.sources[source]):
                continue
            place = int(weights[step, :words].argmax())
            if weights[step, place] > largest:
                best, largest = (source, place), float(weights[step, place])
        return best


def with_unknown_words(bundle: Bundle, keep: bool | None) -> Bundle:
    """The bundle with unknown words kept or replaced; None leaves that to its manifest."""
    if keep is None or keep == bundle.manifest.keep_unknown:
        return bundle
    return replace(bundle, manifest=replace(bundle.manifest, keep_unknown=keep))


def _has_words(vocabulary: Vocabulary | None) -> bool:
    return isinstance(vocabulary, WordVocabulary)
