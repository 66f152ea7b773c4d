"""The corpora of the papers, read from the table beside this module (``corpora.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from models.config import load_dataclass, merged
from models.errors import ConfigError
from training.corpora.specs import CorpusSpec

TABLE = Path(__file__).with_name("corpora.toml")


def read_table(text: str) -> tuple[CorpusSpec, ...]:
    """The corpora of a table, in its order.

    Raises:
        ConfigError: a key is unknown, missing or ill-typed, or a corpus is not whole.
    """
    table = tomllib.loads(text)
    ldc = {
        number: {
            "name": f"{number} ({title})",
            "url": f"https://catalog.ldc.upenn.edu/{number}",
            "terms": "a licence of the LDC",
        }
        for number, title in table["ldc"].items()
    }
    entries: dict[str, dict[str, Any]] = {}
    for name, own in table["corpora"].items():
        entries[name] = merged(entries.get(own.pop("base", ""), {}), own)
    return tuple(_corpus(name, deepcopy(entry), table["downloads"] | ldc) for name, entry in entries.items())


def _corpus(name: str, entry: dict[str, Any], downloads: Mapping[str, Any]) -> CorpusSpec:
    fields = entry["fields"]
    parts = {part: _part(keys, fields, downloads) for part, keys in entry.pop("parts").items()}
    splits = [
        {**keys, "name": split, "parts": [parts[part] for part in keys["parts"]]}
        for split, keys in entry["splits"].items()
    ]
    return load_dataclass(CorpusSpec, {"languages": fields, **entry, "name": name, "splits": splits}, f"corpus {name}")


def _part(keys: dict[str, Any], fields: list[str], downloads: Mapping[str, Any]) -> dict[str, Any]:
    """A part with the names of its files, column by column, and with its download."""
    names, columns = keys.pop("names", ()), keys.pop("columns", ())
    kinds = dict.fromkeys(fields, "src") | {fields[-1]: "ref"}
    files = [[column] for column in columns] or [
        [name.format(field=field, fields=fields, kind=kind) for name in names] for field, kind in kinds.items()
    ]
    return {**keys, "files": files, "download": downloads[keys["download"]]}


CORPORA = read_table(TABLE.read_text(encoding="utf-8"))


def find_corpus(name: str) -> CorpusSpec:
    """The corpus of that name.

    Raises:
        ConfigError: there is none; the message lists the names.
    """
    for corpus in CORPORA:
        if corpus.name == name:
            return corpus
    raise ConfigError(f"no corpus is called {name!r}; known are {', '.join(corpus.name for corpus in CORPORA)}")
