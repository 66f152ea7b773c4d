"""How many replicas there should be: as many as bring each one's queue to a share of its bound.

The engine's queue, in predicted tokens, says more than the number of requests, by which Serve scales otherwise: a
request may hold one sentence or a hundred. Ray pickles this module into its controller as it is, so it imports nothing
of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.serve.config import AutoscalingContext

METRIC = "tandem_queue_share"
"""What replicas report: predicted tokens, waiting and running, as a share of the bound above which they refuse."""


class QueueShare:
    """An autoscaling policy; Ray applies its bounds, factors and delays to what it returns."""

    def __init__(self, target: float) -> None:
        """Take the share that each queue should have, above 0 and at most 1."""
        self._target = target

    def __call__(self, context: AutoscalingContext) -> tuple[float, dict[str, Any]]:
        """Replicas that are wanted, and no state.

        One that has reported nothing yet does not count when more are wanted, since it will take its part of the load,
        and counts as filled to its target when fewer are.
        """
        shares = (context.aggregated_metrics or {}).get(METRIC, {})
        if not shares:
            return float(context.target_num_replicas), {}
        running = context.current_num_replicas
        wanted = sum(shares.values()) / self._target
        if wanted < running:
            wanted = min(float(running), wanted + max(0, running - len(shares)))
        return max(1.0, wanted), {}
