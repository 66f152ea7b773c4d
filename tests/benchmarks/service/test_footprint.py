"""What bundles cost a server: the copies are models of their own, and the line through the figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.options import FootprintOptions
from benchmarks.service.footprint import copies, measure
from deploy.cli import app
from models.bundle import Bundle
from models.errors import ConfigError

SHIPPED = Path(__file__).resolve().parents[3] / "bundles" / "de-en"


def test_copies_are_bundles_of_their_own(tmp_path: Path) -> None:
    folder = copies(Bundle.load(SHIPPED), 2, tmp_path)
    found = [Bundle.load(path) for path in sorted(folder.iterdir())]
    assert [one.manifest.name for one in found] == ["copy-0", "copy-1"]
    inodes = {path.stat().st_ino for path in folder.rglob("*") if path.is_file()}
    assert len(inodes) == sum(path.is_file() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("counts", "message"),
    [("2", "at least two numbers"), ("2,2", "at least two numbers"), ("0,1", "whole numbers from 1")],
)
def test_one_number_makes_no_line(counts: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"--counts must be {message}"):
        measure(FootprintOptions(bundle=SHIPPED, counts=counts))


@pytest.mark.slow
def test_more_bundles_take_more_memory() -> None:
    arguments = ["bench", "footprint", "--bundle", str(SHIPPED), "--counts", "1,3", "--passes", "1", "--json"]
    reply = CliRunner().invoke(app, arguments)
    assert reply.exit_code == 0, reply.output
    result = json.loads(reply.stdout)
    one, three = result["rows"]
    assert (one["bundles"], three["bundles"]) == (1, 3)
    assert three["rss_mb"] > one["rss_mb"] > 0
    assert result["mb_per_bundle"] == pytest.approx((three["rss_mb"] - one["rss_mb"]) / 2, abs=0.02)
