"""Bundles that edit translations: files of two sources in, text out."""

from __future__ import annotations

from pathlib import Path

from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.run import Request, translate_files
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.bundle import Bundle
from tests.training.loop.test_postediting import bundle, folder

__all__ = ["bundle", "folder"]


def test_lines_come_out_as_text(bundle: Bundle, folder: Path) -> None:
    (folder / "source.txt").write_text("theba thede\n\ntheka\n", encoding="utf-8")
    (folder / "translation.txt").write_text("ba wrong de\n\nka uhm\n", encoding="utf-8")
    files = [folder / "source.txt", folder / "translation.txt"]
    translate_files(
        BulkTranslator(bundle.path, BulkOptions("torch", "float32")), Request(tuple(files), folder / "out.txt")
    )
    assert (folder / "out.txt").read_text(encoding="utf-8") == "ba right de\n\nka\n"
