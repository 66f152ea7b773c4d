"""Files through a bundle of two directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.tests.support import Opener
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.errors import ConfigError
from tests.service.support import tiny_bundle

PAIRS = (("de", "en"), ("en", "de"))


@pytest.mark.parametrize(
    ("options", "tag"),
    [
        (BulkOptions(), "⟨en⟩"),
        (BulkOptions(language="en"), "⟨de⟩"),
        (BulkOptions(target="de"), "⟨de⟩"),
        (BulkOptions(language="de", target="en", sentences=False), "⟨en⟩"),
    ],
)
def test_the_languages_choose_the_direction(tmp_path: Path, options: BulkOptions, tag: str) -> None:
    bundle, opener = tiny_bundle(tmp_path, "both", pairs=PAIRS), Opener()
    (record,) = BulkTranslator(bundle.path, options, opener).translate_block(["wo ist der bahnhof heute"])
    assert "bahnhof" in record.text and not record.bad
    ((first, *_),) = opener.graphs[0].encoded
    assert bundle.target_vocabulary.piece_of(first) == tag


def test_a_direction_that_is_not_there_is_refused(tmp_path: Path) -> None:
    both, one = tiny_bundle(tmp_path, "both", pairs=PAIRS), tiny_bundle(tmp_path, "de-en")
    with pytest.raises(ConfigError, match="must be of de-en, en-de, which both translates, not de-de"):
        BulkTranslator(both.path, BulkOptions(language="de", target="de"), Opener()).open()
    with pytest.raises(ConfigError, match="must be of de-en, which de-en translates, not …-fr"):
        BulkTranslator(one.path, BulkOptions(target="fr"), Opener()).open()
    assert BulkTranslator(one.path, BulkOptions(target="en"), Opener()).open().manifest.name == "de-en"
