"""The processes that train together: what `torchrun` starts, or this one alone.

Over torch's own process groups rather than Accelerate, Lightning or DeepSpeed: the loop is ours, its state fits on one
device, and a few sums are all that is exchanged besides the gradients.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed

from tandem.models.errors import ConfigError

# The others wait this long for rank 0 to validate and save. A process that died is noticed by torchrun, not by this.
_PATIENCE = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among those that train together.

    What is exchanged here are numbers on the CPU (gloo), so that waiting for a validation costs no GPU anything.

    Attributes:
        rank: its number; 0 alone validates, logs and saves.
        count: how many there are, over all machines.
        device: where it computes: "cpu", "cuda", or with several processes a machine the "cuda:N" that is its own.
        launched: whether a launcher watches over it, which repeats the signals that it passes on.
        local_count: how many of them are on this machine.
    """

    rank: int = 0
    count: int = 1
    device: str = "cpu"
    launched: bool = False
    local_count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that validates, logs and saves."""
        return self.rank == 0

    def total(self, *numbers: float) -> list[float]:
        """The sum of each number over all processes, in float64."""
        if self.count == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64)
        distributed.all_reduce(sums)
        return sums.tolist()

    def of_first(self, *numbers: float) -> list[float]:
        """The numbers of rank 0, in float64; a NaN stays one."""
        if self.count == 1:
            return list(numbers)
        theirs = torch.tensor(numbers, dtype=torch.float64)
        distributed.broadcast(theirs, 0)
        return theirs.tolist()

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of every process, of one shape and type, on the CPU, by rank."""
        if self.count == 1:
            return [tensor]
        found = [torch.empty_like(tensor, device="cpu") for _ in range(self.count)]
        distributed.all_gather(found, tensor.cpu())
        return found

    def differing(self, number: int) -> Sequence[int]:
        """The number of every process where they are not all the same, else nothing."""
        found = [int(one) for one in self.gather(torch.tensor(number))]
        return found if len(set(found)) > 1 else []


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """Join the processes that a launcher such as ``torchrun`` has started; alone where there is none.

    It is told by the environment that ``torchrun`` sets: ``WORLD_SIZE``, ``RANK``, ``LOCAL_RANK``, ``MASTER_ADDR``,
    ``MASTER_PORT``, and ``LOCAL_WORLD_SIZE``, without which all are taken to be on this machine. Gradients go over NCCL
    between GPUs and over gloo between CPUs.

    Args:
        device: "cpu", or "cuda" for one GPU a process, by the process's number on its machine.

    Raises:
        ConfigError: the environment is incomplete, or a machine has fewer GPUs than processes.
    """
    numbers = {name: os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    if not any(numbers.values()):
        yield Processes(device=device)
        return
    if not all(value.isdecimal() for value in numbers.values()):
        raise ConfigError(
            f"RANK, WORLD_SIZE and LOCAL_RANK must be numbers, as torchrun sets them, but are {numbers}:"
            " start with torchrun, or unset them"
        )
    rank, count, local = (int(value) for value in numbers.values())
    if device == "cuda":
        if local >= torch.cuda.device_count():
            raise ConfigError(
                f"process {local} of this machine has no GPU, there are {torch.cuda.device_count()}:"
                " start torchrun with that --nproc-per-node"
            )
        device = f"cuda:{local}"
        torch.cuda.set_device(local)
    if count == 1:
        yield Processes(device=device, launched=True)
        return
    backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    distributed.init_process_group(backend, rank=rank, world_size=count, timeout=_PATIENCE)
    try:
        yield Processes(rank, count, device, launched=True, local_count=_local_count(count))
    finally:
        distributed.destroy_process_group()


def _local_count(count: int) -> int:
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, int(local)) if local.isdecimal() else count
