"""A recipe as the file that people read and change: what is set, with remarks."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.items import AoT, Table

from training.data.config import CorpusConfig
from training.recipe import Recipe

WIDTH = 118
Remarks = Mapping[str, str]  # dotted key -> what to say of it


def recipe_toml(recipe: Recipe, remarks: Remarks, head: str) -> str:
    """The recipe's keys that have no default, differ from it or are remarked on; ``load_recipe`` reads the recipe back.

    Args:
        recipe: what to write.
        remarks: by dotted key, such as ``"training.updates"``; a table's is the first in it, and that of a key with
            ``+`` at its end stands below the table. Lines break where they are too long; a text with line ends keeps
            its lines.
        head: the first lines.
    """
    document = tomlkit.document()
    _remark(document, head)
    _fill(document, "", recipe, remarks)
    return tomlkit.dumps(document)


def corpora_toml(corpora: Sequence[CorpusConfig]) -> str:
    """The tables ``[[data.corpora]]`` of a recipe, one below the other."""
    tables = (_table("data.corpora", corpus, {}).as_string().strip() for corpus in corpora)
    return "\n".join(f"[[data.corpora]]\n{table}" for table in tables)


def _remark(container: Container | Table, text: str) -> None:
    lines = text.split("\n") if "\n" in text else textwrap.wrap(text, WIDTH)
    for line in lines:
        container.add(tomlkit.comment(line))


def _fill(container: Container | Table, name: str, value: Any, remarks: Remarks) -> None:
    """Put the keys of a table into it, those of tables inside it last."""
    keys = dict(value) if isinstance(value, Mapping) else _shown(value, name, remarks)
    for key, item in sorted(keys.items(), key=lambda pair: _is_table(pair[1])):
        dotted = f"{name}.{key}" if name else key
        if not _is_table(item):
            _remark(container, remarks.get(dotted, ""))
            container.add(key, list(item) if isinstance(item, tuple) else item)
            continue
        items = item if isinstance(item, tuple) else (item,)
        tables = [_table(dotted, each, remarks) for each in items]
        container.add(key, AoT(tables) if isinstance(item, tuple) else tables[0])
        if f"{dotted}+" in remarks:
            container.add(tomlkit.nl())
            _remark(container, remarks[f"{dotted}+"])


def _table(name: str, value: Any, remarks: Remarks) -> Table:
    table = tomlkit.table()
    _remark(table, remarks.get(name, ""))
    _fill(table, name, value, remarks)
    return table


def _shown(value: Any, name: str, remarks: Remarks) -> dict[str, Any]:
    """The fields to write: not those that are left at their defaults and that nothing is said about."""
    shown = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        dotted = f"{name}.{field.name}" if name else field.name
        told = any(key.startswith(f"{dotted}.") or (key == dotted and not _is_table(item)) for key in remarks)
        if item is not None and (item != default or told):
            shown[field.name] = item
    return shown


def _is_table(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and dataclasses.is_dataclass(value[0])
    return isinstance(value, Mapping) or dataclasses.is_dataclass(value)
