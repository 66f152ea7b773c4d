"""A service whose extras know no callers: everybody is anonymous, but for who has the admin key of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from tandem.models.errors import ConfigError
from tandem.service.callers import ADMIN, ANONYMOUS, Caller, NoGlossaries, NoMemory, OpenAccess, QuotaUsage, Receipt
from tandem.service.errors import AdminRequired, GlossaryNotFound, KeyInvalid, KeyMissing

KEY = "an-admin-key-of-the-settings"


def test_everybody_is_anonymous_whatever_key_they_send() -> None:
    access = OpenAccess()
    for secret in (None, "", "a key of another service", KEY):
        assert access.caller(secret) == Caller(ANONYMOUS) and access.find(secret) is None
    assert not access.requires_key


def test_the_admin_key_of_the_settings_is_known() -> None:
    access = OpenAccess(SecretStr(KEY))
    assert access.admin(KEY) == access.caller(KEY) == access.find(KEY) == Caller(ADMIN, admin=True)
    assert access.caller(KEY[:-1]) == Caller(ANONYMOUS)
    for secret, error in ((None, KeyMissing), ("", KeyMissing), (KEY[:-1], KeyInvalid)):
        with pytest.raises(error):
            access.admin(secret)


def test_without_an_admin_key_nobody_is_an_administrator() -> None:
    with pytest.raises(AdminRequired, match="TANDEM_ADMIN_KEY"):
        OpenAccess().admin(KEY)


@pytest.mark.anyio
async def test_nothing_is_counted() -> None:
    access, caller = OpenAccess(), Caller(ANONYMOUS)
    assert await access.charge(caller, 10**9) == Receipt()
    async with access.charged(caller, 10**9) as receipt:
        assert receipt == Receipt()
    await access.refund(receipt)
    assert await access.usage(caller) == QuotaUsage(0, None)


def test_nothing_is_stored() -> None:
    with pytest.raises(GlossaryNotFound, match="keeps none"):
        NoGlossaries().terms(ANONYMOUS, ["any"], "de", "en")
    assert NoMemory().recall(ANONYMOUS, "de", "en", ["Wo?"]) == {}
    with pytest.raises(ConfigError, match=r"keys\.db"):
        OpenAccess().take_over(Path("keys.db"))
