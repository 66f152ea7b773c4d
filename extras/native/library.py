"""Where the compiled operators lie, whether they may be used, and what sessions get of them."""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandem.service.runtimes.sessions import Operators

SWITCH = "TANDEM_NATIVE"
"""Variable that keeps the operators from being used where it is ``false``, ``off``, ``no`` or ``0``."""

LIBRARY = Path(__file__).with_name("libtandem.so")
"""What `tandem native` builds."""


def library() -> Path | None:
    """The compiled operators; None where they were not built, or are switched off."""
    off = os.environ.get(SWITCH, "").strip().lower() in ("false", "off", "no", "0")
    return LIBRARY if not off and LIBRARY.is_file() else None


def products_of(library: Path) -> str | None:
    """Which of its products of bytes this processor runs, such as ``vnni``; None where it has no such instructions.

    Raises:
        OSError: the library cannot be loaded.
    """
    name = ctypes.CDLL(str(library)).TandemProducts
    name.restype = ctypes.c_char_p
    found = name()
    return None if found is None else str(found.decode().removeprefix("products_"))


def open_operators() -> Operators | None:
    """The compiled operators with what writes them into graphs; None as of ``library``."""
    built = library()
    return None if built is None else operators_of(built)


def operators_of(library: Path) -> Operators:
    """A library's operators with what writes them into graphs."""
    from tandem.service.runtimes.sessions import Operators  # whoever only builds needs no runtime

    return Operators(library, partial(fused, library))


def fused(library: Path, path: Path) -> tuple[bytes, Counter[str]]:
    """A graph with a library's operators in it, as ``Operators.fuse`` gives it."""
    import onnx  # where it is used: a small installation runs graphs as they are

    from tandem.extras.native.fusing import fuse

    model = onnx.load(path, load_external_data=False)
    found = fuse(model, path.parent, products=products_of(library) is not None)
    return model.SerializeToString() if found else b"", found
