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


def device_memory() -> dict[tuple[str, str], int]:
    """Bytes of GPU memory by device and kind: ``allocated`` to tensors, ``reserved`` by this process, ``free`` there.

    Empty where this process has not used a GPU.
    """
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return {}
    found = {}
    for number in range(torch.cuda.device_count()):
        device = f"cuda:{number}"
        found[device, "allocated"] = torch.cuda.memory_allocated(number)
        found[device, "reserved"] = torch.cuda.memory_reserved(number)
        found[device, "free"] = torch.cuda.mem_get_info(number)[0]
    return found
