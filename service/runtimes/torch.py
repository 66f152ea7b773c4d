"""PyTorch, eager: the reference that the exported graphs are compared with."""

from __future__ import annotations

import torch

from models.bundle import Bundle
from models.graphs import TorchGraphs
from models.registry import build_model, load_config
from models.search import Graphs


def open_torch_graphs(bundle: Bundle, threads: int) -> Graphs:
    """A bundle's model, built from its weights, in float32 on the CPU.

    Raises:
        ConfigError: the architecture or its configuration is unknown to this version.
        BundleError: the weights do not fit the configuration.
    """
    torch.set_num_threads(threads)
    manifest = bundle.manifest
    config = load_config(manifest.architecture, manifest.config, f"{manifest.name} manifest.json [config]")
    model = build_model(manifest.architecture, config)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in bundle.weights().items()})
    model.eval()
    return TorchGraphs(model)
