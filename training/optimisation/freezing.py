"""Parts of a model that training leaves as they are."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from tandem.models.errors import ConfigError


def freeze(model: nn.Module, patterns: Sequence[str]) -> None:
    """Keep the parameters that patterns name from being trained; no gradient is computed for them.

    Args:
        model: whose parameters are frozen.
        patterns: names of parts (``encoder`` is all below it) or of parameters, with ``*``, ``?`` and ``[...]``.

    Raises:
        ConfigError: a pattern names nothing, or nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    if unknown := [pattern for pattern in patterns if not any(_names(pattern, name) for name in names)]:
        parts = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
        raise ConfigError(
            f"training freeze must name parts or parameters of the model, but {', '.join(map(repr, unknown))}"
            f" {'names' if len(unknown) == 1 else 'name'} none: its parts are {parts}"
        )
    for name, parameter in model.named_parameters():
        if any(_names(pattern, name) for pattern in patterns):
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(f"training freeze must leave something to train, but {', '.join(patterns)} freezes all of it")


def _names(pattern: str, parameter: str) -> bool:
    return fnmatchcase(parameter, pattern) or fnmatchcase(parameter, f"{pattern}.*")
