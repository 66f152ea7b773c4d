"""Locust's users: people who send a sentence, read, and send the next one; programs that send documents, many texts at
once, and files. `docs/load-tests.md` tells how to run it and how to read its tables.

Locust, since it is what those who run Python services know, has a web page, and spreads over machines. k6 and Gatling
would bring another language; Vegeta and wrk know no users who think. Its fast client (geventhttpclient) is used: the
usual one (requests) takes several times the processor time for a request.

Locust patches the standard library's sockets when it is imported: no other module of this project imports it.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import sys
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from locust import FastHttpUser, events, task
from locust.contrib.fasthttp import FastResponse
from locust.env import Environment
from locust.exception import StopTest

from deploy.loadtest.scenarios import BULK_TEXTS, PATH, SCENARIOS, THINK, Call, Calls, Pair, choose_pair, served_pairs
from deploy.loadtest.texts import LANGUAGES, read_lines

_MISCONFIGURED = 2
_REJECTED, _AGAIN = (429, 503), " (rejected)"  # and what is added to the name of a request that is sent again
_LONGEST_PAUSE = 60.0  # seconds that a Retry-After is followed for
_ASK_EVERY, _FILE_PATIENCE = 1.0, 600.0  # seconds: how often a file is asked for, and how long altogether
_BOUNDARY = "a-line-that-no-text-of-a-load-test-has"
_MOST_SEED = 2**31


def _number(kind: type[int] | type[float], default: float | None, least: float, most: float) -> Callable[[str], Any]:
    """Reads a number within its bounds; empty text, as compose files give it, has the default."""

    def read(text: str) -> float | None:
        try:
            value = kind(text) if text else default
        except ValueError:
            value = float("nan")
        if value is not None and not least <= value <= most:
            what = "a whole number" if kind is int else "a number"
            raise ArgumentTypeError(f"must be {what} from {least:g} to {most:g}, but is {text}")
        return value

    return read


def add_options(parser: Any) -> None:
    """What the users do, as options, variables LOADTEST_*, and fields of the web page."""

    def option(name: str, **more: Any) -> None:
        parser.add_argument(f"--{name}", env_var=f"LOADTEST_{name.upper().replace('-', '_')}", **more)

    option("scenario", type=lambda text: text or "mixed", choices=list(SCENARIOS), default="mixed", help="What is sent")
    option("pair", default="", help="Pair of languages, such as de-en [the first that is served]")
    option("api-key", default="", is_secret=True, help="Sent as Authorization: Bearer")
    option("texts", default="", help="File of real sentences, one a line [made ones]")
    # Where none is given it is drawn: a service that is asked the same twice answers from its cache.
    option("seed", type=_number(int, None, 0, _MOST_SEED), help="Of the texts [drawn]")
    option("think", type=_number(float, 1.0, 0, 1000), default=1.0, help="Factor on the time between two requests")
    option("retries", type=_number(int, 5, 0, 1000), default=5, help="How often a rejected request is sent again")
    option("bulk-texts", type=_number(int, BULK_TEXTS, 1, 100_000), default=BULK_TEXTS, help="Texts of a bulk request")


@dataclass(slots=True)
class _Stage:
    """What all users of this process share, once the test has started.

    Attributes:
        options: of :func:`add_options`.
        pair: of languages that is asked for.
        seed: of the texts; users have texts of their own.
        lines: real sentences; empty = made ones.
        users: their numbers.
    """

    options: Namespace
    pair: Pair
    seed: int
    lines: list[str]
    users: itertools.count[int] = field(default_factory=itertools.count)

    def calls(self, worker: int) -> Calls:
        """The requests of the next user of a worker."""
        made = Calls.of(self.options.scenario, self.pair, f"{self.seed}/{worker}/{next(self.users)}", self.lines)
        return replace(made, bulk_texts=self.options.bulk_texts)


stage: _Stage  # from the start of the test on


def prepare(environment: Environment, **_: Any) -> None:
    """Ask the service what it translates; the test stops where nothing of that can be asked for."""
    global stage
    options = environment.parsed_options
    assert options is not None
    try:
        lines = read_lines(Path(options.texts)) if options.texts else []
        pair = choose_pair(served_pairs((environment.host or "").rstrip("/")), options.pair, LANGUAGES)
        seed = random.randrange(_MOST_SEED) if options.seed is None else options.seed
        stage = _Stage(options, pair, seed, lines)
        stage.calls(0)
        logging.info("scenario %s, pair %s, seed %d", options.scenario, pair, seed)
    except ValueError as error:
        environment.process_exit_code = _MISCONFIGURED
        raise StopTest(str(error)) from None


def judge(environment: Environment, **_: Any) -> None:
    """A test without an answer has failed too; Locust itself fails one with failed requests."""
    answers = sum(entry.num_requests - entry.num_failures for entry in environment.stats.entries.values())
    rejected = sum(entry.num_requests for entry in environment.stats.entries.values() if entry.name.endswith(_AGAIN))
    if environment.process_exit_code is None and answers == rejected:
        print("no request was answered", file=sys.stderr)
        environment.process_exit_code = 1


events.init_command_line_parser.add_listener(add_options)  # type: ignore[no-untyped-call]  # Locust annotates few
events.test_start.add_listener(prepare)  # type: ignore[no-untyped-call]
events.quitting.add_listener(judge)  # type: ignore[no-untyped-call]


class Client(FastHttpUser):
    """One person or program; keeps its connection."""

    connection_timeout = 10.0
    network_timeout = 120.0
    insecure = False  # a key is sent: the certificate must be good

    def on_start(self) -> None:
        """Get texts of one's own."""
        worker = max(0, getattr(self.environment.runner, "worker_index", 0))
        self._calls = stage.calls(worker)
        self._random = random.Random(f"{stage.seed}/{worker}/{id(self)}")
        self._key = {"Authorization": f"Bearer {key}"} if (key := stage.options.api_key) else {}
        self._pause = 0.0

    def wait_time(self) -> float:
        """Seconds until the next request."""
        return self._pause

    @task
    def next_call(self) -> None:
        """Send the next request of the scenario, and wait for what is asked for."""
        call = next(self._calls)
        if call.kind == "file":
            self._translate_file(call)
        else:
            self._ask("POST", PATH, call.kind, call.body, check=call.fault)
        think = THINK[call.kind] * stage.options.think
        self._pause = self._random.expovariate(1 / think) if think else 0.0

    def _ask(
        self,
        method: str,
        path: str,
        name: str,
        body: bytes | None = None,
        kind: str = "application/json",
        check: Callable[[bytes], str] = lambda content: "",
    ) -> bytes | None:
        """The answer's body; None where there is none that is right. A rejected request is sent again when the service
        asks for it, and has a line of its own in the statistics."""
        headers = {**self._key, "Content-Type": kind} if body is not None else self._key
        for left in reversed(range(stage.options.retries + 1)):
            with self.client.request(
                method,
                path,
                name=name,
                data=body,  # type: ignore[arg-type]  # bytes are sent as they are
                headers=headers,
                catch_response=True,
            ) as response:
                content = response.content or b""
                if left and response.status_code in _REJECTED:
                    response.request_meta["name"] = name + _AGAIN
                    response.success()
                    pause = response.headers.get("retry-after", "") if response.headers else ""
                elif fault := _fault(response, content) or check(content):
                    response.failure(fault)
                    return None
                else:
                    response.success()
                    return content
            time.sleep(min(_LONGEST_PAUSE, float(pause)) if pause.isdecimal() else 1.0)
        return None

    def _translate_file(self, call: Call) -> None:
        """Send a file, ask for it until it is done, fetch it, and have it deleted, also where the test ends before."""
        started = time.perf_counter()
        form = {"source": stage.pair.source, "target": stage.pair.target}
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        reply = self._ask("POST", "/files", "file: send", _multipart(form, call.body), kind)
        if reply is None:
            return
        path = f"/files/{json.loads(reply)['id']}"
        try:
            status = self._finished(path, started + _FILE_PATIENCE)
            if status == "done":
                self._ask("GET", f"{path}/result", "file: fetch", check=call.fault)
            self.environment.events.request.fire(
                request_type="JOB",
                name="file: from sending to done",
                response_time=1e3 * (time.perf_counter() - started),
                response_length=len(call.body),
                exception=None if status == "done" else RuntimeError(f"the file is {status or 'not to be asked for'}"),
                context={},
            )
        finally:
            self._ask("DELETE", path, "file: delete")

    def _finished(self, path: str, until: float) -> str:
        """The status of a file once it is translated, or will not be, or when the time is over; empty: nobody knows."""
        status = "queued"
        while status in ("queued", "running") and time.perf_counter() < until:
            time.sleep(_ASK_EVERY)
            reply = self._ask("GET", path, "file: ask")
            status = "" if reply is None else json.loads(reply)["status"]
        return status


def _fault(response: FastResponse, content: bytes) -> str:
    """What is wrong with an answer, without what differs from request to request; empty where nothing is."""
    status = response.status_code
    if status in (200, 202, 204):
        return ""
    if not status:
        return f"no answer: {getattr(response, 'error', None)!r}"
    try:
        return f"{status} {json.loads(content)['code']}"
    except (ValueError, TypeError, KeyError):
        return f"{status} {content[:80].decode(errors='replace')}"


def _multipart(fields: dict[str, str], content: bytes) -> bytes:
    """A form with a file."""
    parts = [f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()]
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="load.txt"\r\n\r\n'
    return "".join([*parts, head]).encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()
