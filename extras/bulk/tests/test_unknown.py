"""Words that a bundle's vocabulary has not: replaced or kept, as the bundle says or as is asked."""

from __future__ import annotations

import pytest

from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.search import SearchOptions
from tandem.models.vocabulary import EOS, UNK
from tests.deploy.small import VOCABULARY, Make, make

__all__ = ["make"]
UNKNOWN = SearchOptions(
    beam_size=1, max_length=1, min_length=1, suppressed=tuple(set(range(VOCABULARY.size)) - {UNK, EOS})
)
"""Of a model that writes one unknown word, whatever it reads."""


@pytest.mark.parametrize("sentences", [True, False], ids=["sentences", "segments"])
@pytest.mark.parametrize(
    ("told", "asked", "written"),
    [(False, None, b"b"), (False, True, b"<unk>"), (True, None, b"<unk>"), (True, False, b"b")],
)
def test_unknown_words(make: Make, sentences: bool, told: bool, asked: bool | None, written: bytes) -> None:
    path = make("one", "de", decoding=UNKNOWN, keep_unknown=told)
    translator = BulkTranslator(path, BulkOptions("torch", "float32", sentences=sentences, keep_unknown=asked))
    assert [one.data for one in translator.translate_block(["b b b"])] == [written]
    assert translator.settled.keep_unknown == (written == b"<unk>")
    translator.close()
