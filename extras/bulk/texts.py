"""A line as a text: translated as ``POST /translate`` would answer it, by the same code."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import finalize

from tandem.extras.bulk.lines import Field, LineFinding, Written
from tandem.extras.bulk.options import BulkOptions
from tandem.models.bundle import Bundle
from tandem.models.errors import DeviceLost, TandemError
from tandem.models.search import Graphs
from tandem.service.bundles.loading import OpenBundle
from tandem.service.translation.requests import TranslateTask


class TextTranslator:
    """Lines are texts in one language. None is too long: what the model cannot read at once is divided further."""

    def __init__(self, bundle: Bundle, graphs: Graphs, options: BulkOptions) -> None:
        """
        Args:
            bundle: translates one text, in one direction.
            graphs: its graphs.
            options: settled.
        """
        opened = [OpenBundle(bundle, graphs, options.backend)]
        self._service = options.local_service(opened, shortlist=bool(options.shortlist))
        finalize(self, self._service.close).atexit = False  # its threads end with whoever forgets to close it
        self._options, self._target = options, bundle.manifest.target_language

    def translate(self, rows: Sequence[Sequence[Field]]) -> list[Written]:
        """Lines, of one field each. One that fails costs itself only. Raises DeviceLost."""
        return self._texts([str(text) for (text,) in rows])

    def close(self) -> None:
        self._service.close()

    def _texts(self, texts: Sequence[str]) -> list[Written]:
        options = self._options
        request = TranslateTask(q=texts, source=options.language, target=self._target, beam_size=options.beam_size)
        try:
            return [Written(one.text) for one in self._service.translate(request).texts]
        except DeviceLost:
            raise
        except TandemError as error:
            if len(texts) > 1:
                return [one for text in texts for one in self._texts([text])]
            return [Written(None, (LineFinding("decoding_failed", f"the model failed: {error.__cause__ or error}"),))]
