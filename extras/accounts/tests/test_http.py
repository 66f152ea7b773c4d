"""Keys as clients see them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tandem.extras.accounts import errors
from tandem.extras.accounts.access import KeyedAccess
from tandem.extras.accounts.keys import MIGRATIONS, CallerLimits, KeyStore, Snapshot
from tandem.extras.accounts.tests.guarded import TEXT, TRANSLATE, access_of, bearer, guarded, make_key
from tandem.extras.shared.database import Database
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.callers import Caller
from tandem.service.errors import AdminRequired, KeyInvalid, ServiceError, StorageError
from tandem.service.http.error_replies import reply_for
from tandem.service.settings import Settings
from tests.deploy.promql import OF_EXTRAS, exposition
from tests.service.support import PATIENCE, Served, assert_error

pytestmark = pytest.mark.anyio
ROUTES = [
    ("/translate", TRANSLATE),
    ("/postedit", {"q": TEXT, "translation": TEXT, "source": "de", "target": "en"}),
    ("/summarize", {"q": TEXT, "language": "en"}),
    ("/detect", {"q": TEXT}),
]


@pytest.mark.parametrize(("path", "fields"), ROUTES)
async def test_routes_for_text_ask_for_a_key(service: Served, path: str, fields: dict[str, str]) -> None:
    missing = await service.client.post(path, json=fields)
    assert_error(missing, 401, "key_missing")
    assert missing.headers["www-authenticate"].startswith("Bearer")
    wrong = await service.client.post(path, json=fields, headers=bearer("tandem_00000000_" + "x" * 43))
    assert_error(wrong, 403, "key_invalid")
    assert service.engine.dispatcher.counters.joined == 2  # the probes
    right = await service.client.post(path, json=fields, headers=bearer(make_key(service)))
    assert right.status_code in (200, 404), right.text  # no bundle here corrects translations


async def test_a_key_may_come_in_each_of_its_places(service: Served) -> None:
    secret = make_key(service)
    fields = {"q": TEXT, "source": "de", "target": "en"}
    for headers in ({"Authorization": f"DeepL-Auth-Key {secret}"}, {"authorization": f"bearer  {secret}"}):
        assert (await service.client.post("/translate", json=fields, headers=headers)).status_code == 200
    fields |= {"api_key": secret}
    assert (await service.client.post("/translate", json=fields)).status_code == 200
    assert (await service.client.post("/translate", data=fields)).status_code == 200
    proxy = {"Authorization": "Basic dXNlcjpwYXNz"}  # a proxy's business
    assert (await service.client.post("/translate", json=fields, headers=proxy)).is_success
    both = await service.client.post("/translate", json=fields, headers=bearer("wrong"))
    assert_error(both, 403, "key_invalid")


async def test_what_is_public_asks_for_no_key(service: Served) -> None:
    for path in ("/languages", "/models", "/healthz", "/readyz", "/metrics"):
        assert (await service.client.get(path)).status_code == 200


async def test_without_required_keys_any_client_may_come_but_a_wrong_key_of_ours_is_told(
    bundles: dict[str, Bundle], tmp_path: Path
) -> None:
    async with guarded(bundles, tmp_path, require_key=False) as service:
        for headers in ({}, bearer("whatever-this-client-must-send")):
            assert (await service.client.post("/detect", json={"q": TEXT}, headers=headers)).status_code == 200
        secret = make_key(service)
        assert (await service.client.post("/detect", json={"q": TEXT}, headers=bearer(secret))).status_code == 200
        wrong = await service.client.post("/detect", json={"q": TEXT}, headers=bearer(secret[:-1] + "~"))
        assert_error(wrong, 403, "key_invalid")


async def test_another_process_revokes_a_key_and_the_running_server_follows(service: Served, tmp_path: Path) -> None:
    secret = make_key(service)
    assert (await service.client.post("/detect", json={"q": TEXT}, headers=bearer(secret))).status_code == 200
    with closing(Database(tmp_path / "keys.db", MIGRATIONS)) as other:
        KeyStore(other).revoke("web")
    async with asyncio.timeout(PATIENCE):
        while (await service.client.post("/detect", json={"q": TEXT}, headers=bearer(secret))).is_success:
            await asyncio.sleep(0.05)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[KeyedAccess]:
    """What knows keys, of a server that does not follow the store by itself, and asks for a key."""
    access = KeyedAccess(Settings(require_key=True, data=tmp_path))
    yield access
    await access.close()


def made_elsewhere(folder: Path, name: str, *, admin: bool = False) -> str:
    with closing(Database(folder / "keys.db", MIGRATIONS)) as other:
        return KeyStore(other).add(name, CallerLimits(rate=7), admin=admin).secret


async def test_a_key_that_another_process_has_just_made_holds_at_once(alone: KeyedAccess, tmp_path: Path) -> None:
    secret = made_elsewhere(tmp_path, "web")
    assert alone.caller(secret) == Caller("web") and alone.limits_of("web").rate == 7
    with pytest.raises(AdminRequired, match="this server has none"):
        alone.admin(secret)
    assert alone.admin(made_elsewhere(tmp_path, "operator", admin=True)) == Caller("operator", admin=True)


async def test_guessing_keys_does_not_keep_the_store_busy(
    alone: KeyedAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, snapshot = list[Snapshot | None](), alone.keys.snapshot

    def counted(known: Snapshot | None = None) -> Snapshot:
        asked.append(known)
        return snapshot(known)

    monkeypatch.setattr(alone.keys, "snapshot", counted)
    for number in range(100):
        assert alone.find(f"another-service-{number}") is None
    assert not asked, "what cannot be a key of ours is none"
    for number in range(100):
        assert alone.find(f"tandem_{number:08x}_{'x' * 43}") is None
    assert len(asked) == 5
    secret = made_elsewhere(tmp_path, "web")
    assert alone.find(secret) is None and len(asked) == 5, "for a while the keys known so far decide"
    monkeypatch.setattr("tandem.extras.accounts.access._REFRESH", 0.01)
    alone.start()
    async with asyncio.timeout(PATIENCE):
        while alone.find(secret) is None:
            await asyncio.sleep(0.01)


async def test_a_store_that_does_not_answer_is_not_waited_for(
    alone: KeyedAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, answers, asked = alone.keys.snapshot, threading.Event(), list[None]()

    def slow(known: Snapshot | None = None) -> Snapshot:
        asked.append(None)
        assert answers.wait(PATIENCE)
        return snapshot(known)

    monkeypatch.setattr(alone.keys, "snapshot", slow)
    secret = made_elsewhere(tmp_path, "web")
    for _ in range(9):
        with pytest.raises(KeyInvalid):
            alone.caller(secret)
    assert len(asked) == 1, "one refresh at a time, and none after it until the store is followed again"
    answers.set()


async def test_keys_in_memory_are_made_by_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyedAccess(Settings())
    monkeypatch.setattr(access.keys, "snapshot", None)
    assert access.find("tandem_00000000_" + "x" * 43) is None
    await access.close()


async def test_the_keys_known_stay_valid_while_their_store_is_out(service: Served) -> None:
    secret, access = make_key(service), access_of(service)

    def fail(known: Any) -> Any:
        raise StorageError("out")

    access.keys.snapshot = fail  # type: ignore[method-assign, assignment]
    access.refresh()
    access.refresh()
    assert (await service.client.post("/detect", json={"q": TEXT}, headers=bearer(secret))).status_code == 200
    failed = re.search(r'tandem_access_failures_total{store="keys"} (\d+)', (await service.client.get("/metrics")).text)
    assert failed and int(failed[1]) >= 2  # the server looks by itself too


async def test_metrics_have_the_names_of_keys(service: Served) -> None:
    secret = make_key(service)
    await service.client.post("/detect", json={"q": TEXT}, headers=bearer(secret))
    await service.client.post("/detect", json={"q": TEXT}, headers=bearer("wrong"))
    text = (await service.client.get("/metrics")).text
    assert 'tandem_http_requests_total{key="web",method="POST",route="/detect",status="200"} 1.0' in text
    assert 'tandem_http_requests_total{key="",method="POST",route="/detect",status="403"} 1.0' in text
    assert secret not in text and secret[16:] not in text


def test_required_keys_need_a_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="require_key needs the setting data"):
        KeyedAccess(Settings(require_key=True))


def test_an_admin_key_must_be_long() -> None:
    with pytest.raises(ValueError, match="at least 20"):
        Settings(admin_key=SecretStr("short"))


async def test_a_server_that_asks_for_keys_answers_for_any_name_and_to_any_page(service: Served) -> None:
    answered = await service.client.get("/languages", headers={"Host": "pages.example"})
    assert answered.status_code == 200
    posted = await service.client.post("/detect", headers={"Sec-Fetch-Site": "cross-site"})
    assert posted.status_code != 403 or posted.json()["code"] != "cross_site"


ERRORS = [
    (errors.GlossaryLimit("glossaries", 3, 4), 400, "glossary_limit", {}),
    (errors.MemoryEntryNotFound("no"), 404, "memory_entry_not_found", {}),
    (errors.MemoryLimit("entries", 3, 4), 400, "memory_limit", {}),
    (errors.RateLimited(60, 11.2), 429, "rate_limited", {"Retry-After": "12"}),
    (errors.QuotaExceeded(9, 8, 7, 100.0), 429, "quota_exceeded", {"Retry-After": "100"}),
    (errors.LimitsUnavailable(5.0), 503, "limits_unavailable", {"Retry-After": "5"}),
]


def test_every_error_has_a_reply() -> None:
    bases = {ServiceError, errors.StoreFull, errors._Later}
    leaves = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ServiceError)}
    assert {type(error) for error, *_ in ERRORS} == leaves - bases
    for error, status, code, headers in ERRORS:
        reply = reply_for(error)
        assert (reply.status, reply.code, reply.headers) == (status, code, headers)


async def test_the_names_that_rules_know(service: Served) -> None:
    exposed = exposition((await service.client.get("/metrics")).text).keys()
    ours = ("tandem_access_", "tandem_memory_failures")
    assert {name for name in exposed if name.startswith(ours)} == {name for name in OF_EXTRAS if name.startswith(ours)}
