"""Where a run's progress goes, and the means between two of its log lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from training.checkpoint import Progress
from training.parallel import Processes


class Reporter(Protocol):
    """Where progress goes: a terminal, a log, event files."""

    def update(self, progress: Progress, values: Mapping[str, float]) -> None:
        """Called every ``log_every`` updates with loss, learning rate and gradient norm.

        Once updates were skipped their number joins these, and in fp16 the loss scale.
        """

    def validation(self, progress: Progress, values: Mapping[str, float]) -> None:
        """Called after every validation."""


class Silent:
    """Reports nothing, as the processes beside the first do."""

    def update(self, progress: Progress, values: Mapping[str, float]) -> None:
        """Nothing."""

    def validation(self, progress: Progress, values: Mapping[str, float]) -> None:
        """Nothing."""


@dataclass(slots=True)
class Window:
    """Losses since the last log line: single batches differ too much, being of one length each.

    Attributes:
        loss: this process's summed loss.
        nll: this process's summed negative log-likelihood.
        tokens: target symbols of all processes.
    """

    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0

    def add(self, loss: float, nll: float, tokens: int) -> None:
        """Take in an update."""
        self.loss, self.nll, self.tokens = self.loss + loss, self.nll + nll, self.tokens + tokens

    def means(self, processes: Processes) -> dict[str, float]:
        """Means over all target symbols of all processes."""
        loss, nll = processes.total(self.loss, self.nll)
        return {"loss": loss / self.tokens, "nll": nll / self.tokens}
