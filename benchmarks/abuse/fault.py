"""A step that breaks while other requests are decoded: who pays for it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence

from benchmarks.abuse.trials import BEAM, Setting, TrialFinding, decoding
from benchmarks.service.verdicts import Verdict
from deploy.loadtest.client import RequestOutcome, send, send_all
from deploy.loadtest.server import Server

_POISON = "x y z"
_BEAM = 2  # the poisoned request's beam: batches hold one beam size, so it is decoded beside, not with, the others
_OTHERS, _LENGTH = 24, 60


def fault(setting: Setting) -> TrialFinding:
    """Decode long texts, send a poisoned one in a batch of its own, then one that shares their batch."""
    arguments = ("-m", "benchmarks.abuse.faulty", "--bundle", str(setting.options.bundle), "--port", "{port}")
    length = min(_LENGTH, setting.bundle.manifest.limits.max_target_tokens)
    bodies = setting.long_bodies(_OTHERS, length, beam_size=BEAM)
    poison = json.loads(bodies[0]) | {"q": _POISON}
    apart_body, body = (json.dumps(poison | {"beam_size": beam}).encode() for beam in (_BEAM, BEAM))
    with Server((*arguments, "--poison", _POISON), "/readyz") as server:
        apart = asyncio.run(_beside(server.url, setting.path, bodies, apart_body))
        together = asyncio.run(_beside(server.url, setting.path, bodies, body))
        afterwards = _endings(send_all(server.url + setting.path, bodies, len(bodies)).outcomes)
        log = server.log()
    incidents = log.count('"event": "decoding_failed"')
    unclear = 2.0 - apart["poison 500"] - together["poison 500"]
    verdicts = [
        Verdict("other requests that failed, poison in a batch of its own", float(apart["500"]), 0.0),
        Verdict("other requests that failed when sent again, afterwards", float(afterwards["500"]), 0.0),
        Verdict("poisoned requests that ended in anything but a 500 of ours", unclear, 0.0),
        Verdict("replies that are neither 200 nor a 500 with its incident", _odd(apart, together, afterwards), 0.0),
    ]
    return TrialFinding(
        "fault",
        "Does a fault in a step cost only the requests of its batch?",
        f"{_OTHERS} texts of {length} tokens are decoded on one worker by a model that raises a few steps after it has"
        " read a certain text. That text comes first with another beam size, so in a batch of its own, then with"
        " theirs.",
        verdicts,
        {"failed with the poison in their batch": together["500"], "incidents logged": incidents},
    )


async def _beside(root: str, path: str, bodies: list[bytes], poison: bytes) -> Counter[str]:
    """The endings of the texts, the poison coming once all of them are decoded."""
    async with decoding(root, path, bodies) as (session, tasks):
        first = _ending(await send(session, root + path, poison))
        return _endings(await asyncio.gather(*tasks)) + Counter({f"poison {first}": 1})


def _endings(outcomes: Sequence[RequestOutcome]) -> Counter[str]:
    return Counter(map(_ending, outcomes))


def _ending(outcome: RequestOutcome) -> str:
    """200, a 500 that names its incident, or anything else."""
    if outcome.ending == "answered":
        return "200"
    ours = outcome.fault.startswith("500 ") and '"decoding_failed"' in outcome.fault and '"incident"' in outcome.fault
    return "500" if ours else "odd"


def _odd(*runs: Counter[str]) -> float:
    known = ("200", "500", "poison 500")
    return float(sum(number for run in runs for ending, number in run.items() if ending not in known))
