"""A strict loader of nested frozen dataclasses from plain mappings (parsed TOML or JSON).

Written here because ``models`` and ``training`` must run where pydantic is not installed; the service's own edges use
pydantic. Bounds are declared on the field with :func:`bounded` and checked in one place.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from tandem.models.errors import ConfigError, TandemError

T = TypeVar("T")


def bounded(default: Any = dataclasses.MISSING, *, at_least: float | None = None, at_most: float | None = None) -> Any:
    """A dataclass field whose number (or numbers) must lie within inclusive bounds."""
    return dataclasses.field(default=default, metadata={"at_least": at_least, "at_most": at_most})


def load_dataclass(cls: type[T], mapping: Mapping[str, Any], where: str) -> T:
    """Build ``cls`` from ``mapping``, refusing what it does not know.

    Args:
        cls: a dataclass; its fields may be numbers, strings, booleans, literals, tuples, mappings, optionals of these,
            or further dataclasses.
        mapping: the parsed table.
        where: what to call the table in messages, such as ``"dpn.toml [model]"``.

    Raises:
        ConfigError: for every unknown, missing, ill-typed or out-of-bounds field, all in one message.
    """
    faults: list[str] = []
    value = _build(cls, mapping, where, faults)
    if faults:
        raise ConfigError("; ".join(faults))
    return typing.cast(T, value)


def to_mapping(value: Any) -> Any:
    """The plain form of a config: dataclasses become dicts and tuples become lists, as JSON and TOML have them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_mapping(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_mapping(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_mapping(item) for key, item in value.items()}
    return value


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """``own`` over ``base``, two parsed tables: tables key by key, everything else replaced."""
    table = dict(base)
    for key, value in own.items():
        both = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        table[key] = merged(base[key], value) if both else value
    return table


@functools.cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    """Its annotations, evaluated once: a manifest has hundreds of tables of a few classes."""
    return typing.get_type_hints(cls)


def _build(cls: type[Any], mapping: Any, where: str, faults: list[str]) -> Any:
    if not isinstance(mapping, Mapping):
        faults.append(f"{where} must be a table, but is {mapping!r}")
        return None
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    hints = _hints(cls)  # type: ignore[arg-type]  # a class of dataclasses is hashable, whatever its instances are
    for key in mapping:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            faults.append(f"{where} has no key {key!r}: {hint}known keys are {', '.join(sorted(fields))}")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in mapping:
            values[name] = _convert(hints[name], mapping[name], f"{where} {name}", faults)
            _check_bounds(field, values[name], f"{where} {name}", faults)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            faults.append(f"{where} lacks the key {name!r}")
    if faults:
        return None
    try:
        return cls(**values)
    except TandemError as error:
        faults.append(f"{where}: {error}")
        return None


def _convert(hint: Any, value: Any, where: str, faults: list[str]) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(a for a in arguments if a is not type(None)), value, where, faults)
    if origin is Literal:
        if value not in arguments:
            faults.append(f"{where} must be one of {', '.join(map(repr, arguments))}, but is {value!r}")
        return value
    if origin is tuple:
        return _convert_tuple(arguments, value, where, faults)
    if origin in (dict, Mapping) or hint is dict:
        if not isinstance(value, Mapping):
            faults.append(f"{where} must be a table, but is {value!r}")
            return {}
        item = arguments[1] if arguments else Any
        return {str(key): _convert(item, each, f"{where} {key}", faults) for key, each in value.items()}
    if dataclasses.is_dataclass(hint):
        return _build(typing.cast("type[Any]", hint), value, where, faults)
    return _scalar(hint, value, where, faults)


def _convert_tuple(arguments: tuple[Any, ...], value: Any, where: str, faults: list[str]) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        faults.append(f"{where} must be a list, but is {value!r}")
        return ()
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_convert(arguments[0], item, f"{where}[{i}]", faults) for i, item in enumerate(value))
    if len(arguments) != len(value):
        faults.append(f"{where} must have {len(arguments)} items, but has {len(value)}")
        return ()
    return tuple(
        _convert(a, item, f"{where}[{i}]", faults) for i, (a, item) in enumerate(zip(arguments, value, strict=True))
    )


def _scalar(hint: Any, value: Any, where: str, faults: list[str]) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Any or (isinstance(hint, type) and type(value) is hint):
        return value
    faults.append(f"{where} must be of type {getattr(hint, '__name__', hint)}, but is {value!r}")
    return value


def _check_bounds(field: dataclasses.Field[Any], value: Any, where: str, faults: list[str]) -> None:
    low, high = field.metadata.get("at_least"), field.metadata.get("at_most")
    for item in value if isinstance(value, tuple) else (value,):
        if not isinstance(item, int | float):
            continue
        if not math.isfinite(item) and (low, high) != (None, None):
            faults.append(f"{where} must be a finite number, but is {item}")
        elif low is not None and item < low:
            faults.append(f"{where} must be at least {low}, but is {item}")
        elif high is not None and item > high:
            faults.append(f"{where} must be at most {high}, but is {item}")
