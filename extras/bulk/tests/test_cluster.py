"""Files on a Ray cluster of this machine, as ``tandem translate --ray`` uses it."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.extras.bulk.cluster import RayActors
from tandem.extras.bulk.run import Request, translate_files
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.errors import ConfigError
from tests.shipped import SHIPPED

pytestmark = [
    pytest.mark.slow,
    # Ray leaves pipes and processes to its own exit handler, where they are closed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),  # it sets its own deprecated options
]
TEXT = "Nummer {}. Das Haus ist alt. Wir gehen heute nach Hause."


@pytest.fixture(autouse=True)
def ray_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Ray cluster of this machine."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # else it writes a token into the home folder
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):  # Ray's own, about itself and what it uses
            warnings.simplefilter("ignore", kind)
        import ray

        ray.init(
            address="local", num_cpus=4, include_dashboard=False, object_store_memory=100 << 20,
            log_to_driver=False, logging_level=logging.ERROR,
        )  # fmt: skip
    try:
        yield
    finally:
        ray.shutdown()


def test_a_file_is_translated_in_order_and_bad_lines_stay(tmp_path: Path) -> None:
    lines = [TEXT.format(number)[: 30 + number % 30].encode() for number in range(600)]
    lines[70] = b"kein \xff Text"
    (tmp_path / "in.txt").write_bytes(b"\n".join(lines) + b"\n")
    request = Request((tmp_path / "in.txt",), tmp_path / "out.txt")
    actors = RayActors("auto", most=2, num_cpus=0.5)
    summary = translate_files(BulkTranslator(SHIPPED), request, actors.translate)
    assert (summary.counts.lines, summary.counts.bad) == (600, 1)
    expected = [record.data for record in BulkTranslator(SHIPPED).translate_block(lines)]
    found = (tmp_path / "out.txt").read_bytes().split(b"\n")
    assert found == [*expected, b""] and found[70] == lines[70]
    (finding,) = map(json.loads, (tmp_path / "out.txt.report.jsonl").read_text().splitlines())
    assert (finding["line"], finding["reason"]) == (71, "invalid_utf8")
    crowded = RayActors("auto", num_cpus=1000)
    with pytest.raises(ConfigError, match="no room for an actor of 1000 cores"):
        translate_files(BulkTranslator(SHIPPED), replace(request, out=tmp_path / "x"), crowded.translate)
