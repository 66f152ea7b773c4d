"""A line as a text: split into sentences, translated, and put together, as ``POST /translate`` would answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deploy.bulk.forms import Sources, plain
from deploy.bulk.records import Field, Finding
from models.bundle import Bundle
from models.search import Hypothesis, SearchOptions
from service.bundles.served import ServedModel, Tokeniser
from service.text import Document
from service.text.loops import cut_loops


class TextForm:
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

    def read(self, fields: Sequence[Field]) -> TextDraft:
        """A line; without a letter it stays as it is."""
        (text,) = map(str, fields)
        model, tokens = self._model, Tokeniser(self._model)
        document = Document.parse(plain(text), self._language, model.target, model.limit, tokens.measure)
        ids = tuple((np.array(tokens.ids(piece.text), np.int64),) for piece in document.sentences)
        return TextDraft(model, text, document, ids)


@dataclass(frozen=True, slots=True, eq=False)
class TextDraft:
    """A text in sentences."""

    model: ServedModel
    text: str
    document: Document
    sentences: tuple[Sources, ...]
    findings: tuple[Finding, ...] = ()

    def write(self, hypotheses: Sequence[Hypothesis]) -> str:
        """The translations in the sentences' places."""
        if not self.sentences:
            return self.text
        pairs = zip(self.document.sentences, hypotheses, strict=True)
        return self.document.join([self._line(piece.text, hypothesis) for piece, hypothesis in pairs])[0]

    def _line(self, sentence: str, hypothesis: Hypothesis) -> str:
        return cut_loops(self.model.decode(hypothesis, (sentence,)), sentence)[0]
