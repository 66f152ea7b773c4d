"""What an output was begun with, and that it is finished: what `--resume` checks before it goes on.

How far a run has come is not here: the output's complete lines say so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from models.config import load_dataclass, to_mapping
from models.errors import ConfigError
from service.files.disk import sync_folder

FORMAT = 2


@dataclass(frozen=True, slots=True)
class Journal:
    """Written before the first line and after the last.

    Attributes:
        begun_with: what the translations depend on, by name: bundle, options, and the inputs by size and hash, which
            are empty where an input is no file.
        finished: lines of the whole output; None while it is being written.
        output: bytes of the whole output.
    """

    begun_with: Mapping[str, str]
    finished: int | None = None
    output: int = 0
    format: int = FORMAT

    @classmethod
    def read(cls, path: Path) -> Journal | None:
        """The journal of a file; None where there is none.

        Raises:
            ConfigError: it is damaged, or of another version.
        """
        try:
            mapping = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: no readable journal ({error}); remove it to begin again") from error
        if not isinstance(mapping, dict) or mapping.get("format") != FORMAT:
            raise ConfigError(f"{path}: no journal of this version; remove it to begin again")
        return load_dataclass(cls, mapping, str(path))

    def write(self, path: Path) -> None:
        """Replace the journal: a reader finds the old one or the new one, whenever it looks."""
        unfinished = path.with_name(f"{path.name}.new")
        with named(unfinished), unfinished.open("w", encoding="utf-8") as file:
            file.write(json.dumps(to_mapping(self), indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        sync_folder(path.parent)

    def check(self, now: Mapping[str, str]) -> None:
        """Refuse to go on where something is not as it was.

        Args:
            now: what the present run would begin with.

        Raises:
            ConfigError: every difference.
        """
        pairs = {name: (self.begun_with.get(name), now.get(name)) for name in sorted({*self.begun_with, *now})}
        faults = [
            f"{name} was {old or 'no file'} and is {new or 'no file'}"
            for name, (old, new) in pairs.items()
            if old != new
        ]
        if faults:
            raise ConfigError(
                f"cannot resume: {'; '.join(faults)}. Resume with what it began with, or remove the journal to begin"
                " again"
            )


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of the disk name the file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
