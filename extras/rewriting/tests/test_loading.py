"""What a service reads of a bundle's lexicon when it loads the bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from tandem.extras.rewriting.command import add_lexicon
from tandem.extras.rewriting.lexicon import FILE, STAGE, Lexicon
from tandem.models.bundle import extend_bundle
from tandem.models.errors import BundleError
from tandem.service.bundles.loading import build_engine
from tandem.service.settings import Settings
from tests.service.support import copying, tiny_bundle

WORDS = Lexicon({("de", "en"): {"wo": ("where",)}})


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle with a lexicon; its graphs copy."""
    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", lambda bundle, *_: copying(bundle))
    return add_lexicon(tiny_bundle(tmp_path).path, WORDS).path


@pytest.mark.parametrize(("stages", "read"), [("bundle", {STAGE: WORDS}), ("off", {})])
def test_a_service_with_stages_reads_it(path: Path, stages: Literal["bundle", "off"], read: dict[str, Lexicon]) -> None:
    assert build_engine(Settings(bundles=(path,), stages=stages)).bundles["de-en"].stage_data == read


def test_a_bundle_that_does_not_ask_for_the_stage_keeps_it_unread(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    (path / "manifest.json").write_text(json.dumps(manifest | {"stages": []}), encoding="utf-8")
    assert build_engine(Settings(bundles=(path,))).bundles["de-en"].stage_data == {}


def test_what_is_no_lexicon_stops_the_start(path: Path) -> None:
    extend_bundle(path, {FILE: b"de\ten\n"})
    with pytest.raises(BundleError, match=r"lexicon\.tsv\.gz: line 1 must be two languages"):
        build_engine(Settings(bundles=(path,)))
