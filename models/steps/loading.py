"""A bundle's weights as a PyTorch model, ready for inference."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor, nn

from tandem.models.architectures.protocol import ModelConfig, feature_widths
from tandem.models.architectures.registry import build_model, load_config, stored_keys
from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError
from tandem.models.steps.torch_graphs import AnyModel


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and persistent buffers that make a model, each shared one once, by name."""
    stored = model.state_dict()
    return {**dict(model.named_parameters()), **{k: b for k, b in model.named_buffers() if k in stored}}


def bundle_config(bundle: Bundle, names: Collection[str]) -> ModelConfig:
    """The configuration of a bundle's model; ``names``: of its weights.

    Raises:
        ConfigError: the architecture or its configuration is unknown to this version.
    """
    manifest = bundle.manifest
    keys = stored_keys(manifest.architecture, manifest.config, names)
    return load_config(manifest.architecture, keys, f"{manifest.name} manifest.json [config]")


def load_bundle_model(bundle: Bundle) -> AnyModel:
    """The model of a bundle, in float32 on the CPU, prepared for inference.

    Raises:
        ConfigError: the architecture or its configuration is unknown to this version.
        BundleError: the sources or the weights do not fit the configuration; every fault is listed.
    """
    manifest, weights = bundle.manifest, bundle.weights()
    config = bundle_config(bundle, weights)
    if feature_widths(config) != bundle.feature_widths:
        widths = f"{list(feature_widths(config))}, but its manifest's vocabularies say {list(bundle.feature_widths)}"
        raise BundleError(bundle.path, [f"the model reads sources with the feature widths {widths}"])
    model = build_model(manifest.architecture, config)
    model.prepare_for_inference()  # a bundle holds what is left then
    if faults := fill(model, {name: torch.from_numpy(array) for name, array in weights.items()}):
        raise BundleError(bundle.path, [f"the weights: {fault}" for fault in faults])
    return model


def fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> list[str]:
    """Copy tensors into a model; returns what is missing, unknown or of another shape, and then copies nothing."""
    own = model_tensors(model)
    faults = [f"lacks {name}" for name in own if name not in tensors]
    faults += [f"has an unknown tensor {name}" for name in tensors if name not in own]
    faults += [
        f"{name} has shape {tuple(tensors[name].shape)} instead of {tuple(tensor.shape)}"
        for name, tensor in own.items()
        if name in tensors and tensors[name].shape != tensor.shape
    ]
    if not faults:
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(tensors[name])
    return faults
