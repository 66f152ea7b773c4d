"""What measurements say of the machine, and how figures are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tandem.extras.shared.report import as_json, cell, environment, processor, show_environment

X86 = "model name\t: Some Processor @ 2.0GHz\nflags\t\t: fpu avx2 amx_int8\n\nmodel name\t: Another\nflags\t\t: fpu\n"
ARM = "Features\t: fp asimddp i8mm\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


@pytest.mark.parametrize(
    ("text", "name", "there"),
    [(X86, "Some Processor @ 2.0GHz", {"avx2", "amx_int8"}), (ARM, None, {"asimddp", "i8mm"}), (None, None, set())],
)
def test_the_first_processor_counts(text: str | None, name: str | None, there: set[str], tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    if text is not None:
        (tmp_path / "proc" / "cpuinfo").write_text(text, encoding="utf-8")
    found = processor(tmp_path)
    assert found["processor"] == name or (name is None and found["processor"])
    assert set(found["features"]) == there
    assert found["cores"] >= 1 and found["usable_cores"] >= 1


def test_the_environment_says_what_a_figure_depends_on() -> None:
    found = json.loads(as_json(environment(2)))
    assert found["threads"] == 2
    assert 1 <= found["usable_cores"] <= found["cores"]
    assert {"numpy", "sentencepiece"} <= found["versions"].keys()
    shown = show_environment(found)
    assert found["processor"] in shown and found["versions"]["numpy"] in shown


def test_numbers_are_shown_with_three_figures() -> None:
    shown = {None: "–", True: "yes", 12345: "12,345", 1234.5: "1,234", 12.345: "12.3", 0.012345: "0.0123", "x": "x"}
    assert {value: cell(value) for value in shown} == shown
