"""Word alignment on text whose translations are known."""

from __future__ import annotations

import numpy as np
import pytest

from models.dictionary import Dictionary
from training.data import dictionary as module
from training.data.dictionary import aligned_words, build_dictionary

LEXICON = {f"wort{n}": f"word{n}" for n in range(40)}


def bitext(lines: int = 300, seed: int = 1) -> tuple[list[str], list[str]]:
    """Random words and their translations in another order, with names that are the same on both sides."""
    rng = np.random.default_rng(seed)
    source, target = [], []
    for number in range(lines):
        words = rng.choice(list(LEXICON), size=rng.integers(1, 8)).tolist()
        name = [f"Name{number % 50}"] * int(rng.integers(0, 2))
        source.append(" ".join([*words, *name]))
        target.append(" ".join(rng.permutation([LEXICON[word] for word in words] + name + ["the"]).tolist()))
    return source, target


def test_every_word_finds_its_translation() -> None:
    found = aligned_words(*bitext(), seed=1)
    assert found == LEXICON  # names are copied anyway, and nothing is aligned to the article


def test_the_same_text_gives_the_same_dictionary_in_chunks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = aligned_words(*bitext(), seed=1)
    monkeypatch.setattr(module, "CHUNK_CELLS", 100)
    assert aligned_words(*bitext(), seed=1) == whole


def test_model_1_is_the_textbooks() -> None:
    """Probabilities after one step of expectation maximisation, by hand, with NULL as one more source word."""
    numbers = np.array([0, 1]), np.array([0])
    text = module._Bitext.of([numbers[0], numbers[1]], [np.array([0, 1]), np.array([0])], 2)
    first, second = text.train(0), text.train(1)
    probabilities: dict[tuple[int, int], float] = dict.fromkeys([(0, 0), (0, 1), (1, 0), (1, 1)], 1.0)
    null = [1.0, 1.0]
    for _ in range(module.ITERATIONS):
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


def test_words_that_are_linked_once_are_left_to_copying() -> None:
    source, target = bitext()
    assert "einmal" not in aligned_words([*source, "einmal"], [*target, "once"], seed=1)
    assert aligned_words([*source, *["zweimal"] * 2], [*target, *["twice"] * 2], seed=1)["zweimal"] == "twice"


def test_of_large_text_some_sentences_are_used() -> None:
    source, target = bitext(lines=1000)
    few = aligned_words(source, target, seed=1, most_cells=400)
    assert 0 < len(few) < len(LEXICON)
    assert few == aligned_words(source, target, seed=1, most_cells=400)
    assert sum(LEXICON.get(word) == translation for word, translation in few.items()) > len(few) / 2


def test_text_without_pairs_gives_nothing() -> None:
    assert aligned_words([], [], seed=1) == {}
    assert aligned_words(["", "a"], ["b", ""], seed=1) == {}


def test_sources_in_the_targets_language_have_none() -> None:
    source, target = bitext()
    found = build_dictionary([target, source, target], ("en", "de", "en"), seed=1)
    assert found == Dictionary(({}, LEXICON))
