"""`tandem analyse` of a bundle that learnt something."""

from __future__ import annotations

import json
from pathlib import Path

from tests.test_end_to_end import bundle, one_thread, runtime, seeded, tandem

__all__ = ["bundle", "one_thread", "runtime", "seeded"]


def test_analyse_writes_tables_and_figures(bundle: Path, runtime: str) -> None:
    folder = bundle.parent.parent
    arguments = ("--source", "test.de", "--limit", "20", "--heat-maps", "1", "--runtime", runtime)
    output = tandem(folder, "analyse", "bundles/copy", *arguments)
    written = output.split()
    assert written[0] == "analysis/copy/analysis.json"
    assert all((folder / name).stat().st_size > 0 for name in written)
    assert "analysis/copy/sentence-1/cnn-san.svg" in written
    result = json.loads((folder / written[0]).read_text(encoding="utf-8"))
    assert {(row["path"], row["over"]) for row in result["entropy"]} == {
        (path, over) for path in ("cnn", "san") for over in ("cnn", "san")
    }
