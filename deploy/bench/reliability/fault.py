"""A step that breaks while other requests are decoded: who pays for it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import aiohttp

from deploy.bench.reliability.trials import Finding, Setting, wait_for
from deploy.bench.requests import tandem_path
from deploy.bench.servers import Sample, Server
from deploy.bench.verdicts import Verdict

_POISON = "x y z"
_BEAM = 2  # the poisoned request's beam: batches hold one beam size, so it is decoded beside, not with, the others
_OTHERS, _LENGTH = 24, 60
_PATIENCE = 60.0


def fault(setting: Setting) -> Finding:
    """Decode long texts, send a poisoned one in a batch of its own, then one that shares their batch."""
    arguments = ("-m", "deploy.bench.reliability.faulty", "--bundle", str(setting.path), "--port", "{port}")
    bundle = setting.bundle
    length = min(_LENGTH, bundle.manifest.limits.max_target_tokens)
    forced = {"beam_size": setting.beam_size, "min_length": length, "max_length": length}
    bodies = [json.loads(body) | forced for body in setting.bodies[:_OTHERS]]
    with Server((*arguments, "--poison", _POISON), "/readyz") as server:
        url = server.url + tandem_path(bundle)
        poison = bodies[0] | {"q": _POISON}
        apart = asyncio.run(_beside(url, server.url, bodies, poison | {"beam_size": _BEAM}))
        together = asyncio.run(_beside(url, server.url, bodies, poison))
        afterwards = asyncio.run(_all(url, bodies))
        log = server.log()
    incidents = log.count('"event": "decoding_failed"')
    unclear = 2.0 - apart["poison 500"] - together["poison 500"]
    verdicts = [
        Verdict("other requests that failed, poison in a batch of its own", _failed(apart), 0.0, {}),
        Verdict("other requests that failed when sent again, afterwards", _failed(afterwards), 0.0, {}),
        Verdict("poisoned requests that ended in anything but a 500 of ours", unclear, 0.0, {}),
        Verdict("replies that are neither 200 nor a 500 with its incident", _odd(apart, together, afterwards), 0.0, {}),
    ]
    return Finding(
        "fault",
        "Does a fault in a step cost only the requests of its batch?",
        f"{_OTHERS} texts of {length} tokens are decoded on one worker by a model that raises a few steps after it has"
        " read a certain text. That text comes first with another beam size, so in a batch of its own, then with"
        " theirs.",
        verdicts,
        {"failed with the poison in their batch": int(_failed(together)), "incidents logged": incidents},
    )


async def _beside(url: str, root: str, bodies: list[dict[str, object]], poison: dict[str, object]) -> Counter[str]:
    """The endings of the texts, the poison coming once all of them are decoded."""
    async with aiohttp.ClientSession() as session:
        tasks = [asyncio.ensure_future(_ending(session, url, body)) for body in bodies]
        running = lambda: Sample.fetch(root).values["tandem_running_sentences"] >= len(bodies)  # noqa: E731
        await asyncio.to_thread(wait_for, running, _PATIENCE)
        endings = Counter({f"poison {await _ending(session, url, poison)}": 1})
        endings.update(await asyncio.gather(*tasks))
    return endings


async def _all(url: str, bodies: list[dict[str, object]]) -> Counter[str]:
    async with aiohttp.ClientSession() as session:
        return Counter(await asyncio.gather(*(_ending(session, url, body) for body in bodies)))


async def _ending(session: aiohttp.ClientSession, url: str, body: dict[str, object]) -> str:
    async with session.post(url, json=body) as response:
        reply = await response.json()
    named = response.status != 500 or (reply.get("code") == "decoding_failed" and "incident" in reply.get("detail", {}))
    return str(response.status) if named else "odd"


def _failed(endings: Counter[str]) -> float:
    return float(sum(number for ending, number in endings.items() if ending == "500"))


def _odd(*runs: Counter[str]) -> float:
    known = ("200", "500", "poison 500")
    return float(sum(number for run in runs for ending, number in run.items() if ending not in known))
