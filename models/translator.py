"""Lines of text in, lines of text out, with nothing else going on: validation, evaluation, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from models.search.graphs import Graphs
from models.search.hypotheses import Hypothesis
from models.search.offline import translate_batch
from models.search.options import SearchOptions
from models.text import normalise
from models.vocabulary import EOS, Vocabulary


def encode_lines(vocabulary: Vocabulary, lines: Sequence[str], max_tokens: int) -> list[np.ndarray]:
    """Ids of every line, ending with EOS and cut at ``max_tokens`` (EOS included)."""
    encoded = (vocabulary.encode(normalise(line))[: max_tokens - 1] for line in lines)
    return [np.array([*ids, EOS], np.int64) for ids in encoded]


def translate_lines(
    graphs: Graphs,
    vocabularies: tuple[Sequence[Vocabulary], Vocabulary],
    lines: Sequence[Sequence[str]],
    options: SearchOptions,
    *,
    max_source_tokens: int,
    token_budget: int = 8192,
    progress: Callable[[int], None] = lambda done: None,
) -> list[str]:
    """The best hypothesis of every line, as text.

    Args:
        graphs: the model.
        vocabularies: one per source, and the target's.
        lines: one list of lines per source, parallel. A line is decoded whole, as one sentence; an empty one stays so.
        options: of the search.
        max_source_tokens: longer lines are cut there (EOS included).
        token_budget: rows x source length of a batch.
        progress: called with the number of lines just finished.
    """
    sources, target = vocabularies
    columns = [encode_lines(v, column, max_source_tokens) for v, column in zip(sources, lines, strict=True)]
    wanted = [index for index in range(len(lines[0])) if any(column[index].strip() for column in lines)]
    texts = [""] * len(lines[0])
    chunk = 2048  # bounds memory; sorting by length within it leaves little padding
    for start in range(0, len(wanted), chunk):
        part = wanted[start : start + chunk]
        batch = [tuple(column[index] for column in columns) for index in part]
        found: list[list[Hypothesis]] = translate_batch(graphs, batch, options, token_budget=token_budget)
        for index, hypotheses in zip(part, found, strict=True):
            texts[index] = target.decode(hypotheses[0].tokens) if hypotheses else ""
        progress(len(part))
    return texts
