"""Lines that are translated with the bundle's lexical shortlist."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.vocabulary import EOS
from tandem.training.export.bundle import add_shortlist
from tests.shipped import SHIPPED


def test_files_are_translated_with_a_list(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "de-en")
    bundle = Bundle.load(tmp_path / "de-en")
    size, listed = bundle.target_vocabulary.size, bundle.target_vocabulary.encode("the")
    rows = [[listed[0]]] * bundle.source_vocabularies[0].size
    add_shortlist(bundle.path, Shortlist((Table.of(rows, size),), np.array([EOS]), size))
    options = BulkOptions(sentences=False, shortlist=True, max_line_bytes=100)
    found = BulkTranslator(bundle.path, options).translate_block(["das Haus", "", "ja"])
    assert found[1].text == ""
    assert set(" ".join(one.text for one in found).split()) == {"the"}


def test_a_bundle_without_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="build one with `tandem shortlist`"):
        BulkTranslator(SHIPPED, BulkOptions(shortlist=True)).open()
