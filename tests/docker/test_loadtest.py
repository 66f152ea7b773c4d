"""The load test as a container: it loads the service, says so, and ends by itself."""

from __future__ import annotations

import pytest

from tests.docker.compose import Project
from tests.docker.engine import Engine, Output

pytestmark = pytest.mark.docker

SHORT = ("--rates", "2", "--no-search", "--duration", "5", "--p99", "30")


def load(stack: Project, *options: str, url: str = "http://tandem:8000") -> Output:
    """`docker compose run loadtest` with these options of `tandem loadtest`."""
    command = ("--profile", "loadtest", "run", "--rm", "--no-deps", "loadtest", "--url", url)
    return stack.compose(*command, *options, timeout=180, check=False)


def test_profile_loads_the_service_and_ends_with_0(stack: Project, loadtest_image: str) -> None:
    done = load(stack, *SHORT)
    assert done.status == 0, done.text[-3000:]
    assert "highest rate with p99 <= 30,000 ms and nothing rejected: 2 requests a second" in done.text


def test_a_rate_that_is_not_reached_ends_it_with_1(stack: Project, loadtest_image: str) -> None:
    done = load(stack, *SHORT, "--at-least", "1000")
    assert done.status == 1, done.text[-3000:]


def test_missing_server_ends_it_with_2(stack: Project, loadtest_image: str) -> None:
    """A wrong address is no result of a load test."""
    assert load(stack, url="http://localhost:9").status == 2


def test_image_has_no_root_and_no_models(engine: Engine, loadtest_image: str) -> None:
    assert engine.shell(loadtest_image, "id -u").strip() != "0"
    assert not engine.shell(loadtest_image, "find / -xdev -name '*.onnx' -print 2>/dev/null; true").split()
