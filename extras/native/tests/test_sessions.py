"""Whether sessions get our own operators: where they are built, and neither request nor variable keeps them out."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.native import library as native
from tandem.extras.native.tests.compiled import build_operators
from tandem.models.bundle import Bundle
from tandem.models.search import SearchOptions, translate_batch
from tandem.models.vocabulary import EOS
from tandem.service.runtimes import Placement
from tandem.service.runtimes.onnx import OnnxGraphs
from tests.shipped import SHIPPED


@pytest.fixture(scope="module")
def operators() -> Path:
    return build_operators()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, operators: Path) -> Path:
    """An installation that has them."""
    monkeypatch.setattr(native, "LIBRARY", operators)
    monkeypatch.delenv(native.SWITCH, raising=False)
    return operators


def opened(*, native: bool = True) -> OnnxGraphs:
    return OnnxGraphs(Bundle.load(SHIPPED), "int8", 1, Placement(native=native))


def test_graphs_are_opened_with_them(built: Path) -> None:
    graphs = opened()
    assert graphs.fused.keys() == {"encode", "step"}
    assert graphs.fused["step"]["BestContinuations"] + graphs.fused["step"]["BestOfProduct"] == 1


def test_what_is_found_is_what_graphs_find_as_they_are(built: Path) -> None:
    source = Bundle.load(SHIPPED).source_vocabularies[0].encode("Wo ist der nächste Bahnhof?")
    options = SearchOptions(beam_size=4, max_length=20)
    with_them, without = (
        translate_batch(opened(native=used), [(np.array([*source, EOS]),)], options)[0][0] for used in (True, False)
    )
    assert with_them.tokens == without.tokens
    assert with_them.score == pytest.approx(without.score, abs=0.05)  # bytes may fall to either side of a half


@pytest.mark.parametrize("value", ["false", "0", "off", "No"])
def test_a_variable_keeps_them_out(built: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(native.SWITCH, value)
    assert not opened().fused


def test_a_setting_keeps_them_out(built: Path) -> None:
    assert not opened(native=False).fused


def test_without_them_graphs_run_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "none.so")
    assert not opened().fused


def test_what_cannot_be_loaded_is_told_and_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "libtandem.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(native, "LIBRARY", broken)
    monkeypatch.delenv(native.SWITCH, raising=False)
    with caplog.at_level(logging.WARNING, "tandem.runtimes"):
        graphs = opened()
    assert not graphs.fused
    assert "native operators are left out" in caplog.text
    assert str(broken) in caplog.text
