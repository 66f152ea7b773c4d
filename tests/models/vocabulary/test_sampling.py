"""BPE dropout by sentencepiece: the same text in other pieces, as its arguments say and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from models.errors import VocabularyError
from models.vocabulary import SentencePieceVocabulary, train_sentencepiece
from models.vocabulary.pieces import MOST_SEED

LINES = ["the station of the town", "nobody knows why the train is late", "stations and trains"] * 20
TEXTS = ["the station is late", "nobody of ⟨ph3⟩ knows", "spelt ▁ and ⟨de⟩", "", "ünknöwn 漢字", "stations " * 20]


@pytest.fixture(scope="module")
def vocabulary() -> SentencePieceVocabulary:
    return train_sentencepiece(LINES, size=370, languages=("de",), seed=1)


def sampled(vocabulary: SentencePieceVocabulary, texts: Sequence[str] = TEXTS, seed: int = 5) -> list[list[int]]:
    return vocabulary.sample(texts, dropout=0.3, seed=seed)


def test_without_dropout_it_is_encode(vocabulary: SentencePieceVocabulary) -> None:
    assert vocabulary.sample(TEXTS, dropout=0.0, seed=1) == [vocabulary.encode(text) for text in TEXTS]
    marked = vocabulary.sample(TEXTS, dropout=0.0, seed=1, reserved=range(len(TEXTS)))
    assert marked == [vocabulary.encode(text, reserved=True) for text in TEXTS]
    assert vocabulary.sample([], dropout=0.5, seed=1) == []


def test_the_text_stays_the_pieces_do_not(vocabulary: SentencePieceVocabulary) -> None:
    found = sampled(vocabulary)
    assert [vocabulary.decode(ids) for ids in found] == TEXTS
    assert vocabulary.decode_many([ids for ids in found if ids]) == [text for text in TEXTS if text]
    assert len(found[5]) > len(vocabulary.encode(TEXTS[5]))
    assert not set(found[1]) & set(vocabulary.placeholders), "what was typed is spelt"
    (whole,) = vocabulary.sample(TEXTS[1:2], dropout=0.9, seed=2, reserved=[0])
    assert vocabulary.placeholders[3] in whole


def test_the_seed_decides_and_nothing_that_was_drawn_before(vocabulary: SentencePieceVocabulary) -> None:
    first = sampled(vocabulary)
    assert sampled(vocabulary, seed=6) != first
    sampled(vocabulary, ["something else"], seed=9)
    assert sampled(vocabulary) == first
    assert sampled(SentencePieceVocabulary(vocabulary.to_bytes())) == first


def test_threads_do_not_disturb_each_other(vocabulary: SentencePieceVocabulary) -> None:
    expected = {seed: sampled(vocabulary, seed=seed) for seed in range(4)}
    found: dict[int, list[list[list[int]]]] = {seed: [] for seed in range(4)}

    def draw(seed: int) -> None:
        found[seed] += [sampled(vocabulary, seed=seed) for _ in range(40)]

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == expected[seed] for seed, several in found.items() for one in several)


def test_seeds_and_merges(vocabulary: SentencePieceVocabulary) -> None:
    vocabulary.sample(["a"], dropout=0.1, seed=MOST_SEED)
    with pytest.raises(VocabularyError, match=f"0 to {MOST_SEED}, but is -1"):
        vocabulary.sample(["a"], dropout=0.1, seed=-1)
    assert vocabulary.has_merges
    unigram = train_sentencepiece(LINES, size=300, model_type="unigram", languages=(), seed=1)
    assert not unigram.has_merges
