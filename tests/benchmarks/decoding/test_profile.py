"""The profile of a step of the shipped bundle."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.decoding.profile import measure, show
from benchmarks.options import ProfileOptions
from models.errors import ConfigError

BUNDLE = Path(__file__).parents[3] / "bundles" / "de-en"


@pytest.mark.parametrize("shortlist", [False, True])
def test_operators_and_products_of_a_step(shortlist: bool, listed: Path) -> None:
    bundle = listed if shortlist else BUNDLE
    found = measure(ProfileOptions(bundle=bundle, batch=2, beam_size=3, repeats=2, shortlist=shortlist))
    counts = {row["operator"]: row["count"] for row in found["operators"]}
    assert found["rows"] == 6
    assert found["nodes"] == sum(counts.values())
    # Every product with a constant weight is found again; with a shortlist that of the output is looked up.
    assert found["products"] == counts["MatMulIntegerToFloat"] - shortlist
    assert sum(row["share"] for row in found["operators"]) == pytest.approx(100)
    assert found["products_ms"] > 0


def test_the_table_ends_with_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    show(measure(ProfileOptions(bundle=BUNDLE, batch=1, repeats=1)))
    assert "constant products alone" in capsys.readouterr().out


def test_a_bundle_without_a_shortlist_says_so() -> None:
    with pytest.raises(ConfigError, match="no shortlist"):
        measure(ProfileOptions(bundle=BUNDLE.parent / "arxiv-title", shortlist=True))
