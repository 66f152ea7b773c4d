"""Sudden ends: clients leave while their texts are decoded, the service is told to end (SIGTERM) under load, or killed
(SIGKILL) amid file jobs. What is computed for nobody, and what is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import tempfile
import time
import urllib.error
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp

from tandem.extras.laboratory.abuse.trials import Setting, TrialFinding, wait_for
from tandem.extras.laboratory.service.verdicts import Verdict
from tandem.extras.laboratory.workload import check_servable
from tandem.extras.loadtest.client import connect, send
from tandem.extras.loadtest.scenarios import DIRECT
from tandem.extras.loadtest.server import Sample
from tandem.models.errors import ConfigError

_LEAVING, _LENGTH = 32, 100  # clients, and target tokens of the text of each: some seconds of work for all
_ALL_WITHIN = 60.0  # seconds in which all of them are being decoded
_FREED, _LOOKED_FOR = 1.0, 20.0  # seconds until nothing of theirs is computed any more
_STEPS = 6.0  # of each worker: one that runs, and those in which the news of 32 closed connections arrive
_UNTIL_SIGNAL = 3.0  # seconds of load before the signal
_ENDS_WITHIN = 35.0  # seconds: 30 for running work, and the last replies
_LOADED_FOR = 60.0  # seconds, at most
_ENDINGS = {"503": "refused", "ClientConnectorError:": "not accepted"}
_UNSENT = "write request body"  # aiohttp's words
_FILES, _LINES = 8, 40
_DONE_WITHIN = 300.0


def disconnect(setting: Setting) -> TrialFinding:
    """Open requests with long targets, close the connections amid decoding, and look at the metrics."""
    longest = min(_LENGTH, setting.bundle.manifest.limits.max_target_tokens)
    bodies = setting.long_bodies(_LEAVING, longest)
    with setting.server() as server:
        before = Sample.fetch(server.url).values
        steps = asyncio.run(_leave(server.url, setting.path, bodies))
        freed = wait_for(
            lambda: _metric(server.url, "queue_sentences") + _metric(server.url, "running_sentences") == 0, _LOOKED_FOR
        )
        after = Sample.fetch(server.url).values
    workers = after.get("tandem_decode_workers", 1.0)
    later = (after["tandem_decode_steps_total"] - steps) / max(workers, 1.0)
    finished = after["tandem_target_tokens_total"] - before["tandem_target_tokens_total"]
    return TrialFinding(
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
    async with connect() as session:
        tasks = [asyncio.ensure_future(send(session, root + path, body)) for body in bodies]
        try:
            await asyncio.to_thread(wait_for, lambda: _metric(root, "running_sentences") >= len(bodies), _ALL_WITHIN)
            return await asyncio.to_thread(_metric, root, "decode_steps_total")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _metric(root: str, name: str) -> float:
    return Sample.fetch(root).values[f"tandem_{name}"]


def terminate(setting: Setting) -> TrialFinding:
    """Load a service in a closed loop, a connection per request, and send SIGTERM."""
    with setting.server() as server, ThreadPoolExecutor(1) as background:
        load = background.submit(asyncio.run, _clients(server.url + setting.path, setting))
        time.sleep(_UNTIL_SIGNAL)
        sent = time.perf_counter()
        server.signal(signal.SIGTERM)
        status = server.wait(_ENDS_WITHIN)
        seconds = time.perf_counter() - sent if status is not None else None
        endings = load.result()
    return TrialFinding(
        "Does SIGTERM under load lose an accepted request?",
        f"{setting.options.clients} clients in a closed loop, a new connection for each request; SIGTERM after"
        f" {_UNTIL_SIGNAL:g} s. A client asks again when it is refused (503), until nobody listens any more.",
        [
            Verdict("requests lost, that is accepted without a reply", float(lost_requests(endings)), 0.0),
            Verdict("exit status", None if status is None else float(abs(status)), 0.0),
            Verdict("seconds from SIGTERM to the end", seconds, _ENDS_WITHIN),
        ],
        {ending: endings[ending] for ending in sorted(endings)},
    )


def lost_requests(endings: Counter[str]) -> int:
    """Requests whose connection was accepted and that got no reply, or one that is neither an answer nor a refusal."""
    return sum(number for ending, number in endings.items() if ending not in ("answered", "refused", "not accepted"))


async def _clients(url: str, setting: Setting) -> Counter[str]:
    """How the requests of all clients ended, each client going on until nobody listens."""
    bodies = itertools.cycle(setting.bodies)
    endings: Counter[str] = Counter()
    until = time.perf_counter() + _LOADED_FOR
    async with connect(keep=False) as session:

        async def client() -> None:
            while time.perf_counter() < until:
                outcome = await send(session, url, next(bodies))
                # A fault begins with a status, or with the name of the client's exception. A connection that only the
                # system's queue had accepted ends before the request is sent.
                ending = _ENDINGS.get(outcome.fault.partition(" ")[0], outcome.fault) or outcome.ending
                ending = "not accepted" if _UNSENT in ending else ending
                endings[ending] += 1
                if ending == "not accepted":
                    return

        await asyncio.gather(*(client() for _ in range(setting.options.clients)))
    return endings


async def _hand_in(url: str, languages: tuple[str, str], texts: list[str]) -> list[str]:
    """Hand in a text file each; the ids of the jobs. Raises ConfigError where one is not accepted."""
    numbers = []
    async with aiohttp.ClientSession() as session:
        for number, text in enumerate(texts):
            form = aiohttp.FormData({"source": languages[0], "target": languages[1]})
            form.add_field("file", text.encode(), filename=f"text{number}.txt", content_type="text/plain")
            async with session.post(f"{url}/files", data=form) as response:
                if response.status != 202:
                    raise ConfigError(f"POST /files must answer 202, but answered {response.status}")
                numbers.append(str((await response.json())["id"]))
    return numbers


def _fetch(url: str) -> bytes:
    """What a GET is answered with; an empty object for what is not known."""
    try:
        with DIRECT.open(url, timeout=30) as response:
            return bytes(response.read())
    except urllib.error.HTTPError:
        return b"{}"


def _states(url: str, numbers: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What is known of each file job."""
    return {number: json.loads(_fetch(f"{url}/files/{number}")) for number in numbers}


def kill(setting: Setting) -> TrialFinding:
    """Hand in files, kill the service amid the work, start it again on the same data, and wait for all of them."""
    check_servable(setting.bundle)
    manifest = setting.bundle.manifest
    texts, languages = _texts(setting), (manifest.source_languages[0], manifest.target_language)
    with tempfile.TemporaryDirectory(prefix="tandem-reliability-") as data:
        with setting.server({"TANDEM_DATA": data}) as server:
            url = server.url
            numbers = asyncio.run(_hand_in(url, languages, texts))
            wait_for(lambda: any(state.get("progress") for state in _states(url, numbers).values()), 60.0, 0.05)
            at_death = Counter(state.get("status", "unknown") for state in _states(url, numbers).values())
            server.signal(signal.SIGKILL)
            server.wait(10.0)
        with setting.server({"TANDEM_DATA": data}) as server:
            url = server.url
            running = ("queued", "running")
            seconds = wait_for(
                lambda: all(state.get("status") not in running for state in _states(url, numbers).values()),
                _DONE_WITHIN,
                0.2,
            )
            done = [number for number, state in _states(url, numbers).items() if state.get("status") == "done"]
            lines = {number: len(_fetch(f"{url}/files/{number}/result").decode().splitlines()) for number in done}
    lost = len(numbers) - len(done)
    short = sum(lines[number] != _LINES for number in done)
    return TrialFinding(
        "Does SIGKILL lose an accepted file job?",
        f"{_FILES} text files of {_LINES} lines, each accepted with 202; SIGKILL once the first has progressed, and a"
        " new start on the same data.",
        [
            Verdict("accepted jobs that were not finished after the restart", float(lost), 0.0),
            Verdict("results with lines missing", float(short), 0.0),
            Verdict("seconds from the restart until all were done", seconds, _DONE_WITHIN),
        ],
        {f"{status} at its death": number for status, number in sorted(at_death.items())},
    )


def _texts(setting: Setting) -> list[str]:
    lines = itertools.cycle(one.text for one in setting.texts)
    return ["".join(f"{next(lines)}\n" for _ in range(_LINES)) for _ in range(_FILES)]
