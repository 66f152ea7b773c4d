"""What files on a cluster are refused for, before there is a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deploy.bulk.run import translate_files
from deploy.ray_bulk import plan
from models.bundle import Vocabularies, VocabularyFile
from models.errors import ConfigError
from tests.deploy.bulk.support import copier
from tests.service.support import tiny_bundle


def test_each_file_becomes_one_of_its_name_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    bundle, source, out = tiny_bundle(tmp_path).path, tmp_path / "x.txt", tmp_path / "new" / "out"
    source.write_bytes(b"das haus\n\nguten morgen")
    (request,) = plan(bundle, [source], out)
    assert (request.out, request.resume) == (out / "x.txt", False)
    translate_files(copier(bundle), request)
    assert (out / "x.txt").read_bytes() == b"das haus\n\nguten morgen\n"
    (again,) = plan(bundle, [source], out)
    assert again.resume and translate_files(copier(bundle), again).before == 3
    with pytest.raises(ConfigError, match="beam_size was 4 and is 2"):
        translate_files(copier(bundle, beam_size=2), again)


def test_results_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.txt: two files have this name"):
        plan(tiny_bundle(tmp_path).path, [Path("a/x.txt"), Path("b/x.txt")], tmp_path / "out")


def test_no_result_takes_the_place_of_its_source(tmp_path: Path) -> None:
    """Neither by the same path nor by another one that leads there."""
    bundle = tiny_bundle(tmp_path).path
    (tmp_path / "texts").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "texts")
    source = tmp_path / "texts" / "x.txt"
    source.write_bytes(b"das haus\n")
    for out in (tmp_path / "texts", tmp_path / "link"):
        (request,) = plan(bundle, [source], out)
        with pytest.raises(ConfigError, match="both a source and written to"):
            translate_files(copier(bundle), request)
    assert source.read_bytes() == b"das haus\n"


def test_bundles_of_several_sources_are_refused(tmp_path: Path) -> None:
    file = VocabularyFile("source.model")
    changes: dict[str, Any] = {"vocabularies": Vocabularies((file, file), file), "source_languages": ("de", "fr")}
    bundle = tiny_bundle(tmp_path, **changes)
    with pytest.raises(ConfigError, match="does not read one file of text"):
        plan(bundle.path, [Path("x.txt")], tmp_path)
