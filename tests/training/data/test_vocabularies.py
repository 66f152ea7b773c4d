"""Vocabularies of more text than they are trained on."""

from __future__ import annotations

import pytest

from tandem.models.errors import VocabularyError
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


@pytest.mark.parametrize(
    ("config", "key", "told"),
    [
        (VocabularyConfig(size=5000), "size", "5000 pieces: the text gives at most"),
        (VocabularyConfig(size=5000, joint=False), "size", "5000 pieces: the text gives at most"),
        (VocabularyConfig(size=290, target_size=20, joint=False), "target_size", "20 pieces: its characters"),
        (VocabularyConfig(kind="word", size=8), "size", "a word vocabulary needs more than"),
    ],
)
def test_a_size_that_does_not_do_names_its_key(config: VocabularyConfig, key: str, told: str) -> None:
    with pytest.raises(VocabularyError, match=rf"^\[data\.vocabulary\] {key}: .*{told}"):
        train_vocabularies([["ein Haus"] * 9, ["a house"] * 9], config, languages=("de", "en"), seed=1)
