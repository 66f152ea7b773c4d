"""Clients that leave while their texts are being decoded: how soon nothing of theirs is computed any more."""

from __future__ import annotations

import asyncio

from benchmarks.abuse.trials import BEAM, Setting, TrialFinding, busy, decoding, wait_for
from benchmarks.service.verdicts import Verdict
from deploy.loadtest.server import Sample

_CLIENTS = 32
_LENGTH = 100  # target tokens of each text: some seconds of work for all
_FREED = 1.0  # seconds
_STEPS = 6.0  # of each worker: one that runs, and those in which the news of 32 closed connections arrive
_PATIENCE = 20.0


def disconnect(setting: Setting) -> TrialFinding:
    """Open requests with long targets, close the connections amid decoding, and look at the metrics."""
    longest = min(_LENGTH, setting.bundle.manifest.limits.max_target_tokens)
    bodies = setting.long_bodies(_CLIENTS, longest, beam_size=BEAM)
    with setting.server() as server:
        before = Sample.fetch(server.url).values
        steps = asyncio.run(_leave(server.url, setting.path, bodies))
        freed = wait_for(lambda: busy(server.url) == 0, _PATIENCE)
        after = Sample.fetch(server.url).values
    workers = after.get("tandem_decode_workers", 1.0)
    later = (after["tandem_decode_steps_total"] - steps) / max(workers, 1.0)
    finished = after["tandem_target_tokens_total"] - before["tandem_target_tokens_total"]
    return TrialFinding(
        "disconnect",
        "Is work stopped when clients leave?",
        f"{len(bodies)} requests that write {longest} tokens each; all connections are closed amid decoding, and the"
        " metrics are read until nothing waits or runs.",
        [
            Verdict("seconds until nothing of theirs waits or runs", freed, _FREED),
            Verdict("steps of a worker in that time", later, _STEPS),
            Verdict("tokens of sentences that were finished for nobody", finished, 0.0),
        ],
        {"requests": len(bodies)},
    )


async def _leave(root: str, path: str, bodies: list[bytes]) -> float:
    """Send all requests, close their connections once all are being decoded. Returns the steps that were taken then."""
    async with decoding(root, path, bodies):
        return (await asyncio.to_thread(Sample.fetch, root)).values["tandem_decode_steps_total"]
