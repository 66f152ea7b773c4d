"""Where the compiled operators lie, whether they may be used, and what sessions get of them."""

from __future__ import annotations

import os
from collections import Counter
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


def open_operators() -> Operators | None:
    """The compiled operators with what writes them into graphs; None as of ``library``."""
    from tandem.service.runtimes.sessions import Operators  # whoever only builds needs no runtime

    built = library()
    return None if built is None else Operators(built, fused)


def fused(path: Path) -> tuple[bytes, Counter[str]]:
    """A graph with the operators in it, as ``Operators.fuse`` gives it."""
    import onnx  # where it is used: a small installation runs graphs as they are

    from tandem.extras.native.fusing import fuse

    model = onnx.load(path, load_external_data=False)
    found = fuse(model, path.parent)
    return model.SerializeToString() if found else b"", found
