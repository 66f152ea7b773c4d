"""Every error the project raises on purpose, in one tree.

    TandemError
    ├── ConfigError        a recipe, model configuration or setting is wrong
    ├── CorpusError        a training or evaluation file is missing, malformed or not parallel
    ├── VocabularyError    a vocabulary cannot be built, read or used
    ├── RefusedFiles       ``faults`` lists every reason at once
    │   ├── BundleError        a bundle is refused
    │   └── ForeignModelError  another program's model cannot be imported
    ├── CheckpointError    a training checkpoint cannot be read or does not fit the recipe
    ├── OptionError        a decoding option is out of bounds; ``field``, ``bound``, ``value``
    ├── DecodingError      a step produced numbers that cannot be right (NaN, infinity)
    ├── DeviceLost         a device fails in a way that lasts
    └── DataInUse          another process works on a folder

A message says what was wrong, the bound and the value, and what to do. The service maps this tree, and its own
HTTP-level errors, to status codes in one place (``service/http/error_replies.py``).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Of a write that finds no room: such an OSError names no file."""


class TandemError(Exception):
    """Root of the tree: catch this to catch everything the project raises on purpose."""


class ConfigError(TandemError):
    """A recipe, model configuration or setting is wrong."""


class CorpusError(TandemError):
    """A training or evaluation file is missing, malformed or not parallel."""


class VocabularyError(TandemError):
    """A vocabulary cannot be built, read or used."""


class RefusedFiles(TandemError):
    """Files that are refused for several reasons at once.

    Attributes:
        faults: every reason, one sentence each.
    """

    def __init__(self, path: object, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__(f"{path}: " + "; ".join(self.faults))


class BundleError(RefusedFiles):
    """A bundle is refused."""


class CheckpointError(TandemError):
    """A training checkpoint cannot be read or does not fit the recipe."""


class ForeignModelError(RefusedFiles):
    """Another program's model cannot be imported."""


class OptionError(TandemError):
    """A decoding option is out of bounds.

    Attributes:
        field: the option's name.
        bound: the bound it broke, in words (``"at most 10"``).
        value: what was given.
    """

    def __init__(self, field: str, bound: str, value: object) -> None:
        self.field, self.bound, self.value = field, bound, value
        super().__init__(f"{field} must be {bound}, but is {value!r}")


class DecodingError(TandemError):
    """A step produced numbers that cannot be right (NaN or infinity)."""


class DeviceLost(TandemError):
    """A device fails in a way that lasts: whatever this process asks of it from now on fails too."""


class DataInUse(TandemError):
    """Another server works on the folder. No fault of the settings: one that is just ending lets go of it."""
