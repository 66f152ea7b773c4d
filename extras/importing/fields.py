"""Reading somebody else's configuration: every field is used, known not to matter, or a fault that names it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_NEEDED: Any = object()
_BYTES = 64 * 2**20  # far above any real table of pieces


def read_table(path: Path, faults: list[str], *, needed: bool = True) -> dict[str, Any]:
    """A JSON object from a file; empty, with a fault, where it is none. ``needed``: whether its absence is one too."""
    if not path.is_file():
        faults += [f"{path.name} is missing"] if needed else []
        return {}
    if path.stat().st_size > _BYTES:
        faults.append(f"{path.name} must have at most {_BYTES} bytes, but has {path.stat().st_size}")
        return {}
    try:
        table = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        faults.append(f"{path.name} is not JSON: {error}")
        return {}
    if not isinstance(table, dict):
        faults.append(f"{path.name} must be a table, but is {type(table).__name__}")
        return {}
    return table


class Fields:
    """The fields of a configuration, taken one by one; faults gather in a list.

    Args:
        table: the fields.
        where: they stand, for messages.
        faults: that are added to.
        waived: fields that the user says do not matter.
    """

    def __init__(self, table: Mapping[str, Any], where: str, faults: list[str], waived: Sequence[str] = ()) -> None:
        self._table, self._where, self._faults = table, where, faults
        self._waived = set(waived)
        self._used: set[str] = set()

    def number(self, name: str, default: int = _NEEDED, *, least: int = 1, most: int | None = None) -> int:
        """A whole number of at least ``least``, and at most ``most`` where that is given."""
        value = self._take(name, default)
        if value is None:  # missing, and said so
            return least
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            bound = f"at least {least}" if most is None else f"from {least} to {most}"
            self._fault(name, f"a whole number, {bound}", value)
            return least
        return int(value)

    def real(self, name: str, default: float) -> float:
        """A number."""
        value = self._take(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            self._fault(name, "a number", value)
            return default
        return float(value)

    def flag(self, name: str, default: bool = _NEEDED) -> bool:
        """True or false."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            if value is not None:
                self._fault(name, "true or false", value)
            return False
        return value

    def choice(self, name: str, known: Mapping[str, T], default: str = _NEEDED) -> T:
        """What a name stands for."""
        value = self._take(name, default)
        if not isinstance(value, str) or value not in known:
            if value is not None:
                self._fault(name, f"one of {', '.join(known)}", value)
            return next(iter(known.values()))
        return known[value]

    def fixed(self, **values: Any) -> None:
        """Fields that, where they are given, must have this value: what others would mean is not implemented."""
        for name, wanted in values.items():
            value = self._take(name, wanted)
            if value is not None and value != wanted:
                self._fault(name, repr(wanted), value)

    def take(self, name: str, default: Any = None) -> Any:
        """A field as it is."""
        return self._take(name, default)

    def refuse(self, fault: str) -> None:
        """A fault that several fields make together."""
        self._faults.append(f"{self._where}: {fault}")

    def without_meaning(self, *names: str) -> None:
        """Fields that change nothing of what the model computes."""
        self._used.update(names)

    def finish(self) -> None:
        """A fault for every field that was not asked for."""
        for name in self._table:
            if name not in self._used and name not in self._waived:
                remedy = f"if it does not matter here, say --ignore {name}"
                self._faults.append(
                    f"{self._where}: the field {name} ({_short(self._table[name])}) is not supported; {remedy}"
                )

    def _take(self, name: str, default: Any) -> Any:
        self._used.add(name)
        if name in self._table and name not in self._waived:
            return self._table[name]
        if default is _NEEDED:
            self._faults.append(f"{self._where}: the field {name} is missing")
            return None
        return default

    def _fault(self, name: str, bound: str, value: Any) -> None:
        self._faults.append(f"{self._where}: {name} must be {bound}, but is {_short(value)}")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
