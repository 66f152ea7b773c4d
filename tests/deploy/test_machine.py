"""The processor that measurements name, from small invented files."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.machine import find_processor

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
    found = find_processor(tmp_path)
    assert found.name == name or (name is None and found.name)
    assert {feature for feature, present in found.features.items() if present} == there
    assert found.cores >= 1 and found.usable_cores >= 1
