"""Runs Joey NMT's training command and notes when each update begins: for the interpreter that has Joey NMT.

    PYTHON joey_runner.py CONFIG OUT [--precision bf16|float32] [--threads N] [--attention-dropout RATE]

Two things are changed in it, both in its favour: it refuses half precision on a CPU, and gets autocast to bfloat16;
it has one rate of dropout, and may get another on its attention weights.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

import torch


def noting(manager: Any, attention: Any, attention_dropout: float) -> Any:
    """Joey NMT's training manager, noting the beginning and the symbols of every update."""

    class Noting(manager):  # type: ignore[misc]  # another environment's
        noted: dict[str, Any]

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            for module in self.model.modules():
                if isinstance(module, attention):
                    module.dropout.p = attention_dropout
            type(self).noted = {
                "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
                "starts": [],
                "counts": [],
            }

        def _train_step(self, batch: Any) -> Any:
            self.noted["starts"].append(time.perf_counter())
            real = int(batch.src_mask.sum())
            self.noted["counts"].append([real, batch.src.numel(), int(batch.ntokens), batch.trg.numel()])
            return super()._train_step(batch)

    return Noting


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--precision", choices=["bf16", "float32"], default="bf16")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--attention-dropout", type=float, default=0.0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    training: Any = importlib.import_module("joeynmt.training")
    helpers: Any = importlib.import_module("joeynmt.helpers")
    layers: Any = importlib.import_module("joeynmt.transformer_layers")
    config = importlib.import_module("joeynmt.config").load_config(options.config)
    helpers.make_model_dir(Path(config["model_dir"]), overwrite=True)
    if options.precision == "bf16":
        parse, autocast = training.parse_global_args, {"device_type": "cpu", "enabled": True, "dtype": torch.bfloat16}
        training.parse_global_args = lambda *given, **named: parse(*given, **named)._replace(autocast=autocast)
    training.TrainManager = noting(training.TrainManager, layers.MultiHeadedAttention, options.attention_dropout)
    training.train(rank=0, world_size=None, cfg=config, skip_test=True)
    options.out.write_text(json.dumps(training.TrainManager.noted), encoding="utf-8")


if __name__ == "__main__":
    main()
