"""A line as a text: split into sentences, translated, and put together, as ``POST /translate`` would answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tandem.extras.bulk.lines import Field, LineReading
from tandem.models.bundle import Bundle
from tandem.models.search import Hypothesis, SearchOptions
from tandem.models.text import normalise
from tandem.service.bundles.served import ServedModel, Tokeniser
from tandem.service.text.layout import Document
from tandem.service.text.loops import cut_loops


class TextReader:
    """A line is a text in one language: sentences, and layout that comes back as it was.

    No sentence is too long: what the model cannot read at once is divided further, and nothing is left out.
    """

    def __init__(self, bundle: Bundle, language: str, search: SearchOptions) -> None:
        """
        Args:
            bundle: translates one text.
            language: of the lines.
            search: how to decode; tokens that the service never writes uninvited are suppressed here, too.
        """
        self._model, self._language = ServedModel.of(bundle), language
        self.options = replace(self._model.options, beam_size=search.beam_size)

    def read(self, fields: Sequence[Field]) -> LineReading:
        """A line; without a letter it stays as it is."""
        (text,) = map(str, fields)
        model, tokens = self._model, Tokeniser(self._model)
        on_one_line = normalise(text).replace("\n", " ")
        document = Document.parse(on_one_line, self._language, model.target, model.limit, tokens.measure)
        pieces = [piece.text for piece in document.sentences]
        sentences = [(np.array(tokens.ids(piece), np.int64),) for piece in pieces]

        def write(hypotheses: Sequence[Hypothesis]) -> str:
            lines = [self._sentence(*pair) for pair in zip(pieces, hypotheses, strict=True)]
            return document.join(lines)[0] if pieces else text

        return LineReading(sentences, write)

    def _sentence(self, source: str, hypothesis: Hypothesis) -> str:
        return cut_loops(self._model.decode(hypothesis, (source,)), source)[0]
