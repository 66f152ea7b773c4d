"""BPE dropout: the same text in other pieces, as its arguments say and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.augmentation.bpe_dropout import MergeDropout
from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import SentencePieceVocabulary, train_sentencepiece

LINES = ["the station of the town", "nobody knows why the train is late", "stations and trains"] * 20
TEXTS = ["the station is late", "nobody of ⟨ph3⟩ knows", "spelt ▁ and ⟨de⟩", "", "ünknöwn 漢字", "stations " * 20]


@pytest.fixture(scope="module")
def vocabulary() -> SentencePieceVocabulary:
    return train_sentencepiece(LINES, size=370, languages=("de",), seed=1)


def drawn(vocabulary: SentencePieceVocabulary, sequences: list[list[int]], rate: float, seed: int) -> list[list[int]]:
    return MergeDropout(vocabulary).applied(sequences, rate, np.random.default_rng(seed))


def sampled(vocabulary: SentencePieceVocabulary, seed: int = 5) -> list[list[int]]:
    return drawn(vocabulary, vocabulary.encode_many(TEXTS), 0.3, seed)


def test_many_texts_are_encoded_as_each_is(vocabulary: SentencePieceVocabulary) -> None:
    assert vocabulary.encode_many(TEXTS) == [vocabulary.encode(text) for text in TEXTS]
    marked = vocabulary.encode_many(TEXTS, range(len(TEXTS)))
    assert marked == [vocabulary.encode(text, reserved=True) for text in TEXTS]
    assert vocabulary.encode_many([]) == []


def test_the_text_stays_the_pieces_do_not(vocabulary: SentencePieceVocabulary) -> None:
    found = sampled(vocabulary)
    assert [vocabulary.decode(ids) for ids in found] == TEXTS
    assert vocabulary.decode_many([ids for ids in found if ids]) == [text for text in TEXTS if text]
    assert len(found[5]) > len(vocabulary.encode(TEXTS[5]))
    assert not set(found[1]) & set(vocabulary.placeholders), "what was typed is spelt"
    (whole,) = drawn(vocabulary, vocabulary.encode_many(TEXTS[1:2], [0]), 0.9, 2)
    assert vocabulary.placeholders[3] in whole


def test_without_dropout_nothing_changes_and_with_all_of_it_only_characters_are_left(
    vocabulary: SentencePieceVocabulary,
) -> None:
    encoded = vocabulary.encode_many(TEXTS)
    assert drawn(vocabulary, encoded, 0.0, 1) == encoded
    assert drawn(vocabulary, [], 0.5, 1) == [] and drawn(vocabulary, [[], []], 0.5, 1) == [[], []]
    characters = drawn(vocabulary, vocabulary.encode_many(["stations and trains"]), 1 - 1e-12, 1)[0]
    assert "".join(map(vocabulary.piece_of, characters)) == "▁stations▁and▁trains"
    assert len(characters) == len("▁stations▁and▁trains")


def test_the_rng_decides_and_nothing_else(vocabulary: SentencePieceVocabulary) -> None:
    first = sampled(vocabulary)
    assert sampled(vocabulary, seed=6) != first
    assert sampled(SentencePieceVocabulary(vocabulary.to_bytes())) == first


def test_another_process_draws_the_same(vocabulary: SentencePieceVocabulary, tmp_path: Path) -> None:
    """So runs are resumed as if nothing had been, and processes that train together plan the same batches."""
    (tmp_path / "toy.model").write_bytes(vocabulary.to_bytes())
    program = (
        "import json, sys, numpy; from tandem.models.vocabulary import SentencePieceVocabulary;"
        "from tandem.extras.augmentation.bpe_dropout import MergeDropout;"
        "own = SentencePieceVocabulary.load(sys.argv[1]);"
        "rng = numpy.random.default_rng(5);"
        f"print(json.dumps(MergeDropout(own).applied(own.encode_many({TEXTS!r}), 0.3, rng)))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "toy.model")]
    printed = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2)]
    assert printed == [sampled(vocabulary)] * 2


def segmentations(vocabulary: SentencePieceVocabulary, word: str, rate: float) -> dict[tuple[str, ...], float]:
    """The chance of every segmentation of a word by algorithm 1, by trying every outcome of every draw."""
    ranks = {piece: -score for _, piece, score in vocabulary.mergeable()}
    found: dict[tuple[str, ...], float] = defaultdict(float)

    def go(cuts: tuple[int, ...], left_out: frozenset[tuple[int, int]], chance: float) -> None:
        spans = [(start, end, middle) for start, middle, end in zip(cuts, cuts[1:], cuts[2:], strict=False)]
        open_ = [span for span in spans if word[span[0] : span[1]] in ranks and span[:2] not in left_out]
        if not open_:
            found[tuple(word[a:b] for a, b in pairwise(cuts))] += chance
            return
        start, end, middle = min(open_, key=lambda span: (ranks[word[span[0] : span[1]]], span[0]))
        go(tuple(cut for cut in cuts if cut != middle), left_out, chance * (1 - rate))
        go(cuts, left_out | {(start, end)}, chance * rate)

    go(tuple(range(len(word) + 1)), frozenset(), 1.0)
    return dict(found)


@pytest.mark.parametrize(("word", "rate"), list(product(["train", "town"], [0.1, 0.4])))
def test_every_segmentation_is_as_frequent_as_the_algorithm_makes_it(
    vocabulary: SentencePieceVocabulary, word: str, rate: float
) -> None:
    """Though words that keep all their merges are never merged anew: 20,000 draws, within five standard deviations."""
    expected = segmentations(vocabulary, f"▁{word}", rate)
    assert len(expected) > 3
    count = 20_000
    made = drawn(vocabulary, vocabulary.encode_many([word]) * count, rate, 3)
    seen = Counter(tuple(map(vocabulary.piece_of, ids)) for ids in made)
    assert set(seen) <= set(expected)
    for pieces, chance in expected.items():
        assert abs(seen[pieces] - chance * count) < 5 * (chance * (1 - chance) * count) ** 0.5 + 1, pieces


def test_only_bpe_has_merges(vocabulary: SentencePieceVocabulary) -> None:
    assert vocabulary.has_merges
    unigram = train_sentencepiece(LINES, size=300, model_type="unigram", languages=(), seed=1)
    assert not unigram.has_merges
    with pytest.raises(VocabularyError, match="type bpe, but it is a unigram one"):
        MergeDropout(unigram)


def test_a_piece_is_spelt_in_bytes_and_reads_the_same(vocabulary: SentencePieceVocabulary) -> None:
    ids = vocabulary.encode("the station ⟨ph3⟩", reserved=True)
    made = [vocabulary.spelled(ids, place / len(ids)) for place in range(len(ids))]
    assert all(vocabulary.decode(one) == "the station ⟨ph3⟩" for one in made)
    assert made[0] != ids and len(made[0]) == len(ids) + len("the")
    assert made[ids.index(vocabulary.placeholders[3])] == ids
    assert vocabulary.spelled([], 0.5) == []
