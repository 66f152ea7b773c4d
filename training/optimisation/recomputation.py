"""Gradient (activation) checkpointing of any architecture: layers are computed again instead of being remembered.

Of a layer only what goes in is kept until the backward pass, which runs it again with the same random numbers (Chen et
al. 2016, "Training Deep Nets with Sublinear Memory Cost"). ``torch.utils.checkpoint`` does it; what is decided here is
what counts as a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tandem.models.architectures.protocol import Seq2SeqModel


def pieces(model: Seq2SeqModel[Any, Any]) -> list[tuple[nn.Module, str]]:
    """What is computed again, as (module, name of its method): the outermost modules made of others.

    A layer runs a whole sequence in ``forward`` or, in a decoder, ``advance``. In a model that goes position by
    position ``advance`` is that very loop, and its parts are the pieces: the attention and the cells of one position.
    """
    methods = ("forward",) if model.recurrent else ("forward", "advance")
    found: list[tuple[nn.Module, str]] = []
    waiting = list(model.children())
    while waiting:
        module = waiting.pop(0)
        inner = list(module.children())
        own = [name for name in methods if _has(module, name)] if inner else []
        found += [(module, name) for name in own]
        if not own:
            waiting += inner
    return found


def _has(module: nn.Module, name: str) -> bool:
    return callable(getattr(type(module), name, None)) and getattr(type(module), name) is not nn.Module.forward


@contextmanager
def recomputed(model: Seq2SeqModel[Any, Any], wanted: bool) -> Iterator[None]:
    """Within it, a forward pass keeps only what goes into each piece; the backward pass may follow later."""
    if not wanted:
        yield
        return
    changed = pieces(model)
    for module, name in changed:
        setattr(module, name, _checkpointed(getattr(module, name)))
    try:
        yield
    finally:
        for module, name in changed:
            delattr(module, name)  # the class's own is seen again


def _checkpointed(method: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return method(*args, **kwargs)
        return checkpoint(method, *args, use_reentrant=False, **kwargs)

    return run
