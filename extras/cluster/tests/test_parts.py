"""What the Ray application is made of, without Ray: arguments, folders, the policy, and a replica's methods."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from tandem.extras.cluster.arguments import Arguments, read_arguments
from tandem.extras.cluster.replica import OneRequestId, Replica, take_folder
from tandem.extras.cluster.scaling import METRIC, QueueShare
from tandem.models.errors import ConfigError
from tests.service.support import running
from tests.shipped import SHIPPED


def test_arguments_of_a_command_line_are_strings() -> None:
    arguments = read_arguments({"num_cpus": "4", "num_gpus": "0.25", "sticky": "true", "max_replicas": "9"})
    assert (arguments.num_cpus, arguments.num_gpus, arguments.sticky, arguments.max_replicas) == (4, 0.25, True, 9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"replicas": 3}, "there is no argument replicas; there are num_cpus"),
        ({"num_gpus": 2}, "num_gpus: must be at most 1, but is 2"),
        ({"min_replicas": 5, "max_replicas": 2}, "max_replicas must be at least min_replicas = 5"),
        (
            {"settings": {"port": 80, "data": "x"}},
            "must not name port: .*; settings must not name data: set TANDEM_DATA",
        ),
        ({"settings": {"admin_key": "x" * 20}}, "must not name admin_key, for Ray shows them: set TANDEM_ADMIN_KEY"),
        ({"settings": {"threads": 0}}, "threads .*must be at least 1"),
    ],
)
def test_arguments_are_refused_with_the_bound(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_arguments(given)


@pytest.mark.parametrize(
    ("given", "workers"),
    [
        ({"num_cpus": 6}, 6),
        ({"num_cpus": 0.5}, 1),
        ({"num_cpus": 8, "settings": {"threads": 4}}, 2),
        ({"num_cpus": 8, "num_gpus": 0.5}, 1),
        ({"num_cpus": 8, "settings": {"workers": 3}}, 3),
    ],
)
def test_workers_follow_from_the_cores_of_a_replica(given: dict[str, Any], workers: int) -> None:
    assert Arguments(**given).service_settings().workers == workers


def wanted(shares: dict[str, float], running: int, target: float = 0.25) -> float:
    context: Any = SimpleNamespace(
        aggregated_metrics={METRIC: shares} if shares else {}, current_num_replicas=running, target_num_replicas=running
    )
    return QueueShare(target)(context)[0]


def test_replicas_follow_the_fill_of_the_queues() -> None:
    assert wanted({"a": 0.25, "b": 0.25}, 2) == 2
    assert wanted({"a": 1.0, "b": 0.5}, 2) == 6
    assert wanted({"a": 0.05, "b": 0.05, "c": 0.15}, 3) == pytest.approx(1)
    assert wanted({"a": 0.0}, 1) == 1  # never none: nothing would measure the load


def test_what_has_not_reported_neither_adds_replicas_nor_stops_any() -> None:
    assert wanted({}, 3) == 3
    assert wanted({"a": 0.5}, 2) == 2  # the new one will take half of it
    assert wanted({"a": 0.125}, 3) == 2.5
    assert wanted({"a": 0.25, "b": 0.25}, 4) == 4


def test_each_replica_takes_a_folder_that_is_free(tmp_path: Path) -> None:
    first, second = take_folder(tmp_path), take_folder(tmp_path)
    assert (first.path.name, second.path.name) == ("replica-0", "replica-1")
    first.close()
    again = take_folder(tmp_path)
    assert again.path == first.path  # with what is in it
    again.close()
    second.close()


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(ConfigError, match="a replica's data cannot be kept here"):
        take_folder(tmp_path / "data")


def test_a_reply_has_one_request_id() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        headers = [(b"x-request-id", b"one"), (b"x-other", b"one")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def headers_for(*given: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        receive: Callable[[], Awaitable[Message]] = asyncio.Future[Message]().__await__  # type: ignore[assignment]
        await OneRequestId(app)({"type": "http", "headers": list(given)}, receive, send)
        return list(sent[0]["headers"])

    async def check() -> None:
        ours = [(b"x-request-id", b"one"), (b"x-other", b"one")]
        assert await headers_for((b"x-request-id", b"one")) == ours[1:]  # the proxy adds it
        assert await headers_for((b"x-request-id", b"not fit to be logged")) == ours
        assert await headers_for() == ours

    asyncio.run(check())


class Alone(Replica):
    """A replica outside of Ray, which therefore exports no metrics."""

    def _start_export(self) -> None: ...


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two versions, whose replicas leave this process's logging as it is."""
    monkeypatch.setattr("tandem.extras.cluster.replica.configure_logging", lambda settings: None)
    for version in ("de-fr-en@1", "de-fr-en@2"):
        shutil.copytree(SHIPPED, tmp_path / "bundles" / version)
    return tmp_path / "bundles"


def test_models_switch_while_a_replica_serves(versions: Path) -> None:
    replica = Alone(Arguments(settings={"bundles": str(versions)}))

    async def check() -> None:
        async with running(replica.service) as client:
            assert replica.engine.aliases == {"de-fr-en": "de-fr-en@2"}  # the newest
            await replica.reconfigure({"versions": ["de-fr-en@1"]})
            assert list(replica.engine.bundles) == ["de-fr-en@1"]  # at the start, nothing is kept for a way back
            await replica.check_health()
            await replica.reconfigure({"versions": ["de-fr-en@2"]})
            assert replica.engine.aliases == {"de-fr-en": "de-fr-en@2"}
            assert set(replica.engine.bundles) == {"de-fr-en@1", "de-fr-en@2"}
            await replica.reconfigure({"versions": ["de-fr-en@7"]})  # goes on, and says so in its log
            assert replica.engine.aliases == {"de-fr-en": "de-fr-en@2"}
            assert (await translate(client)).status_code == 200

    asyncio.run(check())


def test_a_replica_does_not_start_with_a_version_that_is_not_there(versions: Path) -> None:
    replica = Alone(Arguments(settings={"bundles": str(versions)}))

    async def check() -> None:
        async with running(replica.service):
            with pytest.raises(Exception, match="there is no bundle 'de-fr-en@7'"):
                await replica.reconfigure({"versions": ["de-fr-en@7"]})
            with pytest.raises(ConfigError, match="must be one such as de-en@1, but 'de-fr-en' is none"):
                await replica.reconfigure({"versions": ["de-fr-en"]})
            with pytest.raises(ConfigError, match="modules"):
                await replica.reconfigure({"modules": []})

    asyncio.run(check())


def test_health_fails_when_a_worker_has_ended_and_not_for_a_full_queue(
    versions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Alone(Arguments(settings={"bundles": str(versions)}))

    async def faults() -> list[str]:
        return ["the queue is full and de-fr-en has not finished a sentence lately"]

    async def check() -> None:
        async with running(replica.service) as client:
            await replica.check_health()
            assert replica.record_autoscaling_stats() == {METRIC: 0.0}
            assert (await translate(client)).status_code == 200
            monkeypatch.setattr(replica.service.state.parts.readiness.__class__, "faults", lambda self: faults())
            await replica.check_health()  # something moves
            monkeypatch.setattr(replica.engine.dispatcher.__class__, "last_finished", lambda self, name: None)
            with pytest.raises(RuntimeError, match="the queue is full"):
                await replica.check_health()

    asyncio.run(check())


async def translate(client: httpx.AsyncClient, key: str = "") -> httpx.Response:
    fields = {"q": "Guten Tag.", "source": "de", "target": "en"}
    return await client.post("/translate", json=fields | ({"api_key": key} if key else {}))
