"""What a model looks at in the sentences that a validation shows: their attention, and a picture of it.

Shape suffixes: T target positions (EOS included), S source positions (EOS included), H and W pixels.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.models.search import Failed, OfflineDecoder
from tandem.models.search.graphs import Array
from tandem.models.search.offline import NBest
from tandem.models.translation.translator import Column, encode_columns
from tandem.models.vocabulary import EOS, Vocabulary

_LONGEST = 60  # symbols drawn of a side
_CELL = 0.2  # inches of a symbol
_DPI = 100


@dataclass(frozen=True, slots=True, eq=False)
class SeenSource:
    """What was looked at in one source while a sentence was written.

    Attributes:
        rows: the symbols that were predicted, EOS last.
        columns: those of the source; numbers where it is of features.
        weights_TS: of each row the weights of the columns, the mean over layers.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights_TS: Array


def seen_sources(
    decoder: OfflineDecoder,
    vocabularies: tuple[Sequence[Vocabulary | None], Vocabulary],
    columns: Sequence[Column],
    max_source_tokens: int,
) -> list[tuple[SeenSource, ...]]:
    """For each sentence what was looked at in each source; nothing where the model has no ``align`` graph.

    Args:
        decoder: of the model; it decodes the sentences once more.
        vocabularies: one per source (None for feature matrices), and the target's.
        columns: one list of lines, or of feature matrices, per source, parallel.
        max_source_tokens: longer lines are cut there (EOS included).
    """
    if "align" not in decoder.graphs.specs:
        return [()] * len(columns[-1])
    sources, target = vocabularies
    decoder = replace(decoder, options=replace(decoder.options, attention=True))
    encoded = list(zip(*encode_columns(sources, columns, max_source_tokens), strict=True))
    outcomes = decoder.decode(encoded)
    return [tuple(_seen(found, one, sources, target)) for found, one in zip(outcomes, encoded, strict=True)]


def _seen(
    found: NBest, encoded: Sequence[Array], sources: Sequence[Vocabulary | None], target: Vocabulary
) -> Iterator[SeenSource]:
    if isinstance(found, Failed):
        return
    rows = tuple(target.piece_of(token) for token in (*found[0].tokens, EOS))
    for vocabulary, one, weights_TS in zip(sources, encoded, found[0].attention or (), strict=True):
        numbers = range(len(one))
        names = map(str, numbers) if vocabulary is None else (vocabulary.piece_of(int(one[n])) for n in numbers)
        yield SeenSource(rows, tuple(names), weights_TS)


def picture(seen: Sequence[SeenSource]) -> NDArray[np.uint8]:
    """H x W x 3: the sources of a sentence side by side, darker where more of the weight lies."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # here: who draws nothing needs none of it
    from matplotlib.figure import Figure

    widths = [min(len(one.columns), _LONGEST) for one in seen]
    height = min(len(seen[0].rows), _LONGEST)
    size = (1.2 * len(seen) + _CELL * sum(widths), 1.2 + _CELL * height)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)  # whose methods have no types
    axes = figure.subplots(1, len(seen), squeeze=False, width_ratios=widths)[0]
    for own, one in zip(axes, seen, strict=True):
        _draw(own, one)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a script that the font has not is drawn as boxes
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _draw(axes: Any, seen: SeenSource) -> None:
    rows, columns = seen.rows[:_LONGEST], seen.columns[:_LONGEST]
    weights_TS = seen.weights_TS[:_LONGEST, :_LONGEST]
    axes.imshow(weights_TS, cmap="Greys", vmin=0.0, vmax=float(weights_TS.max()), aspect="auto")
    axes.set_xticks(range(len(columns)), [_shown(one) for one in columns], rotation=90)
    axes.set_yticks(range(len(rows)), [_shown(one) for one in rows])
    axes.tick_params(labelsize=7)


def _shown(piece: str) -> str:
    """A piece as drawn: a dollar sign would begin a formula."""
    return piece.replace("$", r"\$")
