"""How much of a device's memory this process may take, and has taken."""

from __future__ import annotations

from collections.abc import Callable

import torch


class DeviceMemory:
    """The numbers of torch's allocator against a budget; a CPU has room for everything.

    Args:
        device: whose.
        share: of its memory that this process may take.

    Attributes:
        device: whose.
    """

    def __init__(self, device: torch.device, share: float = 1.0) -> None:
        self.device, self._gpu = device, device.type == "cuda"
        self._budget = float("inf")
        if self._gpu:
            torch.cuda.set_per_process_memory_fraction(share, device)
            self._budget = share * torch.cuda.get_device_properties(device).total_memory

    @property
    def reserved(self) -> int:
        """Bytes that the allocator has of the device, those among them that it keeps for later."""
        return torch.cuda.memory_reserved(self.device) if self._gpu else 0

    @property
    def room(self) -> float:
        """Bytes that the allocator may yet take, of those that other processes have left."""
        if not self._gpu:
            return float("inf")
        return min(self._budget - self.reserved, torch.cuda.mem_get_info(self.device)[0])

    def taken(self, share: float) -> bool:
        """Whether more than a share of the budget is reserved."""
        return self.reserved > share * self._budget

    def taken_by(self, work: Callable[[], None]) -> int:
        """Do the work; bytes that were allocated at once meanwhile, by whomever."""
        if not self._gpu:
            work()
            return 0
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        work()
        return torch.cuda.max_memory_allocated(self.device) - before

    def give_back(self) -> None:
        """Let the device have what the allocator keeps for later. Not while a graph is captured."""
        if self._gpu:
            torch.cuda.empty_cache()
