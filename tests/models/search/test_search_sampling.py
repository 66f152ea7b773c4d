"""Sampling: reproducible, cut where asked, and drawn from the model's distribution."""

from __future__ import annotations

import numpy as np
import pytest

from tandem.models.search import Sampling, SearchOptions, translate_batch
from tandem.models.search.sampling import log_sum_exp, pick
from tests.models.search.tables import EOS, TableGraphs, hashed, log_softmax, source

LOGITS = np.log(np.array([0.05, 0.4, 0.05, 0.3, 0.2]))


def drawn(sampling: Sampling) -> np.ndarray:
    grid = (np.arange(2000) + 0.5) / 2000
    return np.bincount([pick(LOGITS, sampling, float(u)) for u in grid], minlength=5) / 2000


def test_shares_are_the_probabilities() -> None:
    assert drawn(Sampling()) == pytest.approx([0.05, 0.4, 0.05, 0.3, 0.2], abs=1e-3)


def test_temperature_sharpens() -> None:
    share = np.exp(LOGITS / 0.5)
    assert drawn(Sampling(temperature=0.5)) == pytest.approx(share / share.sum(), abs=1e-3)


def test_top_k_and_top_p_cut() -> None:
    assert drawn(Sampling(top_k=2)) == pytest.approx([0, 4 / 7, 0, 3 / 7, 0], abs=1e-3)
    assert drawn(Sampling(top_p=0.65)) == pytest.approx([0, 4 / 7, 0, 3 / 7, 0], abs=1e-3)
    assert drawn(Sampling(top_p=0.8)) == pytest.approx([0, 4 / 9, 0, 3 / 9, 2 / 9], abs=1e-3)
    assert drawn(Sampling(top_k=1)).tolist() == [0, 1, 0, 0, 0]
    assert drawn(Sampling(top_p=1e-6)).tolist() == [0, 1, 0, 0, 0]


def test_what_is_banned_is_never_drawn() -> None:
    banned = np.array([-np.inf, 0.0, -np.inf, -np.inf, 0.0])
    assert {pick(banned, Sampling(), u) for u in (0.0, 0.3, 0.6, 0.999999999, 1.0)} == {1, 4}


@pytest.mark.parametrize("state", ["pool", "rows"])
def test_samples_are_reproducible_and_seeds_differ(state: str) -> None:
    graphs = TableGraphs(hashed(9, 3), 9, state)

    def sample(seed: int) -> list[tuple[int, ...]]:
        options = SearchOptions(beam_size=4, n_best=4, max_length=10, min_length=3, sampling=Sampling(seed=seed))
        return [one.tokens for one in translate_batch(graphs, [source(4, 5)], options)[0]]

    assert sample(1) == sample(1)
    assert len({tuple(sample(seed)) for seed in range(5)}) == 5
    assert len(set(sample(1))) > 1


def test_scores_are_the_models_own_and_bounds_hold() -> None:
    table = hashed(9, 3)
    options = SearchOptions(
        beam_size=5, n_best=5, max_length=6, min_length=4, suppressed=(0, 1, 2), prefix=(7,), no_repeat_ngram_size=2,
        sampling=Sampling(temperature=3.0, seed=5),
    )  # fmt: skip
    for one in translate_batch(TableGraphs(table, 9), [source(4, 5)], options)[0]:
        steps = [log_softmax(table(((4, 5),), one.tokens[:at]))[token] for at, token in enumerate((*one.tokens, EOS))]
        assert one.token_scores == pytest.approx([float(step) for step in steps], abs=1e-5)
        assert one.tokens[0] == 7 and 4 <= len(one.tokens) <= 6 and not {0, 1, 2} & set(one.tokens)
        pairs = list(zip(one.tokens, one.tokens[1:], strict=False))
        assert len(pairs) == len(set(pairs))


def test_top_k_of_one_is_greedy() -> None:
    graphs = TableGraphs(hashed(9, 3), 9)
    sampled = SearchOptions(beam_size=1, max_length=10, sampling=Sampling(top_k=1))
    greedy = SearchOptions(beam_size=1, max_length=10)
    (a,), (b,) = (translate_batch(graphs, [source(4, 5)], options)[0] for options in (sampled, greedy))
    assert a.tokens == b.tokens and a.score == pytest.approx(b.score, abs=1e-5)


def test_log_sum_exp_shows_every_bad_row() -> None:
    logits = np.array([[0.0, 0.0], [1000.0, 1000.0], [np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]], np.float32)
    assert np.isfinite(log_sum_exp(logits)).tolist() == [True, True, False, False, False]
