"""The profile of the steps of the shipped bundle."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.decoding.profile import measure, show
from benchmarks.options import ProfileOptions
from models.errors import ConfigError

BUNDLE = Path(__file__).parents[3] / "bundles" / "de-en"


@pytest.mark.parametrize("shortlist", [False, True])
def test_operators_of_a_step(shortlist: bool, listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = listed if shortlist else BUNDLE
    found = measure(ProfileOptions(bundle=bundle, batch=2, beam_size=3, shortlist=shortlist))
    counts = {row["operator"]: row["count"] for row in found["operators"]}
    assert found["nodes"] == sum(counts.values())
    assert counts["MatMulIntegerToFloat"] > 5 and found["steps"] > 5 and found["step_ms"] > 0
    assert sum(row["share"] for row in found["operators"]) == pytest.approx(100)
    show(found)
    assert f"a step of {found['nodes']} operators" in capsys.readouterr().out


def test_a_bundle_without_a_shortlist_says_so() -> None:
    with pytest.raises(ConfigError, match="no shortlist"):
        measure(ProfileOptions(bundle=BUNDLE.parent / "arxiv-title", shortlist=True))
