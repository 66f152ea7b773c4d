"""Sums of 8-bit products are made exact where the processor does not do so itself, and only there: it costs a third."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tandem.models.bundle import Bundle
from tandem.service.runtimes import sessions
from tandem.service.runtimes.onnx import OnnxGraphs
from tests.shipped import SHIPPED


@pytest.mark.parametrize(
    ("flags", "vnni"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_vnni amx_tile", True),
        ("flags\t\t: fpu avx2 avx_vnni", True),
        ("flags\t\t: fpu avx2 avx512f", False),
        ("Features\t: asimddp bf16", False),
        (None, False),
    ],
)
def test_vnni_is_what_the_kernel_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str | None, vnni: bool
) -> None:
    monkeypatch.setattr(sessions, "_CPU_FLAGS", tmp_path / "cpuinfo")
    if flags is not None:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{flags}\nbugs\t\t:\n", encoding="utf-8")
    assert sessions.has_vnni() is vnni


@pytest.mark.parametrize("vnni", [True, False])
def test_sums_are_made_exact_without_vnni_only(monkeypatch: pytest.MonkeyPatch, vnni: bool) -> None:
    asked: list[bool] = []
    options = sessions.session_options

    def noting(threads: int, *, exact: bool = False) -> Any:
        asked.append(exact)
        return options(threads, exact=exact)

    monkeypatch.setattr(sessions, "session_options", noting)
    monkeypatch.setattr(sessions, "has_vnni", lambda: vnni)
    OnnxGraphs(Bundle.load(SHIPPED), "int8", 1)
    assert asked == [not vnni] * 2  # encode and step
