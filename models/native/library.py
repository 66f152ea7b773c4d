"""Where the compiled operators lie, and whether they may be used."""

from __future__ import annotations

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
