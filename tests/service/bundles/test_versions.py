"""Bundles by alias: which version each stands for from the start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandem.models.errors import ConfigError
from tandem.models.vocabulary import train_sentencepiece
from tandem.service.bundles.loading import at_start, list_bundles, newest
from tandem.service.settings import Settings
from tests.service import support
from tests.service.support import LINES

Writer = Callable[..., Path]


@pytest.fixture(scope="session")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three versions of a model; each numbers its tokens differently, so that mixing two would garble a text."""
    made = {}
    original = support.tiny_vocabulary
    for number in (1, 2, 10):
        vocabulary = train_sentencepiece(LINES * 4, size=330 + number, languages=("de", "en"), seed=1)
        support.tiny_vocabulary = lambda vocabulary=vocabulary: vocabulary  # type: ignore[misc]
        folder = tmp_path_factory.mktemp("versions")
        made[f"de-en@{number}"] = support.tiny_bundle(folder).path
    support.tiny_vocabulary = original
    return made


@pytest.fixture
def manager(versions: dict[str, Path], tmp_path: Path) -> Writer:
    """Puts versions onto the configured folder, under their own or another name."""

    def put(name: str, folder: str = "") -> Path:
        target = tmp_path / "bundles" / (folder or name)
        shutil.copytree(versions[name], target)
        return target

    return put


@pytest.fixture
def configured(tmp_path: Path) -> Settings:
    return settings(tmp_path)


def settings(folder: Path, **fields: Any) -> Settings:
    fixed: dict[str, Any] = {"bundles": (folder / "bundles",), "admin_key": "a" * 20, "workers": 1}
    return Settings(**fixed, shutdown_timeout=5, **fields)


def test_the_newest_version_is_found_number_by_number() -> None:
    assert newest(["de-en", "de-en@1"]) == "de-en@1"
    assert newest(["de-en@2", "de-en@10", "de-en@9"]) == "de-en@10"
    assert newest(["de-en@2026-01-31", "de-en@2025-12-31"]) == "de-en@2026-01-31"
    assert newest(["de-en@1.10", "de-en@1.9.9", "de-en@1.10.1"]) == "de-en@1.10.1"


def test_folders_and_manifests_must_agree(manager: Writer, configured: Settings) -> None:
    manager("de-en@1", "fr-en@1")
    with pytest.raises(ConfigError, match="its folder must be named de-en@VERSION"):
        at_start(list_bundles(configured.bundles), configured)


def test_a_configured_version_must_be_there(manager: Writer, tmp_path: Path) -> None:
    manager("de-en@1")
    with pytest.raises(ConfigError, match="versions names 'de-en@2', but there is no such bundle; there are de-en@1"):
        at_start(list_bundles([tmp_path / "bundles"]), settings(tmp_path, versions=("de-en@2",)))
    for wrong in ("de-en", "de-en@1,de-en@2", "../de-en@1"):
        with pytest.raises(ValueError, match=r"with a version|named once"):
            settings(tmp_path, versions=wrong)
