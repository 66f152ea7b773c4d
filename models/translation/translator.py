"""Lines of text in, lines of text out, with nothing else going on: validation, evaluation, files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tandem.models.search.graphs import Array
from tandem.models.search.offline import Failed, NBest, OfflineDecoder
from tandem.models.text import as_read, normalise
from tandem.models.translation.rendering import Renderer
from tandem.models.vocabulary import EOS, Vocabulary

Column: TypeAlias = Sequence[Any]  # lines of text (str), or feature matrices S x D (arrays)


def encode_lines(vocabulary: Vocabulary, lines: Sequence[str], max_tokens: int) -> list[np.ndarray]:
    """Ids of every line as models read it, ending with EOS and cut at ``max_tokens`` (EOS included)."""
    encoded = (vocabulary.encode(_read(line))[: max_tokens - 1] for line in lines)
    return [np.array([*ids, EOS], np.int64) for ids in encoded]


def encode_columns(
    sources: Sequence[Vocabulary | None], lines: Sequence[Column], max_tokens: int
) -> list[Sequence[Array]]:
    """What the decoder takes of every source: ids as :func:`encode_lines` has them, feature matrices as they are."""
    return [
        [np.asarray(one) for one in column] if vocabulary is None else encode_lines(vocabulary, column, max_tokens)
        for vocabulary, column in zip(sources, lines, strict=True)
    ]


def translate_lines(
    decoder: OfflineDecoder,
    vocabularies: tuple[Sequence[Vocabulary | None], Vocabulary],
    lines: Sequence[Column],
    *,
    max_source_tokens: int,
    renderer: Renderer | None = None,
) -> list[str]:
    """The best hypothesis of every line, as text.

    Args:
        decoder: of the model; it must not isolate failures.
        vocabularies: one per source (None for feature matrices), and the target's.
        lines: one list of lines, or of feature matrices, per source, parallel. A line is decoded whole, as one
            sentence; one whose text is empty in every source stays so.
        max_source_tokens: longer lines are cut there (EOS included).
        renderer: how hypotheses become text, ``Renderer.of(bundle)`` for a bundle; by default they are text, and
            unknown words are copied from the source.
    """
    sources, target = vocabularies
    renderer = renderer or Renderer(tuple(sources), target)
    columns = encode_columns(sources, lines, max_source_tokens)
    written = written_lines(sources, lines)
    no_text = all(vocabulary is None for vocabulary in sources)
    wanted = [index for index, line in enumerate(written) if no_text or any(map(str.strip, line))]
    texts = [""] * len(written)
    decoder = replace(decoder, options=renderer.options(decoder.options))
    outcomes: Iterable[NBest] = decoder.decode(tuple(column[index] for column in columns) for index in wanted)
    for index, hypotheses in zip(wanted, outcomes, strict=True):
        if not isinstance(hypotheses, Failed):
            texts[index] = renderer.text(hypotheses[0], (), written[index])
    return texts


def written_lines(sources: Sequence[Vocabulary | None], lines: Sequence[Column]) -> list[tuple[str, ...]]:
    """Each line as text that models read, source by source; matrices have none."""
    texts = zip(sources, lines, strict=True)
    columns = [[""] * len(column) if v is None else list(map(_read, column)) for v, column in texts]
    return list(zip(*columns, strict=True))


def _read(line: str) -> str:
    return as_read(normalise(line))
