"""The work that is measured: lengths, pseudo-text with those lengths, batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.laboratory import workload
from tandem.extras.loadtest.texts import TextWriter
from tandem.models.errors import ConfigError
from tandem.models.text import normalise
from tandem.models.vocabulary import SentencePieceVocabulary, Vocabulary, WordVocabulary
from tests.shipped import SHIPPED


@pytest.fixture(scope="module")
def shipped() -> Vocabulary:
    return SentencePieceVocabulary.load(SHIPPED / "source.model")


def test_lengths_are_those_of_the_workload() -> None:
    """Log-normal: the logarithms have the mean and deviation asked for, and few are clipped."""
    drawn = workload.lengths(20_000)
    assert drawn.dtype == np.int64
    assert (drawn.min(), drawn.max()) == (3, 100)
    logarithms = np.log(drawn)
    assert logarithms.mean() == pytest.approx(np.log(23) - 0.18, abs=0.02)
    assert logarithms.std() == pytest.approx(0.6, abs=0.02)
    assert drawn.mean() == pytest.approx(23, abs=0.5)


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_load_tests_have_texts_of_these_lengths(language: str) -> None:
    """As a model counts them that reads the language."""
    vocabulary = SentencePieceVocabulary.load(SHIPPED / "source.model")
    writer = TextWriter.of(language, "lengths")
    tokens = np.array([len(vocabulary.encode(normalise(writer.sentence()))) for _ in range(3000)])
    wanted = workload.lengths(3000)
    assert tokens.mean() == pytest.approx(wanted.mean(), rel=0.05)
    assert np.log(tokens).std() == pytest.approx(np.log(wanted).std(), abs=0.06)


@given(count=st.integers(1, 50), seed=st.integers(0, 1000))
def test_lengths_depend_on_the_seed_alone(count: int, seed: int) -> None:
    first = workload.lengths(count, seed)
    assert (first == workload.lengths(count, seed)).all()
    assert len(first) == count
    assert (workload.lengths(count + 7, seed)[:count] == first).all()


def test_texts_have_the_lengths(shipped: Vocabulary) -> None:
    for vocabulary in (shipped, WordVocabulary(["haus", "maus", "x1", "läuft"])):
        written = workload.texts(vocabulary, 200, seed=3)
        assert [len(vocabulary.encode(text)) for text in written] == workload.lengths(200, 3).tolist()
        assert vocabulary.unk not in {token for text in written for token in vocabulary.encode(text)}


def test_a_vocabulary_without_words_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2 pieces that are whole words"):
        workload.texts(WordVocabulary(["only", "12", "-"]), 3)


@given(tokens=st.lists(st.integers(1, 120), min_size=1, max_size=90), size=st.integers(1, 40), forced=st.booleans())
def test_batches_are_cut_from_sorted_lengths(tokens: list[int], size: int, forced: bool) -> None:
    made = workload.batches(tokens, size, forced=forced)
    assert sorted(index for batch in made for index in batch.indices) == list(range(len(tokens)))
    assert sorted(len(batch.indices) for batch in made)[1:] == [size] * (len(made) - 1)
    own = sorted(sorted(tokens[index] for index in batch.indices) for batch in made)
    assert [length for batch in own for length in batch] == sorted(tokens)
    for batch in made:
        mean = np.mean([tokens[index] for index in batch.indices])
        assert batch.target == max(1, round(float(mean))) if forced else batch.target is None


def test_batches_come_in_a_fixed_order_that_is_not_that_of_length() -> None:
    tokens = workload.lengths(640).tolist()
    made = workload.batches(tokens, 32, forced=True)
    assert made == workload.batches(tokens, 32, forced=True)
    targets = [batch.target or 0 for batch in made]
    assert targets not in (sorted(targets), sorted(targets, reverse=True))


@given(tokens=st.lists(st.integers(1, 120), min_size=1, max_size=200), count=st.integers(1, 60))
def test_a_sample_is_spread_over_the_lengths(tokens: list[int], count: int) -> None:
    chosen = workload.sample(tokens, count)
    assert len(chosen) == len(set(chosen)) == min(count, len(tokens))
    found, ordered = [tokens[index] for index in chosen], sorted(tokens)
    assert found == sorted(found)
    for place, length in enumerate(found):  # each comes from its own share of the sorted lengths
        low, high = (int(np.floor((place + part) * len(ordered) / len(found))) for part in (0, 1))
        assert ordered[low] <= length <= ordered[min(high, len(ordered) - 1)]
