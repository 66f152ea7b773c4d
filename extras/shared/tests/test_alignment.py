"""IBM Model 1 against the textbook, and which sentence pairs it is given."""

from __future__ import annotations

import numpy as np
import pytest

from tandem.extras.shared import alignment
from tandem.extras.shared.alignment import ITERATIONS, Bitext, sample_pairs


def test_model_1_is_the_textbooks() -> None:
    """Probabilities after one step of expectation maximisation, by hand, with NULL as one more source word."""
    numbers = np.array([0, 1]), np.array([0])
    text = Bitext.of([numbers[0], numbers[1]], [np.array([0, 1]), np.array([0])], 2)
    first, second = text.train(0), text.train(1)
    probabilities: dict[tuple[int, int], float] = dict.fromkeys([(0, 0), (0, 1), (1, 0), (1, 1)], 1.0)
    null = [1.0, 1.0]
    for _ in range(ITERATIONS):
        counts, nulls = dict.fromkeys(probabilities, 0.0), [0.0, 0.0]
        for source, target in (((0, 1), (0, 1)), ((0,), (0,))):
            for t in target:
                total = null[t] + sum(probabilities[s, t] for s in source)
                nulls[t] += null[t] / total
                for s in source:
                    counts[s, t] += probabilities[s, t] / total
        mass = [counts[s, 0] + counts[s, 1] for s in (0, 1)]
        probabilities = {(s, t): count / mass[s] for (s, t), count in counts.items()}
        null = [one / sum(nulls) for one in nulls]
    np.testing.assert_allclose(first.pair_P, [probabilities[key] for key in sorted(probabilities)])
    np.testing.assert_allclose(first.null, null)
    swapped = [second.pair_P[i] for i in (0, 2, 1, 3)]  # the text is the same read from either side
    np.testing.assert_allclose(swapped, first.pair_P)


def test_pairs_know_their_words() -> None:
    text = Bitext.of([np.array([4, 2]), np.array([4])], [np.array([1, 0]), np.array([3])], 5)
    pairs = set(zip(*(words.tolist() for words in text.words_P), strict=True))
    assert pairs == {(4, 1), (4, 0), (2, 1), (2, 0), (4, 3)}


def test_large_text_is_sampled_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.random.default_rng(1).integers(1, 50, 200)
    assert sample_pairs(cells, seed=1) == list(range(200))
    monkeypatch.setattr(alignment, "MOST_CELLS", 1000)
    chosen = sample_pairs(cells, seed=1)
    assert 900 < cells[chosen].sum() <= 1000
    assert chosen == sorted(set(chosen)) == sample_pairs(cells, seed=1)
    assert chosen != sample_pairs(cells, seed=2)
    assert cells[chosen].mean() < 0.8 * cells.mean() < cells[chosen].max(), "rather short pairs, but not these alone"
