"""Locust's users, in a process of their own: Locust patches the standard library of the one that imports it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.loadtest.server import free_port
from tests.deploy.loadtest.stand_in import StandIn, running

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "deploy" / "loadtest" / "locustfile.py"


def locust(host: str, seconds: int = 4, users: int = 4, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the users for a moment; figures as JSON on standard output."""
    arguments = ["--headless", "--json", "--host", host, "--users", str(users), "--spawn-rate", "100"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LOADTEST_", "LOCUST_"))}
    return subprocess.run(
        [sys.executable, "-m", "locust", "-f", str(FILE), *arguments, "--run-time", f"{seconds}s"],
        cwd=ROOT,
        env=environment | {f"LOADTEST_{name}": value for name, value in variables.items()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def figures(result: subprocess.CompletedProcess[str]) -> dict[str, dict[str, int]]:
    """Requests and failures by name."""
    return {entry["name"]: entry for entry in json.loads(result.stdout)}


def test_the_file_needs_locust_and_the_standard_library_alone() -> None:
    """As in an image that has nothing else of this project."""
    code = (
        "import sys\n"
        "for name in ('aiohttp', 'fastapi', 'matplotlib', 'models', 'numpy', 'onnxruntime', 'rich', 'service',"
        " 'training', 'typer'):\n"
        "    sys.modules[name] = None\n"
        "import deploy.loadtest.locustfile\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


OPTIONS = (
    "import json, sys\n"
    "from locust.argument_parser import get_empty_argument_parser\n"
    "from deploy.loadtest.locustfile import add_options\n"
    "parser = get_empty_argument_parser()\n"
    "add_options(parser)\n"
    "print(json.dumps({k: v for k, v in vars(parser.parse_args([])).items() if k not in ('config', 'locustfile')}))\n"
)
"""Options as Locust reads them from the variables, printed."""


def read_options(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = {f"LOADTEST_{name}": value for name, value in variables.items()}
    command = [sys.executable, "-c", OPTIONS]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_variables_have_defaults_and_empty_ones_are_not_set() -> None:
    """A compose file hands on what is not set as empty text."""
    wanted = {"scenario": "mixed", "think": 1.0, "retries": 5, "bulk_texts": 32, "seed": None}
    wanted |= dict.fromkeys(("pair", "api_key", "texts"), "")
    for variables in ({}, {name.upper(): "" for name in wanted}):
        result = read_options(**variables)
        assert json.loads(result.stdout) == wanted, result.stderr
    given = {"SCENARIO": "bulk", "PAIR": "de-en", "API_KEY": "k", "TEXTS": "a.txt", "SEED": "3", "THINK": "0.5"}
    found = json.loads(read_options(**given, RETRIES="0", BULK_TEXTS="7").stdout)
    assert found == {"scenario": "bulk", "pair": "de-en", "api_key": "k", "texts": "a.txt", "seed": 3} | {
        "think": 0.5,
        "retries": 0,
        "bulk_texts": 7,
    }


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SCENARIO", "x", "invalid choice: 'x'"),
        ("THINK", "nan", "must be a number from 0 to 1000, but is nan"),
        ("RETRIES", "1.5", "must be a whole number from 0 to 1000, but is 1.5"),
        ("BULK_TEXTS", "0", "must be a whole number from 1 to 100000, but is 0"),
        ("SEED", "-1", "must be a whole number from 0 to"),
    ],
)
def test_a_bad_variable_ends_with_2(name: str, value: str, words: str) -> None:
    result = read_options(**{name: value})
    assert (result.returncode, words in result.stderr) == (2, True), result.stderr


@pytest.mark.slow
def test_users_send_all_kinds_of_requests_and_look_at_the_answers() -> None:
    with running(StandIn()) as service:
        result = locust(service.url, SCENARIO="bulk", BULK_TEXTS="3", API_KEY="secret", seconds=6, SEED="1")
        assert result.returncode == 0, result.stderr
        assert service.headers["authorization"] == "Bearer secret"
        assert {len(fields["q"]) for fields in service.sent} == {3}
        assert not service.files  # deleted once they were fetched
    found = figures(result)
    assert {"texts", "file: send", "file: ask", "file: fetch", "file: from sending to done"} <= found.keys()
    assert not sum(entry["num_failures"] for entry in found.values())
    assert "secret" not in result.stdout + result.stderr


@pytest.mark.slow
def test_users_wait_for_a_service_that_is_full() -> None:
    with running(StandIn(rejections=3)) as service:
        result = locust(service.url, SCENARIO="interactive", THINK="0.01", users=1, seconds=8)
        assert result.returncode == 0, result.stderr
        assert service.sent[0] == service.sent[3]  # the same text, until it was answered
        assert service.sent[3] != service.sent[4]
    found = figures(result)
    assert found["sentence (rejected)"]["num_requests"] == 3
    assert found["sentence"]["num_failures"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "variables", "words"),
    [
        (StandIn(rejections=10**9), {"RETRIES": "0"}, "503 overloaded"),
        (StandIn(rejections=10**9), {"RETRIES": "1000"}, "no request was answered"),
        (StandIn(reply=b"{}"), {}, "translations are missing or empty"),
    ],
)
def test_failed_requests_and_none_at_all_end_with_1(service: StandIn, variables: dict[str, str], words: str) -> None:
    with running(service):
        result = locust(service.url, 2, 4, SCENARIO="interactive", **variables)
    assert result.returncode == 1, result.stderr
    assert words in result.stderr + result.stdout


@pytest.mark.slow
def test_what_is_wrongly_set_ends_with_2() -> None:
    result = locust("http://127.0.0.1:1", SCENARIO="none")
    assert (result.returncode, "invalid choice: 'none' (choose from" in result.stderr) == (2, True)
    result = locust(f"http://127.0.0.1:{free_port()}")
    assert (result.returncode, "must list the languages of a running service" in result.stderr) == (2, True)


def test_the_command_needs_neither_locust_nor_what_serves() -> None:
    """Who loads a service at a URL has neither; and a process with Locust in it is another one, all through."""
    code = (
        "import sys\n"
        "for name in ('fastapi', 'gevent', 'locust', 'onnxruntime', 'prometheus_client', 'pydantic', 'torch'):\n"
        "    sys.modules[name] = None\n"
        "import deploy.cli, deploy.loadtest.command, deploy.loadtest.measure\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
