"""One caller's work does not hold up another's."""

from __future__ import annotations

import asyncio
import threading

import pytest
from starlette.requests import HTTPConnection

from tandem.service.http.dependencies import sender_of
from tandem.service.translation.turns import TurnThreads
from tests.service.support import PATIENCE

pytestmark = pytest.mark.anyio


async def test_callers_take_turns_whatever_each_asks_for() -> None:
    threads, gate, done = TurnThreads(1), threading.Event(), list[str]()
    first = asyncio.ensure_future(threads.run("many", gate.wait, PATIENCE))
    await asyncio.sleep(0)
    names = ["many 1", "many 2", "many 3", "one 1", "other 1", "other 2"]
    others = [asyncio.ensure_future(threads.run(name.split()[0], done.append, name)) for name in names]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(first, *others)
    assert done == ["many 1", "one 1", "other 1", "many 2", "other 2", "many 3"]
    threads.close()


async def test_who_leaves_takes_no_turn_and_no_thread() -> None:
    threads, gate, done = TurnThreads(1), threading.Event(), list[str]()
    running = asyncio.ensure_future(threads.run("many", gate.wait, PATIENCE))
    waiting = [asyncio.ensure_future(threads.run("many", done.append, name)) for name in "ab"]
    await asyncio.sleep(0)
    running.cancel()
    waiting[0].cancel()
    await asyncio.wait((running, waiting[0]))
    assert running.cancelled() and done == []  # the thread is not free yet
    gate.set()
    await waiting[1]
    with pytest.raises(ZeroDivisionError):
        await threads.run("one", lambda: 1 // 0)
    await threads.run("one", done.append, "c")
    assert done == ["b", "c"]
    threads.close()


@pytest.mark.parametrize(
    ("caller", "host", "turn"),
    [
        ("mastodon", "2001:db8::1", "mastodon"),
        ("anonymous", "192.0.2.7", "anonymous 192.0.2.7"),
        ("anonymous", "2001:db8:0:1:ff::1", "anonymous 2001:db8:0:1::/64"),
        ("anonymous", "a:socket", "anonymous a:socket"),
    ],
)
async def test_without_a_key_each_address_is_a_caller(caller: str, host: str, turn: str) -> None:
    state = {"caller": caller, "request_id": "r"}
    assert sender_of(HTTPConnection({"type": "http", "client": (host, 1), "state": state})).caller == turn
