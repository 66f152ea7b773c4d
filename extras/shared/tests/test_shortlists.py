"""What a source piece lists, and what every list holds."""

from __future__ import annotations

import numpy as np

from tandem.extras.shared.shortlists import always_listed, likely_targets
from tandem.models.vocabulary import DELETE, EOS, KEEP, UNK, train_sentencepiece


def test_words_are_listed_in_the_order_of_their_probability() -> None:
    rows = {1: [5, 6, 7], 2: [5], 3: [9, 8]}
    source = [np.array([one]) for one in (1, 1, 1, 1, 1, 1, 2, 3, 3)]
    target = [np.array([one]) for one in (5, 5, 5, 6, 6, 7, 5, 9, 8)]
    target[-2] = np.array([9])
    source.append(np.array([3]))
    target.append(np.array([9]))
    assert likely_targets(source, target, 10, most=3) == rows
    assert likely_targets(source, target, 10, most=1) == {word: row[:1] for word, row in rows.items()}
    assert likely_targets([np.array([1])], [np.array([], np.int64)], 10, most=1) == {}


def test_pieces_that_spell_are_in_every_list() -> None:
    lines = ["a small text, 42 cats", "ein kleiner Text"] * 30
    pieces = train_sentencepiece(lines, size=330, languages=("de",), seed=1, further=(KEEP, DELETE))
    listed = set(always_listed(pieces))
    assert {pieces.id_of(f"<0x{value:02X}>") for value in range(256)} <= listed
    assert {EOS, UNK, *pieces.placeholders, pieces.id_of(KEEP), pieces.id_of(DELETE)} <= listed
    assert {pieces.id_of(piece) for piece in ("4", "2", ",", "▁")} <= listed
    letters = {token for token in range(pieces.size) if pieces.piece_of(token).strip("▁").isalpha()}
    assert letters
    assert not letters & listed
