"""The import of a student in a process of its own, which this module does not make import PyTorch."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import Any

from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.students import import_student, open_student
from tandem.models.errors import ForeignModelError


def import_alone(folder: Path, out: Path, asked: Asked) -> dict[str, Any]:
    """Seconds, the most memory that this process has had, and whether it has imported PyTorch.

    Raises:
        ForeignModelError: the folder has no student in 8 bits, or one that cannot be imported.
    """
    started = time.perf_counter()
    weights = open_student(folder)
    if weights is None:
        raise ForeignModelError(folder, ["it has no student in 8 bits"])
    import_student(folder, weights, out, asked, Labels())
    return {
        "seconds": time.perf_counter() - started,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "torch": "torch" in sys.modules,
    }
