"""Requests to a server in a container: single ones, and a steady stream whose losses are counted."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx

from tests.docker.engine import eventually

_SUBJECTS = ("Der Zug", "Die Katze", "Mein Bruder", "Das alte Haus", "Eine Freundin", "Der Lehrer", "Unser Nachbar")
_VERBS = ("steht", "wartet", "arbeitet", "lebt", "bleibt", "schläft", "singt")
_PLACES = ("am Bahnhof", "in der Stadt", "hinter dem Garten", "auf dem Berg", "neben der Schule", "bei uns", "im Dorf")
_TIMES = ("heute", "seit drei Tagen", "jeden Morgen", "am Abend", "oft", "noch immer", "zum ersten Mal")

_FRESH = itertools.count(2_000_000, 60)


def sentences(start: int = 0) -> Iterator[str]:
    """German sentences, no two of them the same, so that no cache answers."""
    words = list(itertools.product(_SUBJECTS, _VERBS, _PLACES, _TIMES))
    for number in itertools.count(start):
        subject, verb, place, when = words[number * 1009 % len(words)]
        yield f"{subject} {verb} {when} {place}, und Nummer {number} ist dabei."


def translate(address: str, text: str | list[str], key: str = "", **fields: Any) -> httpx.Response:
    """One request for a translation from German, with more fields where they are given."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    body = {"q": text, "source": "de", "target": "en", **fields}
    return httpx.post(f"{address}/translate", json=body, headers=headers, timeout=60)


@dataclass
class Stream:
    """What became of the requests of a steady stream.

    Attributes:
        fields: of each request, besides the text and its languages.
        answered: how many got the translation that they were sent for.
        lost: what happened to the others, with the moment (UTC), so that it can be found in the logs.
    """

    fields: Mapping[str, Any]
    answered: int = 0
    lost: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, client: httpx.Client, text: str) -> None:
        """Send one request, and note what becomes of it."""
        try:
            reply = client.post("/translate", json={"q": text, "source": "de", "target": "en", **self.fields})
            fault = "" if reply.status_code == 200 else f"{reply.status_code} {reply.text[:300]}"
        except httpx.HTTPError as error:
            fault = f"{type(error).__name__}: {error}"
        with self._lock:
            if fault:
                self.lost.append(f"{datetime.now(UTC):%H:%M:%S.%f} {fault}")
            else:
                self.answered += 1


@contextmanager
def streaming(address: str, clients: int = 4, pause: float = 0.05, first: int = 0, **fields: Any) -> Iterator[Stream]:
    """Send sentences one after another from several clients until the block ends; all are answered before it does.

    Args:
        address: of the server.
        clients: that send at the same time, each on a connection of its own.
        pause: of each client between a reply and its next request, in seconds.
        first: number of the first sentence; other streams should not come near it.
        fields: of each request, besides the text and its languages.
    """
    stream, over, lock = Stream(fields), threading.Event(), threading.Lock()
    texts = sentences(first)

    def work() -> None:
        with httpx.Client(base_url=address, timeout=60) as client:
            while not over.is_set():
                with lock:
                    text = next(texts)
                stream.send(client, text)
                over.wait(pause)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield stream
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=90)


class Prometheus:
    """The HTTP interface of a Prometheus server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str, **parameters: str) -> Any:
        """The ``data`` of a reply. Raises AssertionError with Prometheus's own words where it refuses."""
        reply = httpx.get(f"{self.address}/api/v1/{path}", params=parameters, timeout=20)
        content = reply.json()
        assert content["status"] == "success", f"{path} {parameters}: {content.get('error')}"
        return content["data"]

    def query(self, expression: str) -> list[float]:
        """The values of an expression now, without those that are no number."""
        data = self.get("query", query=expression, time=f"{time.time():.3f}")
        samples = [data["result"]] if data["resultType"] == "scalar" else [item["value"] for item in data["result"]]
        return [float(value) for _, value in samples if value != "NaN"]

    def wait_for_rates(self, job: str = "tandem") -> None:
        """Until every instance of a job was scraped thrice in two minutes, so that rates have values, and once more."""
        scrapes, last = f'count_over_time(up{{job="{job}"}}[2m])', f'timestamp(up{{job="{job}"}})'
        called = time.time()

        def scraped() -> bool:
            return min(self.query(scrapes), default=0.0) >= 3 and min(self.query(last), default=0.0) > called

        eventually(scraped, "three scrapes", seconds=90)

    def rules(self) -> dict[str, dict[str, Any]]:
        """Every recording rule and alert by name, as the server evaluates it, with the seconds between evaluations."""
        groups = self.get("rules")["groups"]
        return {rule["name"]: rule | {"interval": group["interval"]} for group in groups for rule in group["rules"]}


def exercise(address: str) -> None:
    """Give every series of a healthy server a value: all routes with text, files, a full queue, and mistakes."""
    documents = [" ".join(itertools.islice(sentences(next(_FRESH)), 60)) for _ in range(24)]
    with httpx.Client(base_url=address, timeout=60) as client:
        for text in ("Guten Morgen!", "Guten Morgen!", ["Das ist gut.", "Danke."]):
            client.post("/translate", json={"q": text, "source": "de", "target": "en"}).raise_for_status()
        client.post("/translate", json={"q": "Où est la gare ?", "source": "fr", "target": "de"}).raise_for_status()
        client.post("/summarize", json={"q": "We study how to test containers. It works."}).raise_for_status()
        client.post("/detect", json={"q": "Wo ist der Bahnhof?"}).raise_for_status()
        client.post("/v2/translate", json={"text": ["Danke."], "target_lang": "EN"}).raise_for_status()
        upload = {"file": ("note.txt", b"Guten Abend.\n", "text/plain")}
        client.post("/files", files=upload, data={"source": "de", "target": "en"}).raise_for_status()
        assert client.get("/nowhere").status_code == 404
        assert client.post("/translate", json={"q": "Hallo"}).status_code == 422
    with ThreadPoolExecutor(24) as pool:  # more than the queue may hold
        statuses = Counter(reply.status_code for reply in pool.map(partial(translate, address), documents))
    assert set(statuses) == {200, 503}, statuses


@contextmanager
def long_files(address: str, count: int = 4, lines: int = 6000) -> Iterator[None]:
    """Files that are being translated, one after another, until the block ends; then they are cancelled."""
    with httpx.Client(base_url=address, timeout=60) as client:
        jobs = []
        for number in range(count):
            text = "\n".join(itertools.islice(sentences(1_000_000 + number * lines), lines))
            files = {"file": ("book.txt", text.encode(), "text/plain")}
            reply = client.post("/files", data={"source": "de", "target": "en"}, files=files).raise_for_status()
            jobs.append(reply.json()["id"])
        try:
            yield
        finally:
            for job in jobs:
                client.delete(f"/files/{job}").raise_for_status()
