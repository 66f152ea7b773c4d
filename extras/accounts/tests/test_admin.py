"""Routes for administrators."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.accounts.tests.guarded import ADMIN_KEY, TRANSLATE, bearer, guarded, make_key
from tandem.models.bundle import Bundle
from tests.service.support import Served, assert_error

pytestmark = pytest.mark.anyio


async def test_admin_routes_say_how_to_make_a_key_where_there_is_none(service: Served) -> None:
    headers = bearer(make_key(service))
    for given in ({}, headers):
        body = assert_error(await service.client.get("/secret-route", headers=given), 403, "admin_required")
        assert "tandem keys add NAME --admin" in body["error"]
        assert "TANDEM_ADMIN_KEY" in body["error"]


async def test_admin_routes_take_admin_keys_only(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with guarded(bundles, tmp_path, admin_key=ADMIN_KEY, require_key=False) as service:
        plain, admin = make_key(service), make_key(service, "root", admin=True)
        answers = {
            name: await service.client.get("/secret-route", headers=headers)
            for name, headers in {
                "none": {}, "unknown": bearer("x" * 30), "plain": bearer(plain), "admin": bearer(admin),
                "settings": bearer(ADMIN_KEY),
            }.items()
        }  # fmt: skip
        assert_error(answers["none"], 401, "key_missing")
        assert_error(answers["unknown"], 403, "key_invalid")
        assert_error(answers["plain"], 403, "admin_required")
        assert [answers[one].json() for one in ("admin", "settings")] == [{"caller": "root"}, {"caller": "admin"}]
        translated = await service.client.post("/translate", json=TRANSLATE, headers=bearer(ADMIN_KEY))
        assert translated.status_code == 200


async def test_an_admin_key_in_a_field_is_not_enough(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    """A page of another site can make a browser send fields, but not this header."""
    async with guarded(bundles, tmp_path, admin_key=ADMIN_KEY) as service:
        response = await service.client.get("/secret-route", params={"api_key": ADMIN_KEY})
        assert_error(response, 401, "key_missing")


async def test_no_name_of_a_model_leads_out_of_the_configured_folders(
    bundles: dict[str, Bundle], tmp_path: Path
) -> None:
    async with guarded(bundles, tmp_path, admin_key=ADMIN_KEY) as service:
        for name in ("..", "%2e%2e%2fetc", "..%2f..%2fetc%2fpasswd", "%2ftmp", ".", "de-en%00", "C:%5c"):
            response = await service.client.post(f"/models/{name}", headers=bearer(ADMIN_KEY))
            assert response.status_code in (404, 405, 422), response.text
