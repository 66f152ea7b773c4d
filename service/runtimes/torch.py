"""PyTorch: the runtime for GPUs, and on the CPU the reference that the exported graphs are compared with."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, cast

import torch

from tandem.models.architectures.protocol import max_positions
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import Graphs
from tandem.models.steps.device_search import DeviceCounters, DeviceSearch, OpenSearch, SearchRoom
from tandem.models.steps.devices import check_device
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
from tandem.service.ports import extras, load
from tandem.service.runtimes.placement import Placement

TYPES = {"float32": torch.float32, "float16": torch.float16, "bf16": torch.bfloat16}
_opened: weakref.WeakSet[TorchGraphs | DeviceSearch] = weakref.WeakSet()


def open_torch_graphs(bundle: Bundle, threads: int, precision: str, placement: Placement) -> Graphs:
    """A bundle's model, built from its weights where it is to run, with a search there where an extra brings one.

    Raises:
        ConfigError: the architecture or its configuration is unknown to this version, there is no such device, or it
            has no such precision.
        BundleError: the weights do not fit the configuration.
    """
    device = check_device(placement.device)
    gpu = device.type == "cuda"
    if not gpu:
        torch.set_num_threads(threads)
    elif precision not in TYPES:
        raise ConfigError(f"precision must be one of {', '.join(TYPES)} on a GPU, but is {precision!r}")
    elif precision == "float32":  # not in TF32, as cuDNN's products are unless they are told
        matmul, cudnn = torch.backends.cuda.matmul, cast("Any", torch.backends.cudnn)
        matmul.allow_tf32 = cudnn.allow_tf32 = False  # the former flag: torch raises where the two do not agree
        for products in (matmul, cudnn.rnn, cudnn.conv):
            products.fp32_precision = "ieee"
    model: AnyModel = load_bundle_model(bundle).to(device=device, dtype=TYPES[precision] if gpu else torch.float32)
    search = device_search(device.type)
    if search is None and gpu:
        torch.cuda.set_per_process_memory_fraction(placement.memory, device)
    graphs = TorchGraphs(model) if search is None else search(model, _room(bundle, model, placement))
    _opened.add(graphs)
    return graphs


def device_search(kind: str) -> OpenSearch | None:
    """What opens a search on a device of that kind, ``cpu`` or ``cuda``; None where no extra brings one."""
    places = (extra.searches[kind] for extra in extras() if kind in extra.searches)
    return next(map(load, places), None)


def _room(bundle: Bundle, model: AnyModel, placement: Placement) -> SearchRoom:
    """Room for every sentence that a request may hold."""
    limits, positions = bundle.manifest.limits, max_positions(model.config)
    target = limits.max_target_tokens + 1
    return SearchRoom(
        sentences=placement.sentences,
        source=limits.max_source_tokens + 1,
        target=target if positions is None else min(target, positions),
        suppressed=len(bundle.manifest.decoding.suppressed),
        memory=placement.memory,
    )


def device_name(name: str) -> str:
    """The device that a setting means, ``cpu`` or such as ``cuda:0``. Raises ConfigError where it is not here."""
    return str(check_device(name))


def total_memory(name: str) -> int:
    """Bytes that a GPU such as ``cuda:0`` has."""
    return int(torch.cuda.get_device_properties(name).total_memory)


def device_work() -> Iterator[tuple[str, DeviceCounters]]:
    """The device of each model that is open with a search there, and what that has done."""
    for graphs in list(_opened):
        if isinstance(graphs, DeviceSearch):
            yield str(graphs.device), graphs.counters


def device_memory() -> dict[tuple[str, str], int]:
    """Bytes of GPU memory by device and kind: ``allocated`` to tensors, ``reserved`` by this process, ``free`` there.

    Empty where this process has not used a GPU. Of one that it does not use nothing is asked, which would take some
    hundred megabytes there.
    """
    found = {}
    for device in {graphs.device for graphs in list(_opened) if graphs.device.type == "cuda"}:
        found[str(device), "allocated"] = torch.cuda.memory_allocated(device)
        found[str(device), "reserved"] = torch.cuda.memory_reserved(device)
        found[str(device), "free"] = torch.cuda.mem_get_info(device)[0]
    return found
