"""What flows into every constant product of a model on real text, and the 8-bit form that harms it least.

A form never depends on a row's batch-mates: its scale is a constant, or the maximum of the row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from tandem.models.search import SearchOptions, translate_batch
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
from tandem.training.export.quantise import Quantisation, quantise_weight, weight_key

Array = NDArray[Any]
ROWS_KEPT = 1024  # of each product, drawn evenly from all rows
PERCENTILES = (100.0, 99.999, 99.99, 99.9, 99.5)
WORTH = 0.75  # the row maximum costs five more nodes: it must take at least a quarter of the error away
NEGLIGIBLE = 0.012  # relative error of a static form that is let be: 8-bit weights alone make half as much
WIDE, WIDE_NEGLIGIBLE = 4, 0.02  # with so many outputs an input, scaling them back costs more than the product gains


@dataclass(slots=True, eq=False)
class Samples:
    """An even sample of the rows that entered a product, with the weight they met.

    Attributes:
        weight: outputs x inputs.
        rows: at most twice ``ROWS_KEPT`` rows.
        keys: a random number per row; the rows with the smallest are kept.
    """

    weight: Tensor
    rows: list[Array] = field(default_factory=list)
    keys: list[Array] = field(default_factory=list)

    def add(self, rows: Array, keys: Array) -> None:
        """Take rows in."""
        self.rows.append(rows)
        self.keys.append(keys)
        if sum(map(len, self.keys)) > 2 * ROWS_KEPT:
            self.rows, self.keys = [self.kept()], [np.sort(np.concatenate(self.keys))[:ROWS_KEPT]]

    def kept(self) -> Array:
        """The rows of the sample."""
        keys = np.concatenate(self.keys)
        kept: Array = np.concatenate(self.rows)[np.argsort(keys)[:ROWS_KEPT]]
        return kept


class _Watch(TorchFunctionMode):
    """Samples the inputs of every linear map that runs under it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[int, Samples] = {}
        self._rng = np.random.default_rng(0)

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is F.linear:
            x, weight = args[0], args[1]
            rows = x.detach().reshape(-1, x.size(-1)).float().numpy()
            samples = self.found.setdefault(weight.data_ptr(), Samples(weight.detach()))
            samples.add(rows.copy(), self._rng.random(len(rows)))
        return func(*args, **(kwargs or {}))


def calibrate(model: AnyModel, sources: Sequence[tuple[Array, ...]], options: SearchOptions) -> dict[str, Quantisation]:
    """Decode sentences and choose a form for each constant product that ran.

    Args:
        model: prepared for inference, on the CPU.
        sources: per sentence its sources, ids ending with EOS; some dozens of every length.
        options: of the search.

    Returns:
        The forms by :func:`weight_key`.
    """
    graphs = TorchGraphs(model)
    with _Watch() as watch, torch.inference_mode():
        # One sentence at a time: what pads a batch must not count.
        translate_batch(graphs, sources, options, token_budget=1)
    return {
        weight_key(one.weight.numpy().T): choose_form(one.kept(), one.weight.numpy()) for one in watch.found.values()
    }


def choose_form(rows: Array, weight_NK: Array) -> Quantisation:
    """The static form of least error, or the row maximum where that is worth its price."""
    quantised, scale = quantise_weight(weight_NK)
    weight_KN = (quantised * scale[:, None]).T
    exact = rows @ weight_NK.T
    zero = bool((rows >= 0).all())
    static = min(
        (
            _measured(Quantisation("static", *_range(rows, percentile), 0.0), rows, weight_KN, exact)
            for percentile in PERCENTILES
        ),
        key=lambda form: form.error,
    )
    outputs, inputs = weight_NK.shape
    if static.error <= (WIDE_NEGLIGIBLE if outputs > WIDE * inputs else NEGLIGIBLE):
        return static
    by_row = _measured(
        Quantisation("row_max", 1 / 255 if zero else 1 / 127, 0 if zero else 128, 0.0), rows, weight_KN, exact
    )
    return by_row if by_row.error < WORTH * static.error else static


def apply_form(form: Quantisation, rows: Array) -> Array:
    """Rows as the form represents them."""
    factor = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-30) if form.kind == "row_max" else np.float32(1)
    levels = np.clip(np.rint(rows / factor / np.float32(form.scale)) + form.zero_point, 0, 255)
    represented: Array = ((levels - form.zero_point) * np.float32(form.scale) * factor).astype(np.float32)
    return represented


def _range(rows: Array, percentile: float) -> tuple[float, int]:
    """Scale and zero point that cover the percentile on both sides; 0 is always exact."""
    low = min(float(np.percentile(rows, 100 - percentile)), 0.0)
    high = max(float(np.percentile(rows, percentile)), 0.0)
    scale = (high - low) / 255 or 1.0
    return scale, round(-low / scale)


def _measured(form: Quantisation, rows: Array, weight_KN: Array, exact: Array) -> Quantisation:
    error = np.square(apply_form(form, rows) @ weight_KN - exact).sum(axis=1)
    size = np.square(exact).sum(axis=1)
    size = np.maximum(size, max(float(size.mean()), 1e-20))  # rows near 0 are not held to their own size
    return Quantisation(form.kind, form.scale, form.zero_point, float(np.sqrt((error / size).mean())))
