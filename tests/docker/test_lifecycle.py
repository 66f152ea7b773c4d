"""Stops, restarts and backups of the service in its container."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.docker.compose import Project
from tests.docker.engine import Engine, eventually
from tests.docker.traffic import sentences, translate

pytestmark = pytest.mark.docker

LINES = 300  # of a file that takes longer to translate than the commands up to the server's stop
RESTORE = """
mkdir /srv/tandem/backups/replaced
mv /var/lib/tandem/* /srv/tandem/backups/replaced
cp -a /srv/tandem/backups/now/. /var/lib/tandem
"""
_BUSY = re.compile(r"^tandem_queue_tokens [1-9]", re.MULTILINE)


@contextmanager
def client_of(stack: Project, key: str) -> Iterator[httpx.Client]:
    """A client with a key that the server has taken note of: it follows changes within about a second."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=stack.address("tandem", 8000), headers=headers, timeout=30) as client:
        eventually(lambda: client.get("/v2/usage").status_code == 200, "the key's acceptance")
        yield client


def upload(client: httpx.Client, text: str) -> str:
    """Have a text file translated; the job's id."""
    files = {"file": ("letter.txt", text.encode(), "text/plain")}
    reply = client.post("/files", data={"source": "de", "target": "en"}, files=files)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def add_key(engine: Engine, container: str, name: str, *options: str) -> str:
    """Make a key as an operator does, in the running container; the key."""
    done = engine.execute(container, "tandem", "keys", "add", name, *options, "--json")
    return str(json.loads(done.stdout)["key"])


def key_names(engine: Engine, container: str) -> list[str]:
    """Names of the keys that a server knows."""
    listed = json.loads(engine.execute(container, "tandem", "keys", "list", "--json").stdout)
    return [key["name"] for key in listed]


def test_stop_answers_what_has_begun_and_ends_with_0(stack: Project) -> None:
    """`docker compose stop` sends SIGTERM: running requests are finished, and the exit status is 0."""
    container, address = stack.container("tandem"), stack.address("tandem", 8000)
    texts = list(itertools.islice(sentences(200_000), 100))
    with ThreadPoolExecutor(1) as pool:
        request = pool.submit(translate, address, texts, beam_size=10)
        eventually(
            lambda: _BUSY.search(httpx.get(f"{address}/metrics", timeout=20).text), "work in the queue", pause=0.02
        )
        stack.compose("stop", "tandem", timeout=90)
        reply = request.result(timeout=60)
    state = stack.state(container)
    assert (state["Status"], state["ExitCode"], state["OOMKilled"]) == ("exited", 0, False)
    assert (reply.status_code, len(reply.json()["translatedText"])) == (200, len(texts))
    (draining,) = [line for line in stack.engine.docker("logs", container).stderr.splitlines() if '"draining"' in line]
    assert json.loads(draining)["running_sentences"] > 0, "nothing was running when the stop came"
    stack.up("tandem")


def test_new_container_keeps_keys_and_goes_on_with_files(engine: Engine, stack: Project) -> None:
    """The volume carries keys and unfinished files over to a container that replaces the old one."""
    old = stack.container("tandem")
    key = add_key(engine, old, "keeper")
    text = "\n".join(itertools.islice(sentences(300_000), LINES))
    with client_of(stack, key) as client:
        job = upload(client, text)
        assert client.get(f"/files/{job}").json()["status"] in ("queued", "running")
    stack.compose("rm", "--stop", "--force", "tandem", timeout=90)
    stack.up("tandem")
    assert stack.container("tandem") != old
    assert "keeper" in key_names(engine, stack.container("tandem"))
    with client_of(stack, key) as client:
        eventually(lambda: client.get(f"/files/{job}").json()["status"] == "done", "the file's end", seconds=120)
        result = client.get(f"/files/{job}/result")
    assert result.status_code == 200 and len(result.text.splitlines()) == LINES


def test_backup_and_restore(engine: Engine, stack: Project, tmp_path: Path) -> None:
    """As docs/deploy.md says: what was there at the backup is there again, and what came later is not."""
    container = stack.container("tandem")
    key = add_key(engine, container, "before")
    engine.execute(container, "tandem", "backup", "/srv/tandem/backups/now")
    add_key(engine, container, "after")
    stack.compose("cp", "tandem:/srv/tandem/backups/now", str(tmp_path))
    assert not [path for path in (tmp_path / "now").rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    stack.compose("stop", "tandem", timeout=90)
    stack.compose("run", "--rm", "--no-deps", "--entrypoint", "sh", "tandem", "-ec", RESTORE)
    stack.up("tandem")
    names = key_names(engine, stack.container("tandem"))
    assert "before" in names and "after" not in names
    with client_of(stack, key) as client:
        assert client.post("/translate", json={"q": "Danke.", "source": "de", "target": "en"}).status_code == 200


def test_process_that_died_is_started_again(engine: Engine, stack: Project, image: str) -> None:
    """A crash is not a stop: the engine brings the server back, and it answers."""
    container = stack.container("tandem")
    state = stack.state(container)
    # The first process of a container takes no fatal signal from inside, and `docker kill` counts as a stop.
    outside = ("--pid", "host", "--user", "0", "--entrypoint", "/bin/sh")
    engine.run_image(image, "-c", f"kill -KILL {state['Pid']}", options=outside)
    eventually(lambda: stack.state(container)["StartedAt"] != state["StartedAt"], "a new start after the crash")
    eventually(lambda: stack.health(container) == "healthy", "healthy after the new start", seconds=90)
    assert translate(stack.address("tandem", 8000), "Guten Tag!").status_code == 200
