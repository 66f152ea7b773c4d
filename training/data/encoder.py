"""Pairs of text to the token sequences of prepared data: encode, cut or drop, count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tandem.models.errors import ConfigError
from tandem.models.vocabulary import Vocabulary, WordVocabulary
from tandem.models.vocabulary.edits import Operations, apply, shortest_script
from tandem.training.data.config import DataConfig
from tandem.training.data.dataset import TokenWriter
from tandem.training.data.filters import Pair
from tandem.training.data.summary import SplitSummary


class PairEncoder:
    """Encodes pairs one by one, drops or cuts what is too long, and counts.

    Args:
        config: the limits, and whether targets are written as edits.
        vocabularies: one for each text side, the target's last.
        writers: of the same sides.

    Raises:
        ConfigError: edits, and the vocabularies of the last source and the target are not the same.
        VocabularyError: edits, and the vocabulary was trained without their operations.
    """

    def __init__(self, config: DataConfig, vocabularies: Sequence[Vocabulary], writers: Sequence[TokenWriter]) -> None:
        self._writers = tuple(writers)
        self._config = config
        self._vocabularies = tuple(vocabularies)
        self._dropped: Counter[str] = Counter()
        self._pairs = self._truncated = self._placeholders = self._unknown = 0
        self._operations: Operations | None = None
        if config.target_form == "edits":
            self._operations = Operations.of(vocabularies[-1])
            if vocabularies[-2].to_bytes() != vocabularies[-1].to_bytes():
                raise ConfigError("target_form = 'edits' needs one vocabulary for the last source and the target")

    def add(self, pair: Pair, rewritten: Pair | None = None, tags: Sequence[str] = ()) -> bool:
        """Encode a pair, as ``rewritten`` with placeholders where that is given and they survive on every side.

        Args:
            pair: the sources in order, then the target.
            rewritten: the same with placeholders.
            tags: reserved pieces that the first source is to begin with.

        Returns:
            Whether it was kept.

        Raises:
            VocabularyError: the vocabulary has no such tag.
        """
        before = [self._vocabularies[0].id_of(tag) for tag in tags]
        encoded = self._encode(rewritten, before, reserved=True) if rewritten else None
        if encoded and self._copied(encoded[0]):
            self._placeholders += 1
        else:
            encoded = self._encode(pair, before, reserved=False)
        if encoded:
            sides, truncated = encoded
            self._truncated += truncated
            self._pairs += 1
            self._unknown += sides[-1].count(self._vocabularies[-1].unk)
            for writer, ids in zip(self._writers, sides, strict=True):
                writer.add(ids)
        return encoded is not None

    def summary(self, dropped_before: Counter[str]) -> SplitSummary:
        """What was encoded; the reasons are joined with those of the text's filters."""
        *sources, target = (writer.total for writer in self._writers)
        return SplitSummary(
            pairs=self._pairs,
            dropped=dict(sorted((dropped_before + self._dropped).items())),
            source_tokens=tuple(sources),
            target_tokens=target,
            truncated=self._truncated,
            placeholders=self._placeholders,
            unknown=self._unknown,
        )

    def _encode(self, pair: Pair, tags: list[int], *, reserved: bool) -> tuple[list[list[int]], bool] | None:
        """The sides' ids, and whether a source was cut; none where the pair is dropped (and counted)."""
        config, truncated = self._config, False
        sides = [v.encode(text, reserved=reserved) for v, text in zip(self._vocabularies, pair, strict=True)]
        reason = "" if all(sides) else "empty"
        sides[0][:0] = tags
        if self._operations:
            sides[-1] = self._script(pair, sides, self._operations)
        if len(sides[-1]) + 1 > config.max_target_tokens:
            reason = "target_tokens"
        for ids, vocabulary in zip(sides[:-1], self._vocabularies, strict=False):
            if len(ids) + 1 > config.max_source_tokens:
                truncated = True
                del ids[config.max_source_tokens - 1 :]
            ids.append(vocabulary.eos)
        if truncated and not config.truncate_source:
            reason = "source_tokens"
        if not reason:
            return sides, truncated
        if not reserved:  # otherwise the plain pair is tried next, and counted then
            self._dropped[reason] += 1
        return None

    def _script(self, pair: Pair, sides: Sequence[list[int]], operations: Operations) -> list[int]:
        """The edits from the last source to the target. Words are compared as such, since many are unknown."""
        if isinstance(self._vocabularies[-1], WordVocabulary):
            return shortest_script(pair[-2].split(), pair[-1].split(), sides[-1], operations)
        return shortest_script(sides[-2], sides[-1], sides[-1], operations)

    def _copied(self, sides: Sequence[Sequence[int]]) -> bool:
        """Whether the target has a placeholder and each of its placeholders is in every source, none cut off."""
        if self._operations:
            sides = [*sides[:-1], apply(sides[-1], sides[-2], self._operations)]
        kinds = [set(ids) & set(v.placeholders) for ids, v in zip(sides, self._vocabularies, strict=True)]
        pieces = [{v.piece_of(token) for token in ids} for ids, v in zip(kinds, self._vocabularies, strict=True)]
        return bool(pieces[-1]) and all(pieces[-1] <= source for source in pieces[:-1])
