"""What holds of every ``Batch`` over a model, whichever search is behind it.

A module that tests one parametrises a test over ``PROMISES``, and hands each what starts an empty batch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
import torch

from tandem.models.errors import OptionError
from tandem.models.search import Array, Batch, DecodeBatch, Hypothesis, SearchOptions, Sentence, SentenceError
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.models.architectures.examples import EOS, AnyModel, Case
from tests.models.search.tables import assert_same_hypotheses, run_out

Start: TypeAlias = Callable[[AnyModel, int], Batch]
"""An empty batch over a model, of a beam size."""
BAD, BEAM = 7, 3  # a token that the model cannot read, and the beam size
FREE = SearchOptions(beam_size=BEAM, n_best=BEAM, max_length=8, suppressed=(BAD,))
TEXTS = ((5, 6), (6, 4, 8), (4,), (8, 8, 5, 6))


def small_model() -> AnyModel:
    """Weights are drawn wide, so that hypotheses differ in length."""
    model = Case("convs2s", "plain").build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.3)
        model.get_parameter("target_embedding")[BAD] = torch.nan
    model.prepare_for_inference()
    return model


def source(tokens: Sequence[int]) -> tuple[Array, ...]:
    return (np.array([*tokens, EOS], np.int64),)


def a_sentence_has_what_it_has_alone(start: Start) -> None:
    """Whoever joins late, leaves or is joined again; each ends at a bound of its own."""
    model = small_model()
    texts = [Sentence(n, source(text), replace(FREE, max_length=3 + 2 * n)) for n, text in enumerate(TEXTS)]
    expected: dict[Hashable, tuple[Hypothesis, ...]] = {}
    for one in texts:
        general = DecodeBatch(TorchGraphs(model), beam_size=BEAM)
        general.join([one])
        expected |= run_out(general)
    batch = start(model, BEAM)
    batch.join(texts[:2])
    found = {one.id: one.hypotheses for one in batch.step()}
    batch.join(texts[2:])
    batch.remove([1, "nobody"])
    assert 1 not in batch.ids and len(batch) == 3 - len(found)
    batch.join([texts[1]])
    found |= run_out(batch)
    assert found.keys() == expected.keys()
    assert_same_hypotheses([found[name] for name in expected], list(expected.values()))


def an_empty_batch_does_nothing(start: Start) -> None:
    batch = start(small_model(), BEAM)
    batch.remove(["nobody"])
    batch.join([])
    assert (len(batch), batch.ids, batch.rows, batch.step()) == (0, (), 0, [])
    batch.join([Sentence("a", source(TEXTS[0]), FREE)])
    assert list(batch.ids) == ["a"] and len(batch) == 1
    run_out(batch)
    assert (len(batch), batch.ids, batch.rows, batch.step()) == (0, (), 0, [])
    assert batch.counters.rows > batch.counters.dead_rows >= 0 < batch.counters.steps <= FREE.max_length + 1


def joining_is_all_or_nothing(start: Start) -> None:
    good, text = Sentence("good", source(TEXTS[0]), FREE), source(TEXTS[1])
    refused: tuple[tuple[str, Sentence], ...] = (
        ("beam_size", Sentence("bad", text, SearchOptions(beam_size=BEAM + 1))),
        ("suppressed", Sentence("bad", text, SearchOptions(beam_size=BEAM, suppressed=(99,)))),
        ("prefix", Sentence("bad", text, SearchOptions(beam_size=BEAM, prefix=(99,)))),
        ("already", Sentence("good", text, FREE)),
        ("empty", Sentence("bad", (text[0][:0],), FREE)),
        ("sources|shapes", Sentence("bad", (*text, *text), FREE)),
        ("sources|shapes", Sentence("bad", (), FREE)),
    )
    batch = start(small_model(), BEAM)
    for complaint, bad in refused:
        with pytest.raises((OptionError, ValueError), match=complaint):
            batch.join([good, bad])
        assert (len(batch), batch.ids) == (0, ())
    batch.join([good])
    with pytest.raises(ValueError, match="already"):
        batch.join([Sentence("other", text, FREE), good])
    assert set(run_out(batch)) == {"good"}


def what_is_not_finite_names_its_sentence_and_harms_no_other(start: Start) -> None:
    model = small_model()
    wrong = SearchOptions(beam_size=BEAM, max_length=8, prefix=(5, BAD))
    others = [Sentence(name, source(text), FREE) for name, text in zip("ab", TEXTS, strict=False)]
    general = DecodeBatch(TorchGraphs(model), beam_size=BEAM)
    general.join([*others, Sentence("after", source(TEXTS[0]), FREE)])
    expected, batch = run_out(general), start(model, BEAM)
    batch.join([others[0], Sentence("bad", source(TEXTS[0]), wrong), others[1]])
    with pytest.raises(SentenceError, match=r"'bad' at step 2$"):
        run_out(batch)
    for _ in range(2):  # until it is removed
        with pytest.raises(SentenceError) as raised:
            batch.step()
        assert raised.value.ids == ("bad",)
    assert set(batch.ids) >= {"bad"} and len(batch) == 3
    batch.remove(["bad"])
    batch.join([Sentence("after", source(TEXTS[0]), FREE)])  # takes the place of what was not finite
    found = run_out(batch)
    assert found.keys() == expected.keys()
    assert_same_hypotheses([found[name] for name in expected], list(expected.values()))


PROMISES: tuple[Callable[[Start], None], ...] = (
    a_sentence_has_what_it_has_alone,
    an_empty_batch_does_nothing,
    joining_is_all_or_nothing,
    what_is_not_finite_names_its_sentence_and_harms_no_other,
)
