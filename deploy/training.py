"""`tandem train`: it stands in deploy, since only it knows the service and the extras."""

from __future__ import annotations

from tandem.service.ports import extras, load
from tandem.service.runtimes.torch import device_search
from tandem.service.telemetry.cgroups import usable_cores
from tandem.training.experiment import ExperimentOptions
from tandem.training.loop.commands import Means, TrainOptions
from tandem.training.loop.commands import train as train_prepared


def train(options: TrainOptions, changes: ExperimentOptions = ExperimentOptions()) -> None:
    """Train what `tandem prepare` has prepared. Ctrl-C saves a checkpoint first; `--resume` continues exactly.

    `torchrun --nproc-per-node 2 -m tandem train RECIPE` shares every update's batches between two processes; with
    `--device cuda` each has a GPU of its own. The first alone prints, validates and saves.

    Example: tandem train training/recipes/tatoeba-de-en/dpn.toml
    """
    train_prepared(options, changes, means())


def means() -> Means:
    """What trainings have here besides torch."""
    augmentation = next((load(extra.augmentation) for extra in extras() if extra.augmentation), None)
    selection = next((load(extra.selection) for extra in extras() if extra.selection), None)
    return Means(device_search("cuda"), augmentation, selection, usable_cores())
