"""PyTorch, eager: the reference that the exported graphs are compared with."""

from __future__ import annotations

import torch

from models.bundle import Bundle
from models.graphs import TorchGraphs
from models.loading import load_bundle_model
from models.search import Graphs


def open_torch_graphs(bundle: Bundle, threads: int) -> Graphs:
    """A bundle's model, built from its weights, in float32 on the CPU.

    Raises:
        ConfigError: the architecture or its configuration is unknown to this version.
        BundleError: the weights do not fit the configuration.
    """
    torch.set_num_threads(threads)
    return TorchGraphs(load_bundle_model(bundle))
