"""What an imported model is compared by: ids on both sides, logits, hypotheses, and text of every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tandem.extras.importing.model import ForeignModel
from tandem.extras.proofs.proof import Judge
from tandem.extras.proofs.verdicts import STANDARD
from tandem.models.architectures.protocol import Padded
from tandem.models.architectures.transformer import Transformer
from tandem.models.search import SearchOptions, translate_batch
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.vocabulary import BOS, EOS

Array = np.ndarray[Any, Any]


def rows(model: ForeignModel) -> list[int]:
    """Their id of each of ours."""
    made = model.plan["target_embedding"].rows
    assert made is not None
    return list(made)


def sentences(model: ForeignModel, count: int, *, seed: int = 1, longest: int = 12) -> list[list[int]]:
    """Random sources in our ids."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, size=count)
    return [[*rng.integers(4, model.source.size, size=length).tolist(), EOS] for length in lengths]


def logits(model: Transformer, source: Sequence[int], target: Sequence[int]) -> np.ndarray[Any, Any]:
    memory = model.encode((Padded(torch.tensor([source]), torch.tensor([len(source)])),))
    with torch.inference_mode():
        return model.score(torch.tensor([target]), memory)[0].numpy()


def assert_logits(
    model: ForeignModel, ours: Transformer, theirs: Callable[[list[int], list[int]], Array], count: int
) -> None:
    """The logits of random pairs are those that ``theirs`` gives of their ids, in all types that we share."""
    known = rows(model)
    kept = [token for token, row in enumerate(known) if token != BOS and row >= 0]
    for source in sentences(model, count):
        target = [BOS, *sentences(model, 1, seed=len(source))[0][:-1]]
        found = logits(ours, source, target)
        expected = theirs([known[one] for one in source], [known[one] for one in target])
        np.testing.assert_allclose(found[:, kept], expected[:, [known[token] for token in kept]], atol=1e-4, rtol=0)
        assert (found[:, BOS] < found.max() - 60).all()  # never written


def library_logits(published: Any) -> Callable[[list[int], list[int]], Array]:
    """Those of a model of the library."""

    @torch.inference_mode()
    def found(source: list[int], target: list[int]) -> Array:
        given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([target])}
        array: Array = published(**given).logits[0].numpy()
        return array

    return found


def assert_generates(
    model: ForeignModel, ours: Transformer, published: Any, options: SearchOptions, count: int, **settings: Any
) -> None:
    """The best hypothesis of each of some random sources is that of ``generate``.

    Those that reach the longest length are left out: there the library counts the end as certain, or leaves it out.
    """
    known = rows(model)
    sources = sentences(model, count)
    found = translate_batch(TorchGraphs(ours), [(np.array(source),) for source in sources], options)
    lengths, ties, judge = [], 0, Judge(ours)
    settings |= {"num_beams": options.beam_size, "early_stopping": True, "max_length": options.max_length + 2}
    settings |= {"length_penalty": options.length_penalty, "no_repeat_ngram_size": options.no_repeat_ngram_size}
    settings["min_length"] = options.min_length + 1  # theirs counts what decoding begins with
    for source, (best,) in zip(sources, found, strict=True):
        ids = torch.tensor([[known[one] for one in source]])
        expected = published.generate(ids, **settings)[0, 1:].tolist()
        expected = expected[: expected.index(known[EOS])] if known[EOS] in expected else expected
        if len(expected) < options.max_length:
            if [known[one] for one in best.tokens] != expected:  # a tie within rounding is all that may be
                other = replace(best, tokens=tuple(known.index(token) for token in expected))
                scores = [judge.ranked((np.array(source),), one, options) for one in (best, other)]
                assert abs(scores[0] - scores[1]) < STANDARD.gap
                ties += 1
            lengths.append(len(expected))
    assert ties <= 1
    assert len(lengths) > count / 2 and len(set(lengths)) > 2, lengths
