"""A recipe as the file that people read and change: what is set, with remarks.

Written here, for a serialiser such as tomli-w writes no comments; JSON's strings, numbers and lists are TOML's.
"""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Mapping
from typing import Any

from training.recipe import Recipe

WIDTH = 118
Remarks = Mapping[str, str]  # dotted key -> what to say above it


def recipe_toml(recipe: Recipe, remarks: Remarks, head: str) -> str:
    """The recipe's keys that have no default, differ from it or are remarked on; ``load_recipe`` reads the recipe back.

    Args:
        recipe: what to write.
        remarks: by dotted key, such as ``"training.updates"``; a table's stands above it, and that of a key with ``+``
            at its end below the table. Lines break where they are too long; a text with line ends keeps its lines.
        head: the first lines.
    """
    lines = [*comment(head), *_table("", recipe, remarks)]
    return "\n".join(lines) + "\n"


def table(title: str, value: Any, remarks: Remarks | None = None) -> list[str]:
    """The lines of one table, with the tables inside it."""
    return _table(title, value, remarks or {})


def comment(text: str) -> list[str]:
    """The lines of a remark."""
    lines = text.split("\n") if "\n" in text else textwrap.wrap(text, WIDTH)
    return [f"# {line}".rstrip() for line in lines]


def _table(title: str, value: Any, remarks: Remarks) -> list[str]:
    name = title.strip("[]")
    items = dict(value) if isinstance(value, Mapping) else _shown(value, name, remarks)
    plain = {key: one for key, one in items.items() if not _is_table(one)}
    lines: list[str] = []
    if title and (plain or isinstance(value, Mapping) or title.startswith("[[")):
        lines += ["", *comment(remarks.get(name, "")), title]
    for key, one in plain.items():
        dotted = f"{name}.{key}" if name else key
        lines += [*comment(remarks.get(dotted, "")), f"{key} = {_scalar(one)}"]
    for key, one in items.items():
        dotted = f"{name}.{key}" if name else key
        if _is_table(one):
            several = isinstance(one, tuple)
            for each in one if several else (one,):
                lines += _table(f"[[{dotted}]]" if several else f"[{dotted}]", each, remarks)
            if f"{dotted}+" in remarks:
                lines += ["", *comment(remarks[f"{dotted}+"])]
    return lines


def _shown(value: Any, name: str, remarks: Remarks) -> dict[str, Any]:
    """The fields to write: not those that are left at their defaults and that nothing is said about."""
    found = {}
    for field in dataclasses.fields(value):
        one = getattr(value, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        dotted = f"{name}.{field.name}" if name else field.name
        told = any(key.rstrip("+") == dotted or key.startswith(f"{dotted}.") for key in remarks)
        if one is not None and (one != default or told):
            found[field.name] = one
    return found


def _is_table(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and dataclasses.is_dataclass(value[0])
    return isinstance(value, Mapping) or dataclasses.is_dataclass(value)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
