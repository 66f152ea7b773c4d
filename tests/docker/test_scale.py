"""Two replicas behind nginx, with quotas in a shared store."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from tests.docker.compose import Project
from tests.docker.engine import Engine, eventually
from tests.docker.traffic import streaming, translate

pytestmark = pytest.mark.docker

ENOUGH = 40  # requests of a stream that count as load
_COUNTED = re.compile(r'^tandem_http_requests_total\{([^}]*route="/translate"[^}]*)\} ([\d.e+]+)$', re.MULTILINE)
_FETCH = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/metrics', timeout=10).read().decode())"
_ASK = """
import http.client, json, sys
key, path, text = sys.argv[1:]
body = json.dumps({"q": text, "source": "de", "target": "en"}) if text else None
connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=60)
headers = {"Authorization": "Bearer " + key} | ({"Content-Type": "application/json"} if text else {})
connection.request("POST" if text else "GET", path, body, headers)
print(connection.getresponse().status)
"""


@pytest.fixture
def front(scaled: Project) -> str:
    """Where nginx answers, with both replicas behind it."""
    address = scaled.address("nginx", 8000)
    eventually(lambda: len(healthy(scaled)) == 2, "two healthy replicas", seconds=90)
    return address


def healthy(scaled: Project) -> list[str]:
    """Ids of the replicas that are healthy."""
    return [container for container in scaled.containers("tandem") if scaled.health(container) == "healthy"]


def answered(engine: Engine, container: str) -> float:
    """Translations that a replica answered so far, by its own count."""
    text = engine.execute(container, "python", "-c", _FETCH).stdout
    return sum(float(value) for labels, value in _COUNTED.findall(text) if 'status="200"' in labels)


def data_folder(engine: Engine, container: str) -> str:
    """Where a replica keeps its state: what the server's process was given in the place of the image's folder."""
    variables = engine.execute(container, "sh", "-c", "cat /proc/[0-9]*/environ 2>/dev/null; true").stdout.split("\0")
    return max({line.partition("=")[2] for line in variables if line.startswith("TANDEM_DATA=")}, key=len)


def ask(engine: Engine, container: str, key: str, path: str, text: str = "") -> int:
    """Ask one replica, not nginx, with a key; the reply's status."""
    return int(engine.execute(container, "python", "-c", _ASK, key, path, text).stdout)


def test_both_replicas_answer(engine: Engine, scaled: Project, front: str) -> None:
    before = {container: answered(engine, container) for container in healthy(scaled)}
    with streaming(front, first=400_000) as stream:
        eventually(lambda: stream.answered >= ENOUGH, f"{ENOUGH} replies")
    shares = {container: answered(engine, container) - count for container, count in before.items()}
    assert stream.lost == []
    assert sum(shares.values()) == stream.answered
    assert min(shares.values()) >= stream.answered / 4, shares


def test_only_nginx_is_published(scaled: Project) -> None:
    services = scaled.config()["services"]
    published = {name for name in ("tandem", "nginx", "store") if services[name].get("ports")}
    assert published == {"nginx"}


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_replica_that_ends_under_load_costs_no_request(
    engine: Engine, scaled: Project, front: str, signal: str
) -> None:
    """Stopped in order it ends with 0; killed, what it was answering is asked of the other one."""
    gone, other = healthy(scaled)
    with streaming(front, first=500_000 if signal == "TERM" else 600_000) as stream:
        eventually(lambda: stream.answered >= ENOUGH, f"{ENOUGH} replies of two replicas")
        engine.docker(*(("stop", gone) if signal == "TERM" else ("kill", gone)), timeout=90)
        reached = stream.answered
        eventually(lambda: stream.answered >= reached + ENOUGH, f"{ENOUGH} replies of one replica")
        state = scaled.state(gone)
        engine.docker("start", gone)
        eventually(lambda: scaled.health(gone) == "healthy", "the replica's return", seconds=90)
        count = answered(engine, gone)
        eventually(lambda: answered(engine, gone) > count, "replies of the replica that came back")
    assert stream.lost == []
    assert (state["Status"], state["ExitCode"]) == ("exited", 0 if signal == "TERM" else 137)
    assert scaled.state(other)["Status"] == "running"


def test_quota_is_shared(engine: Engine, scaled: Project, front: str) -> None:
    """What one replica counted, the other one knows; keys are made and handed on as docs/deploy.md says."""
    first, second = sorted(healthy(scaled), key=lambda container: len(data_folder(engine, container)))
    assert data_folder(engine, first) != data_folder(engine, second)
    added = engine.execute(first, "tandem", "keys", "add", "shared", "--quota", "100", "--json")
    key = json.loads(added.stdout)["key"]
    engine.execute(first, "/opt/tandem/replica", "keys")
    # A running server follows within about a second.
    eventually(lambda: ask(engine, second, key, "/v2/usage") == 200, "the key on the replica that took it over")
    text = "Wir warten heute am Bahnhof auf den Zug, der nach Hause geht"
    assert (ask(engine, first, key, "/translate", text), ask(engine, second, key, "/translate", text)) == (200, 429)
    assert translate(front, text, key).status_code == 429


def test_backup_of_every_replica(engine: Engine, scaled: Project, front: str) -> None:
    container = healthy(scaled)[0]
    engine.execute(container, "/opt/tandem/replica", "backup", "all")
    listed = engine.execute(container, "sh", "-c", "cd /srv/tandem/backups/all && ls */jobs.db").stdout
    assert listed.split() == ["1/jobs.db", "2/jobs.db"]


def test_without_the_store_requests_pass(scaled: Project, front: str) -> None:
    scaled.compose("stop", "store")
    try:
        assert translate(front, "Guten Abend, wie geht es dir?").status_code == 200
    finally:
        scaled.up("store")


@pytest.mark.parametrize("service", ["nginx", "store"])
def test_container_is_limited(scaled: Project, service: str) -> None:
    assert scaled.limits(service)["LogConfig"]["Config"]["max-size"]


def test_metrics_are_not_for_everybody(front: str) -> None:
    assert httpx.get(f"{front}/metrics", timeout=20).status_code in (403, 404)


def test_large_file_passes_and_is_found_again(front: str) -> None:
    """Up to the service's own bound, and whichever replica has it."""
    document = b"<p>Guten Tag.</p><!--" + b"x" * (5 << 20) + b"-->"
    with httpx.Client(base_url=front, timeout=60) as client:
        reply = client.post(
            "/files", data={"source": "de", "target": "en"}, files={"file": ("page.html", document, "text/html")}
        )
        assert reply.status_code == 202, reply.text
        for _ in range(4):
            assert client.get(f"/files/{reply.json()['id']}").status_code == 200


def test_events_pass_unbuffered(front: str) -> None:
    headers = {"Accept": "text/event-stream"}
    body = {"q": "Guten Tag. Wie geht es dir? Ich warte.", "source": "de", "target": "en"}
    with httpx.stream("POST", f"{front}/translate", json=body, headers=headers, timeout=60) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert "Content-Length" not in reply.headers
        lines = list(reply.iter_lines())
    assert sum(line.startswith("data:") for line in lines) >= 3
