"""Lines of text in, lines of text out, with nothing else going on: validation, evaluation, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from models.rendering import Renderer
from models.search.graphs import Array, Graphs
from models.search.hypotheses import Hypothesis
from models.search.offline import translate_batch
from models.search.options import SearchOptions
from models.shortlist import Shortlist
from models.text import normalise
from models.vocabulary import EOS, Vocabulary

Column: TypeAlias = Sequence[Any]  # lines of text (str), or feature matrices S x D (arrays)


def encode_lines(vocabulary: Vocabulary, lines: Sequence[str], max_tokens: int) -> list[np.ndarray]:
    """Ids of every line, ending with EOS and cut at ``max_tokens`` (EOS included)."""
    encoded = (vocabulary.encode(normalise(line))[: max_tokens - 1] for line in lines)
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
    graphs: Graphs,
    vocabularies: tuple[Sequence[Vocabulary | None], Vocabulary],
    lines: Sequence[Column],
    options: SearchOptions,
    *,
    max_source_tokens: int,
    token_budget: int = 8192,
    progress: Callable[[int], None] = lambda done: None,
    renderer: Renderer | None = None,
    shortlist: Shortlist | None = None,
) -> list[str]:
    """The best hypothesis of every line, as text.

    Args:
        graphs: the model.
        vocabularies: one per source (None for feature matrices), and the target's.
        lines: one list of lines, or of feature matrices, per source, parallel. A line is decoded whole, as one
            sentence; one whose text is empty in every source stays so.
        options: of the search.
        max_source_tokens: longer lines are cut there (EOS included).
        token_budget: rows x source length of a batch.
        progress: called with the number of lines just finished.
        renderer: how hypotheses become text, ``Renderer.of(bundle)`` for a bundle; by default they are text, and
            unknown words are copied from the source.
        shortlist: where given, ``bundle.shortlist``, each line uses only the target tokens that it selects.
    """
    sources, target = vocabularies
    renderer = renderer or Renderer(tuple(sources), target)
    options = renderer.options(options)
    columns = encode_columns(sources, lines, max_source_tokens)
    written = written_lines(sources, lines)
    no_text = all(vocabulary is None for vocabulary in sources)
    wanted = [index for index, line in enumerate(written) if no_text or any(map(str.strip, line))]
    texts = [""] * len(written)
    chunk = 2048  # bounds memory; sorting by length within it leaves little padding
    for start in range(0, len(wanted), chunk):
        part = wanted[start : start + chunk]
        batch = [tuple(column[index] for column in columns) for index in part]
        found: list[list[Hypothesis]] = translate_batch(
            graphs, batch, options, token_budget=token_budget, shortlist=shortlist
        )
        for index, hypotheses in zip(part, found, strict=True):
            if hypotheses:
                texts[index] = renderer.text(hypotheses[0], (), written[index])
        progress(len(part))
    return texts


def written_lines(sources: Sequence[Vocabulary | None], lines: Sequence[Column]) -> list[tuple[str, ...]]:
    """Each line as text, source by source; matrices have none."""
    columns = [[""] * len(column) if v is None else column for v, column in zip(sources, lines, strict=True)]
    return list(zip(*columns, strict=True))
