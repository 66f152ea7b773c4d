"""Removes from an image's environment what serving does not read: packages' tests, headers, type stubs, locales.

    python slim.py FOLDER_OF_AN_ENVIRONMENT

Licences and metadata stay.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

# Folders and files by the package that they lie in. None is imported by the package's other modules, which the image's
# own tests show: a translation, a file of each kind and the page are asked for.
_UNUSED = (
    "babel/messages",
    "lxml/html",
    "lxml/includes",
    "lxml/isoschematron",
    "lxml/objectify*.so",
    "numpy/distutils",
    "numpy/f2py",
    "onnxruntime/capi/libonnxruntime.so*",  # for C programs: Python's module has all of it in itself
    "onnxruntime/datasets",
    "onnxruntime/quantization",
    "onnxruntime/tools",
    "onnxruntime/transformers",
)
_LOCALES = ("root", "de", "en", "es", "fr", "it", "nl", "pt")  # of Babel, whose dates and amounts are written
_LEXERS = ("__init__", "_mapping", "python")  # of pygments, which colours a command's traceback
_TESTS = ("tests", "test", "_tests")
_SUFFIXES = (".pyi", ".h", ".hpp", ".pxd", ".pyx", ".a")


def main(environment: Path) -> None:
    """Remove it all, and say how much that was."""
    before = _bytes(environment)
    (packages,) = environment.glob("lib/python3*/site-packages")
    for path in [path for name in _UNUSED for path in packages.glob(name)] + [
        path for path in packages.rglob("*") if path.is_dir() and path.name in _TESTS
    ]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for path in list(packages.rglob("*")):
        if path.is_file() and path.suffix in _SUFFIXES:
            path.unlink()
    for path in (packages / "pygments" / "lexers").rglob("*.py*"):
        if path.name.partition(".")[0] not in _LEXERS:
            path.unlink()
    for path in (packages / "babel" / "locale-data").glob("*.dat"):
        if path.stem not in _LOCALES:
            path.unlink()
    print(
        f"{environment}: {before / 1e6:.0f} MB, {_bytes(environment) / 1e6:.0f} MB without what serving does not read"
    )


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
