"""What a user gets from `docker compose up`, and how little the container may do."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.docker.compose import Project
from tests.docker.engine import SHIPPED, Engine, eventually
from tests.docker.traffic import translate

pytestmark = pytest.mark.docker

SENTENCE = "Wo ist der Bahnhof?"


def test_translation(address: str) -> None:
    reply = translate(address, SENTENCE)
    assert reply.status_code == 200
    assert "station" in reply.json()["translatedText"].lower()


def test_dates_and_amounts(address: str) -> None:
    """The image has the locales that they are written with."""
    reply = translate(address, "Wir waren am 3. Mai um 15 Uhr da und zahlten 1.250,50 €.")
    written = reply.json()["translatedText"]
    assert all(one in written for one in ("on May 3", "at 3 pm", "€1,250.50"))


def test_summary(address: str) -> None:
    text = (
        "We present a neural network that translates. It is trained on a large corpus. Results improve by two points."
    )
    reply = httpx.post(f"{address}/summarize", json={"q": text}, timeout=60)
    assert reply.status_code == 200
    assert len(reply.json()["summary"].split()) > 2


def test_page_and_what_it_loads(address: str) -> None:
    with httpx.Client(base_url=address, timeout=20) as client:
        page = client.get("/")
        assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
        parts = re.findall(r'(?:src|href)="(/?[\w./-]+\.(?:js|css|svg))(?:\?[^"]*)?"', page.text)
        assert parts
        assert {part: client.get(part).status_code for part in parts} == dict.fromkeys(parts, 200)
        assert client.get("/docs").status_code == 200


def test_metrics(address: str) -> None:
    reply = httpx.get(f"{address}/metrics", timeout=20)
    assert reply.status_code == 200
    lines = reply.text.splitlines()
    counted = [line for line in lines if line.startswith("tandem_http_requests_total{")]
    assert any('route="/translate"' in line and 'status="200"' in line for line in counted)
    assert f"tandem_bundles_loaded {len(SHIPPED)}.0" in lines


def test_process_is_confined(engine: Engine, stack: Project) -> None:
    """The kernel's own view of the server: an ordinary user without capabilities, who gains none."""
    status = engine.execute(stack.container("tandem"), "cat", "/proc/1/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert set(fields["Uid"].split() + fields["Gid"].split()) == {"10001"}
    assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {0}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


@pytest.mark.parametrize("path", ["/", "/opt/tandem", "/opt/tandem/bundles", "/etc", "/usr/local", "/home", "/var/tmp"])
def test_root_is_read_only(engine: Engine, stack: Project, path: str) -> None:
    """Not even root may write there."""
    script = f"touch {path}/written"
    done = engine.docker("exec", "--user", "0", stack.container("tandem"), "sh", "-c", script, check=False)
    assert done.status and "Read-only file system" in done.stderr


@pytest.mark.parametrize("path", ["/tmp", "/var/lib/tandem"])
def test_state_and_temporary_files_can_be_written(engine: Engine, stack: Project, path: str) -> None:
    engine.execute(stack.container("tandem"), "sh", "-c", f"touch {path}/written && rm {path}/written")


@pytest.mark.parametrize("service", ["tandem", "prometheus"])
def test_container_is_limited(stack: Project, service: str) -> None:
    host = stack.limits(service)
    assert host["PidsLimit"] and host["PidsLimit"] > 0
    assert host["RestartPolicy"]["Name"] in ("unless-stopped", "always", "on-failure")


@pytest.mark.parametrize("service", ["tandem", "prometheus"])
def test_logs_are_rotated(engine: Engine, stack: Project, service: str) -> None:
    logs = engine.inspect(stack.container(service))["HostConfig"]["LogConfig"]
    assert logs["Type"] in ("json-file", "local")
    assert re.fullmatch(r"\d+[km]", logs["Config"]["max-size"]) and int(logs["Config"]["max-file"]) >= 2


def test_observability_is_published_on_loopback_only(stack: Project) -> None:
    """What the files say without the tests' variables."""
    plain = Project(stack.engine, stack.folder, stack.files)
    services = plain.config()["services"]
    for name in ("prometheus", "grafana"):
        assert {port["host_ip"] for port in services[name]["ports"]} == {"127.0.0.1"}


def test_state_lies_in_named_volumes(engine: Engine, stack: Project) -> None:
    mounts = {mount["Destination"]: mount for mount in engine.inspect(stack.container("tandem"))["Mounts"]}
    for path in ("/var/lib/tandem", "/srv/tandem/bundles"):
        assert mounts[path]["Type"] == "volume" and mounts[path]["Name"].startswith(stack.name)


def test_health_follows_the_process(engine: Engine, stack: Project, image: str) -> None:
    """Healthy when it serves, unhealthy when it hangs, healthy again when it goes on."""
    options = ("--detach", "--network", "none", "--health-interval", "1s", "--health-timeout", "2s")
    starting = ("--health-start-period", "60s", "--health-retries", "2")
    container = engine.docker("run", *options, *starting, image).stdout.strip()
    try:
        eventually(lambda: stack.health(container) == "healthy", "healthy after the start")
        engine.docker("kill", "--signal", "STOP", container)
        eventually(lambda: stack.health(container) == "unhealthy", "unhealthy while the process stands still")
        engine.docker("kill", "--signal", "CONT", container)
        eventually(lambda: stack.health(container) == "healthy", "healthy again")
    finally:
        engine.docker("rm", "--force", "--volumes", container)
