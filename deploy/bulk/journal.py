"""What an output was begun with, and that it is finished: what `--resume` checks before it goes on.

How far a run has come is not here: the output's complete lines say so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from models.config import load_dataclass, to_mapping
from models.errors import ConfigError
from service.files.disk import sync_folder

FORMAT = 2


@dataclass(frozen=True, slots=True)
class InputMark:
    """An input.

    Attributes:
        name: as it was given.
        size: bytes on disk; None where it was no file.
        digest: of these; empty where it was no file.
    """

    name: str
    size: int | None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Journal:
    """Written before the first line and after the last.

    Attributes:
        bundle: digest of the bundle's manifest, which has the hash of every file.
        options: what else the translations depend on.
        inputs: per source.
        finished: lines of the whole output; None while it is being written.
        output: bytes of the whole output.
    """

    bundle: str
    options: Mapping[str, str]
    inputs: tuple[InputMark, ...]
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

    def check(self, now: Journal) -> None:
        """Refuse to go on where something is not as it was.

        Args:
            now: a journal of the present inputs, bundle and options.

        Raises:
            ConfigError: every difference.
        """
        faults = [] if self.bundle == now.bundle else ["the bundle is another one"]
        faults += [
            f"{name} was {self.options.get(name, 'unknown')} and is {now.options.get(name, 'unknown')}"
            for name in sorted({*self.options, *now.options})
            if self.options.get(name) != now.options.get(name)
        ]
        faults += _input_faults(self.inputs, now.inputs)
        if faults:
            raise ConfigError(
                f"cannot resume: {'; '.join(faults)}. Resume with what it began with, or remove the journal to begin"
                " again"
            )


def _input_faults(before: Sequence[InputMark], now: Sequence[InputMark]) -> Iterator[str]:
    if len(before) != len(now):
        yield f"there were {len(before)} inputs and are {len(now)}"
    for old, new in zip(before, now, strict=False):
        if old.size is None or new.size is None:
            continue
        if old.size != new.size:
            yield f"the input {new.name} had {old.size} bytes and has {new.size}"
        elif old.digest != new.digest:
            yield f"the input {new.name} has changed"


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of the disk name the file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
