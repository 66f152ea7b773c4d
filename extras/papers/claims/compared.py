"""The tables of the papers that small runs are set beside, as ``claims.toml`` lists them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tandem import training
from tandem.models.config import load_dataclass
from tandem.training.recipe import Recipe, load_recipe

RECIPES = Path(training.__file__).parent / "recipes"
TABLE = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True, slots=True)
class Family:
    """One table of a paper.

    Attributes:
        small: the recipe that every variant starts from.
        published: the recipes of the table's rows, as patterns.
        keys: what a variant takes over of its published recipe's ``[model]``.
        scaled: sizes in ``[model]`` that are the published recipe's times so much.
        model: what all variants have otherwise than the small recipe.
        training: likewise, in ``[training]``.
    """

    small: str
    published: tuple[str, ...]
    keys: tuple[str, ...]
    scaled: dict[str, float] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

    def rows(self) -> dict[str, Recipe]:
        """The published recipes by name, the plainest first."""
        return {path.stem: load_recipe(path) for path in self._paths()}

    def _paths(self) -> list[Path]:
        paths = {path for pattern in self.published for path in RECIPES.glob(pattern)}
        return sorted(paths, key=lambda path: (len(path.stem), path.stem))

    def only(self, rows: Collection[str]) -> Family:
        """The same with no more than these rows."""
        paths = [path.relative_to(RECIPES).as_posix() for path in self._paths() if path.stem in rows]
        return replace(self, published=tuple(paths))

    def text(self, name: str, published: Recipe, settings: Mapping[str, Any]) -> str:
        """A variant's recipe, as TOML: of strings, numbers, truth values and lists of them JSON is."""
        taken = {key: published.model[key] for key in self.keys if key in published.model}
        sizes = {key: _scaled(published.model[key], factor) for key, factor in self.scaled.items()}
        head = {"base": str((RECIPES / self.small).resolve()), "name": name}
        tables = [("", head), ("[model]", self.model | taken | sizes), ("[training]", self.training | dict(settings))]
        return "\n".join(
            f"{title}\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
            for title, table in tables
        ).lstrip()


def _scaled(size: Any, factor: float) -> Any:
    return [_scaled(one, factor) for one in size] if isinstance(size, list | tuple) else round(size * factor)


def families() -> dict[str, Family]:
    """All of them, by name."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: load_dataclass(Family, one, f"{TABLE.name} [{name}]") for name, one in table.items()}
