"""How far a file has come, beside it: what `--resume` goes on from after any end, and checks before it does."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from deploy.bulk.output import named
from models.bundle import MANIFEST, Bundle, sha256
from models.config import load_dataclass, to_mapping
from models.errors import ConfigError
from service.files.disk import sync_folder

FORMAT = 1
State: TypeAlias = Literal["running", "written", "finished"]
"""Lines are being translated; all are, and the output gets its name; done."""


@dataclass(frozen=True, slots=True)
class InputMark:
    """How much of an input is done.

    Attributes:
        name: as it was given.
        size: bytes on disk; None where it was no file.
        done: bytes of its content (decompressed) whose lines are done.
        digest: BLAKE2b of these.
    """

    name: str
    size: int | None
    done: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the lines so far.

    Attributes:
        lines: all of them.
        bad: those whose translation is missing, or not all of it is there.
        reasons: how often each finding was made.
    """

    lines: int = 0
    bad: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Journal:
    """What is written at every commit, after the output it speaks of is on disk.

    Attributes:
        state: see ``State``.
        bundle: digest of the bundle's manifest, which has the hash of every file.
        options: what else the translations depend on.
        inputs: per source.
        counts: of the lines.
        output, report: bytes of both files.
        seconds: spent on the lines, over all runs.
    """

    bundle: str
    options: Mapping[str, str]
    inputs: tuple[InputMark, ...]
    state: State = "running"
    counts: Counts = Counts()
    output: int = 0
    report: int = 0
    seconds: float = 0.0
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
        if len(self.inputs) != len(now.inputs):
            faults.append(f"there were {len(self.inputs)} inputs and are {len(now.inputs)}")
        faults += [
            f"the input {new.name} had {old.size} bytes and has {new.size}"
            for old, new in zip(self.inputs, now.inputs, strict=False)
            if old.size is not None and new.size is not None and old.size != new.size
        ]
        if faults:
            raise ConfigError(f"cannot resume: {'; '.join(faults)}. {BEGIN_AGAIN}")


BEGIN_AGAIN = "Resume with what it began with, or remove the journal to begin again"


def fingerprint(bundle: Bundle) -> str:
    """A digest of the bundle's manifest."""
    return sha256(bundle.path / MANIFEST)


def as_text(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as a journal has them."""
    return {name: json.dumps(value) for name, value in options.items()}


def new_hash() -> hashlib.blake2b:
    """What ``InputMark.digest`` is made with."""
    return hashlib.blake2b(digest_size=20)
