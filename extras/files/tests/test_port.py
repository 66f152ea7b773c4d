"""How the core finds what is here."""

from __future__ import annotations

import pytest

from tandem.extras.files.formats import FORMATS
from tandem.extras.files.port import EXTRA
from tandem.extras.files.settings import FileSettings
from tandem.service.http.parts import HttpPart
from tandem.service.ports import load
from tandem.service.settings import Settings
from tests.service.support import Served


def test_what_the_port_names_is_there() -> None:
    assert all(isinstance(load(place), HttpPart) for place in EXTRA.http)
    assert FileSettings.model_fields.keys() <= Settings.model_fields.keys()


@pytest.mark.anyio
async def test_pages_are_told_of_the_types(service: Served) -> None:
    found = (await service.client.get("/frontend/settings")).json()
    assert found["filesTranslation"] is True
    assert found["supportedFilesFormat"] == sorted(f".{ending}" for ending in FORMATS)
