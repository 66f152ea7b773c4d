"""Every fault that a data configuration can have, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from models.config import load_dataclass, to_mapping
from models.errors import ConfigError
from training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig

CORPUS = CorpusConfig("toy", ("toy/{split}.de",), "toy/{split}.en", "CC0", "nobody")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../toy"}, "name must be made of"),
        ({"source": ()}, "source must name"),
        ({"target": "toy.en"}, r"must contain \{split\}"),
        ({"repeat": 0}, "repeat must be at least 1, but is 0"),
        ({"share": 0.0}, "share must be above 0 and at most 1, but is 0.0"),
        ({"share": 1.5}, "share must be above 0 and at most 1, but is 1.5"),
        ({"splits": ("train", "dev")}, "splits must be some of"),
    ],
)
def test_corpus_faults(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(CORPUS, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpora": ()}, "corpora must be at least one"),
        ({"corpora": (CORPUS, CORPUS)}, "its own name"),
        ({"corpora": (CORPUS, replace(CORPUS, name="two", source=CORPUS.source * 2))}, "same number of sources"),
        ({"corpora": (replace(CORPUS, splits=("test",)),)}, "must have the split train"),
        ({"max_source_tokens": 1}, "max_source_tokens must be at least 2"),
        ({"join_share": 1.5}, "join_share must be between 0 and 1"),
    ],
)
def test_data_faults(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(DataConfig((CORPUS,)), **change)


def test_filter_and_vocabulary_faults() -> None:
    with pytest.raises(ConfigError, match="max_source_words must be at least 1"):
        FilterConfig(max_source_words=0)
    with pytest.raises(ConfigError, match="is no expression"):
        FilterConfig(exclude_pattern="[")
    with pytest.raises(ConfigError, match="kind must be"):
        VocabularyConfig(kind="char")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="model_type must be"):
        VocabularyConfig(model_type="wordpiece")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="vocabulary: size must be at least 8"):
        VocabularyConfig(size=1)
    with pytest.raises(ConfigError, match="target_size must be at least 8, but is 3"):
        VocabularyConfig(joint=False, target_size=3)
    with pytest.raises(ConfigError, match="target_size needs joint = false"):
        VocabularyConfig(size=90, target_size=80)


def test_round_trip_through_the_strict_loader() -> None:
    config = DataConfig((replace(CORPUS, repeat=3),), FilterConfig(max_length_ratio=3.0), truncate_source=True)
    assert load_dataclass(DataConfig, to_mapping(config), "recipe [data]") == config


def test_test_files_may_have_another_name() -> None:
    corpus = replace(CORPUS, test_split="test_2016")
    assert corpus.paths("test") == ("toy/test_2016.de", "toy/test_2016.en")
    assert corpus.paths("valid") == ("toy/valid.de", "toy/valid.en")
    assert replace(corpus, valid_split="2015").paths("valid") == ("toy/2015.de", "toy/2015.en")
    assert replace(corpus, valid_split="2015").paths("train") == ("toy/train.de", "toy/train.en")
