"""What a check is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from models.errors import ConfigError

Verdict = Literal["passed", "failed", "skipped"]


class MissingTool(Exception):
    """A tool is neither installed nor can it be had here; the message says what was tried and what to do."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report.

    Attributes:
        name: what is checked, and with what.
        faults: looks; returns what is wrong, one sentence or a tool's words each. May raise MissingTool.
    """

    name: str
    faults: Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a check; ``words`` are the faults, or why it was skipped."""

    name: str
    verdict: Verdict
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.verdict:8}{self.name}", *(_indented(word) for word in self.words)])


def outcome_of(check: Check, *, strict: bool) -> Outcome:
    """Run a check.

    Args:
        check: what to run.
        strict: a missing tool is a failure, not a reason to skip.
    """
    try:
        faults = tuple(check.faults())
    except MissingTool as missing:
        return Outcome(check.name, "failed" if strict else "skipped", (str(missing),))
    except ConfigError as error:
        missing_package = isinstance(error.__cause__, ModuleNotFoundError) and not strict
        return Outcome(check.name, "skipped" if missing_package else "failed", (str(error),))
    except (OSError, UnicodeError, ValueError) as error:  # a file that is gone, or is not what its name says
        return Outcome(check.name, "failed", (f"{type(error).__name__}: {error}",))
    return Outcome(check.name, "failed" if faults else "passed", faults)


def _indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.strip().splitlines())
