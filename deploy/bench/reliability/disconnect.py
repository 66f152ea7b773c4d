"""Clients that leave while their texts are being decoded: how soon nothing of theirs is computed any more."""

from __future__ import annotations

import asyncio
import json

import aiohttp

from deploy.bench.reliability.trials import Finding, Setting, busy, wait_for
from deploy.bench.requests import tandem_path
from deploy.bench.servers import Sample
from deploy.bench.verdicts import Verdict

_CLIENTS = 32
_LENGTH = 100  # target tokens of each text: some seconds of work for all
_FREED = 1.0  # seconds
_STEPS = 6.0  # of each worker: one that runs, and those in which the news of 32 closed connections arrive
_PATIENCE = 20.0


def disconnect(setting: Setting) -> Finding:
    """Open requests with long targets, close the connections amid decoding, and look at the metrics."""
    bundle = setting.bundle
    longest = min(_LENGTH, bundle.manifest.limits.max_target_tokens)
    texts = [one.text for one in setting.texts[:_CLIENTS]]
    forced = {"min_length": longest, "max_length": longest, "beam_size": setting.beam_size}
    bodies = [json.loads(body) | forced | {"q": text} for body, text in zip(setting.bodies, texts, strict=False)]
    with setting.server() as server:
        url = server.url + tandem_path(bundle)
        before = Sample.fetch(server.url).values
        steps = asyncio.run(_leave(url, server.url, [json.dumps(body).encode() for body in bodies]))
        freed = wait_for(lambda: busy(server.url) == 0, _PATIENCE)
        after = Sample.fetch(server.url).values
    workers = after.get("tandem_decode_workers", 1.0)
    later = (after["tandem_decode_steps_total"] - steps) / max(workers, 1.0)
    finished = after["tandem_target_tokens_total"] - before["tandem_target_tokens_total"]
    return Finding(
        "disconnect",
        "Is work stopped when clients leave?",
        f"{len(bodies)} requests that write {longest} tokens each; all connections are closed amid decoding, and the"
        " metrics are read until nothing waits or runs.",
        [
            Verdict("seconds until nothing of theirs waits or runs", freed, _FREED, {}),
            Verdict("steps of a worker in that time", later, _STEPS, {}),
            Verdict("tokens of sentences that were finished for nobody", finished, 0.0, {}),
        ],
        {"requests": len(bodies)},
    )


async def _leave(url: str, root: str, bodies: list[bytes]) -> float:
    """Send all requests, close their connections once all are being decoded. Returns the steps that were taken then."""
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:
        tasks = [asyncio.ensure_future(_ask(session, url, body)) for body in bodies]
        running = lambda: Sample.fetch(root).values["tandem_running_sentences"] >= len(bodies)  # noqa: E731
        await asyncio.to_thread(wait_for, running, _PATIENCE)
        steps = (await asyncio.to_thread(Sample.fetch, root)).values["tandem_decode_steps_total"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return steps


async def _ask(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    async with session.post(url, data=body) as response:
        await response.read()
