"""Where the compiled operators lie, and whether they may be used."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

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
