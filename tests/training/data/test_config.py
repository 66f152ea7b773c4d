"""Every fault that a data configuration can have, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import ConfigError
from tandem.training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig

CORPUS = CorpusConfig("toy", ("toy/{split}.de",), "toy/{split}.en", "CC0", "nobody")


DATA = DataConfig((CORPUS,))


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (CORPUS, {"name": "../toy"}, "name must be made of"),
        (CORPUS, {"source": ()}, "source must name"),
        (CORPUS, {"target": "toy.en"}, r"must contain \{split\}"),
        (CORPUS, {"repeat": 0}, "repeat must be at least 1, but is 0"),
        (CORPUS, {"share": 0.0}, "share must be above 0 and at most 1, but is 0.0"),
        (CORPUS, {"share": 1.5}, "share must be above 0 and at most 1, but is 1.5"),
        (CORPUS, {"splits": ("train", "dev")}, "splits must be some of"),
        (DATA, {"corpora": ()}, "corpora must be at least one"),
        (DATA, {"corpora": (CORPUS, CORPUS)}, "its own name"),
        (DATA, {"corpora": (CORPUS, replace(CORPUS, name="two", source=CORPUS.source * 2))}, "same number of sources"),
        (DATA, {"corpora": (replace(CORPUS, splits=("test",)),)}, "must have the split train"),
        (DATA, {"max_source_tokens": 1}, "max_source_tokens must be at least 2"),
        (DATA, {"join_share": 1.5}, "join_share must be at most 1.0, but is 1.5"),
        (DATA, {"join_share": -0.5}, "join_share must be at least 0.0, but is -0.5"),
        (FilterConfig(), {"max_source_words": 0}, "max_source_words must be at least 1"),
        (FilterConfig(), {"exclude_pattern": "["}, "is no expression"),
        (VocabularyConfig(), {"kind": "char"}, "kind must be"),
        (VocabularyConfig(), {"model_type": "wordpiece"}, "model_type must be"),
        (VocabularyConfig(), {"size": 1}, "vocabulary size must be at least 8"),
        (VocabularyConfig(joint=False), {"target_size": 3}, "target_size must be at least 8, but is 3"),
        (VocabularyConfig(size=90), {"target_size": 80}, "target_size needs joint = false"),
    ],
)
def test_faults(config: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_dataclass(type(config), {**to_mapping(config), **to_mapping(change)}, "recipe vocabulary")


def test_round_trip_through_the_strict_loader() -> None:
    config = DataConfig((replace(CORPUS, repeat=3),), FilterConfig(max_length_ratio=3.0), truncate_source=True)
    assert load_dataclass(DataConfig, to_mapping(config), "recipe [data]") == config


def test_test_files_may_have_another_name() -> None:
    corpus = replace(CORPUS, test_split="test_2016")
    assert corpus.paths("test") == ("toy/test_2016.de", "toy/test_2016.en")
    assert corpus.paths("valid") == ("toy/valid.de", "toy/valid.en")
    assert replace(corpus, valid_split="2015").paths("valid") == ("toy/2015.de", "toy/2015.en")
    assert replace(corpus, valid_split="2015").paths("train") == ("toy/train.de", "toy/train.en")
