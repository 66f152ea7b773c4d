"""The profile of a step of the shipped bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.bench.profile import ProfileOptions, profile_command
from models.errors import ConfigError

BUNDLE = Path(__file__).parents[3] / "bundles" / "de-en"


@pytest.mark.parametrize("shortlist", [False, True])
def test_operators_and_products_of_a_step(shortlist: bool, listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ProfileOptions(batch=2, beam=3, repeats=2, shortlist=shortlist)
    profile_command(listed if shortlist else BUNDLE, options, json_wanted=True)
    found = json.loads(capsys.readouterr().out)
    counts = {row["operator"]: row["count"] for row in found["operators"]}
    assert found["rows"] == 6
    assert found["nodes"] == sum(counts.values())
    # Every product with a constant weight is found again; with a shortlist that of the output is looked up.
    assert found["products"] == counts["MatMulIntegerToFloat"] - shortlist
    assert sum(row["share"] for row in found["operators"]) == pytest.approx(100)
    assert found["products_ms"] > 0


def test_the_table_ends_with_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    profile_command(BUNDLE, ProfileOptions(batch=1, repeats=1), json_wanted=False)
    assert "constant products alone" in capsys.readouterr().out


def test_a_bundle_without_a_shortlist_says_so() -> None:
    with pytest.raises(ConfigError, match="no shortlist"):
        profile_command(BUNDLE.parent / "arxiv-title", ProfileOptions(shortlist=True), json_wanted=False)
