"""The load test as a container: it loads the service, says so, and ends by itself."""

from __future__ import annotations

import re

import pytest

from tests.docker.compose import Project
from tests.docker.engine import Engine, Output

pytestmark = pytest.mark.docker

SHORT = {"LOADTEST_USERS": "2", "LOADTEST_SPAWN_RATE": "2", "LOADTEST_RUN_TIME": "10s"}


def load(stack: Project, *options: str, **settings: str) -> Output:
    """`docker compose run loadtest`, with more settings of the test and more options of the command."""
    stack.settings = {**stack.settings, **settings}
    command = ("--profile", "loadtest", "run", "--rm", "--no-deps", *options, "loadtest")
    return stack.compose(*command, timeout=90, check=False)


def test_profile_loads_the_service_and_ends_with_0(stack: Project, loadtest_image: str) -> None:
    done = load(stack, **SHORT, LOADTEST_SCENARIO="interactive")
    assert done.status == 0, done.text[-3000:]
    aggregated = re.search(r"Aggregated\s+(\d+)\s+(\d+)\(", done.text)
    assert aggregated is not None, done.text[-3000:]
    assert int(aggregated[1]) > 0 and int(aggregated[2]) == 0


def test_failed_requests_end_it_with_1(stack: Project, loadtest_image: str) -> None:
    """Requests of more texts than the service takes are refused."""
    done = load(stack, **SHORT, LOADTEST_SCENARIO="bulk", LOADTEST_BULK_TEXTS="101")
    assert done.status == 1, done.text[-3000:]


def test_missing_server_ends_it_with_2(stack: Project, loadtest_image: str) -> None:
    """A wrong address is no result of a load test."""
    assert load(stack, "--env", "LOCUST_HOST=http://localhost:9").status == 2


def test_image_has_no_root_and_no_models(engine: Engine, loadtest_image: str) -> None:
    assert engine.shell(loadtest_image, "id -u").strip() != "0"
    assert not engine.shell(loadtest_image, "find / -xdev -name '*.onnx' -print 2>/dev/null; true").split()
