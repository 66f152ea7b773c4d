"""Vocabularies of more text than they are trained on."""

from __future__ import annotations

import pytest

from tandem.training.data.config import VocabularyConfig
from tandem.training.data.vocabularies import train_vocabularies


@pytest.mark.parametrize("joint", [True, False])
def test_very_much_text_is_sampled(monkeypatch: pytest.MonkeyPatch, joint: bool) -> None:
    columns = [[f"s{index}" for index in range(40)], [f"t{index}" for index in range(40)]]
    config = VocabularyConfig(kind="word", size=200, joint=joint)
    everything = train_vocabularies(columns, config, languages=("de", "en"), seed=1)
    monkeypatch.setattr("tandem.training.data.vocabularies.MOST_LINES", 30)
    source, target = train_vocabularies(columns, config, languages=("de", "en"), seed=1)
    words = [
        {word for word in column if vocabulary.encode(word) != [vocabulary.unk]}
        for column, vocabulary in zip([[*columns[0], *columns[1]]] * 2, (source, target), strict=True)
    ]
    if joint:
        assert len(words[0]) == 30 and words[0] == words[1]
        assert words[0] & {*columns[0]} and words[0] & {*columns[1]}
    else:
        assert len(words[0]) == len(words[1]) == 30
        assert words[0] < {*columns[0]} and words[1] < {*columns[1]}
    assert everything[0].size > source.size
