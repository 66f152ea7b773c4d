"""Numbers about attention against hand-made weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tandem.extras.papers.analysis.attention import AttentionName, SentenceAttention
from tandem.extras.papers.analysis.tables import encoder_weights, entropies, shares_by_position, source_shares


def sentence(**weights: list[list[float]]) -> SentenceAttention:
    """A sentence of two sources and target symbols as many as the weights have rows."""
    arrays = {name.replace("_", "."): np.array(rows) for name, rows in weights.items()}
    rows = len(next(iter(arrays.values())))
    return SentenceAttention((("a", "b"), ("c", "d", "e")), tuple("xyz"[:rows]), arrays)


@pytest.mark.parametrize(
    ("name", "source"),
    [("cnn.3.san", 0), ("decoder.0.source1", 1), ("mixed.2.target", None), ("decoder.0.encoders", None)],
)
def test_a_name_says_which_source_it_is_over(name: str, source: int | None) -> None:
    assert AttentionName.parse(name).source == source


def test_names_of_another_form_are_refused() -> None:
    with pytest.raises(ValueError, match=r"path\.layer\.over.*'attention'"):
        AttentionName.parse("attention")


def test_a_members_name_keeps_its_path_whole() -> None:
    parts = AttentionName.parse("member1.cnn.3.san")
    assert (parts.path, parts.layer, parts.over) == ("member1.cnn", 3, "san")


def test_entropy_is_the_mean_over_layers_then_tokens_then_sentences() -> None:
    first = sentence(cnn_0_san=[[0.5, 0.5], [1.0, 0.0]], cnn_1_san=[[0.5, 0.5], [0.5, 0.5]])
    second = sentence(cnn_0_san=[[1.0, 0.0]], cnn_1_san=[[1.0, 0.0]])
    (found,) = entropies([first, second])
    assert (found.path, found.over) == ("cnn", "san")
    # Of the first sentence three of four are ln 2; the second has none; sentences count alike, however long.
    assert found.nats == pytest.approx(0.5 * 0.75 * math.log(2))
    assert found.uniform == pytest.approx(math.log(2))


def test_a_share_of_a_softmax_is_no_distribution() -> None:
    mixed = sentence(mixed_0_source0=[[0.5, 0.2]], mixed_0_target=[[0.3]])
    assert entropies([mixed]) == []
    (share,) = source_shares([mixed])
    assert share.layer == "mixed.0"
    assert (share.source, share.target) == pytest.approx((0.7, 0.3))


def test_shares_by_position_average_what_reaches_there() -> None:
    long = sentence(mixed_0_source0=[[0.9, 0.0], [0.2, 0.2]], mixed_0_target=[[0.1, 0.0], [0.3, 0.3]])
    short = sentence(mixed_0_source0=[[0.5, 0.0]], mixed_0_target=[[0.5]])
    names, means_LT = shares_by_position([long, short], 3)
    assert names == ("mixed.0",)
    assert means_LT[0, :2] == pytest.approx([0.7, 0.4])
    assert math.isnan(means_LT[0, 2])


def test_encoder_weights_name_the_sentinel_last() -> None:
    one = sentence(decoder_0_encoders=[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    found = {item.encoder: item.weight for item in encoder_weights([one])}
    assert found == {"source 0": pytest.approx(0.3), "source 1": pytest.approx(0.2), "sentinel": pytest.approx(0.5)}


def test_columns_are_labelled_by_what_they_stand_for() -> None:
    one = sentence(mixed_0_target=[[1.0, 0.0], [0.5, 0.5]], decoder_0_source1=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert one.labels("mixed.0.target") == ("<s>", "x")
    assert one.labels("decoder.0.source1") == ("c", "d", "e")
