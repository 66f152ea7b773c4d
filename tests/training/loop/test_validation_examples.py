"""What a model looks at in the sentences that a validation shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tandem.models.search import Graphs, Hypothesis, OfflineDecoder, SearchOptions
from tandem.models.search.align import align
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.translation.translator import Column, encode_lines
from tandem.models.vocabulary import WordVocabulary
from tandem.training.data.dataset import load_sources
from tandem.training.loop.validation import TextValidator, seen_sources
from tests.training.toy import DATA, toy_recipe, toy_trainer

WORDS = WordVocabulary(["a", "b", "c"])


def test_each_symbol_has_the_attention_that_it_was_predicted_with(prepared: Path) -> None:
    """That of the ``align`` graph for what the model itself writes."""
    model = toy_trainer(toy_recipe(), prepared, prepared).model.eval()
    recipe = toy_recipe(validation_sentences=12, data=replace(DATA, keep_unknown=True))
    shown = TextValidator(recipe, prepared)(model).examples
    assert len(shown) == 5
    (vocabulary,), target = load_sources(prepared)
    assert vocabulary is not None
    for one in shown:
        (seen,) = one.seen
        (ids,) = encode_lines(vocabulary, [one.source], 99)
        assert seen.columns == tuple(vocabulary.piece_of(int(token)) for token in ids)
        assert seen.rows[-1] == seen.columns[-1] == "</s>"
        tokens = tuple(target.id_of(piece) for piece in seen.rows[:-1])
        assert target.decode(tokens) == one.translation
        ((expected,),) = align(TorchGraphs(model), [(ids,)], [[tokens]])
        np.testing.assert_allclose(seen.weights_TS, expected[0], atol=1e-6)
        np.testing.assert_allclose(seen.weights_TS.sum(axis=1), 1.0, atol=1e-5)


def test_sources_of_features_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.full((2, 3), 1 / 3, np.float32), np.array([[0.5, 0.5], [1.0, 0.0]], np.float32)
    asked: list[SearchOptions] = []

    def decode(decoder: OfflineDecoder, sources: Iterable[Any]) -> Iterator[tuple[Hypothesis]]:
        asked.append(decoder.options)
        return ((Hypothesis((WORDS.id_of("c"),), -1.0, -1.0, True, (), weights),) for _ in sources)

    monkeypatch.setattr(OfflineDecoder, "decode", decode)
    graphs = cast(Graphs, SimpleNamespace(specs={"align": None}))
    columns: list[Column] = [[np.zeros((3, 7), np.float32)], ["b"]]
    ((image, text),) = seen_sources(OfflineDecoder(graphs, SearchOptions()), ((None, WORDS), WORDS), columns, 9)
    assert asked == [SearchOptions(attention=True)]
    assert (image.rows, image.columns) == (("c", "</s>"), ("0", "1", "2"))
    assert (text.rows, text.columns) == (("c", "</s>"), ("b", "</s>"))
    assert text.weights_TS is weights[1]


def test_a_model_that_tells_no_attention_has_no_picture() -> None:
    decoder = OfflineDecoder(cast(Graphs, SimpleNamespace(specs={})), SearchOptions())
    assert seen_sources(decoder, ((WORDS,), WORDS), [["a", "b"]], 9) == [(), ()]
