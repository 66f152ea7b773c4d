"""What people and disks do to the files of jobs: the server starts, owners learn of it, and nobody else feels it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from models.bundle import Bundle
from service.settings import Settings
from tests.service.files.working import finished, sent
from tests.service.support import Served, assert_error, served

pytestmark = pytest.mark.anyio
Damage = Callable[[Path], object]


def a_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_file_for_its_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [Path.unlink, lambda path: path.write_bytes(b"wo ist"), a_folder_in_its_place, a_file_for_its_folder],
    ids=["missing", "half", "folder", "no-folder"],
)
async def test_a_damaged_result_is_told_and_can_be_deleted(
    bundles: dict[str, Bundle], tmp_path: Path, damage: Damage
) -> None:
    async with served(bundles, Settings(data=tmp_path)) as service:
        done, other = [await finished(service, await service.client.post("/files", **sent())) for _ in range(2)]
        path = tmp_path / "files" / done["id"] / "result"
        damage(path)
    async with served(bundles, Settings(data=tmp_path)) as service:
        with capture_logs() as lines:
            for _ in range(2):
                body = assert_error(await service.client.get(done["result"]), 410, "file_gone")
        assert "missing or damaged" in body["error"] and "send it again" in body["error"]
        (told,) = [line for line in lines if line["event"] == "result_damaged"]  # once, however often it is asked for
        assert told["path"] == str(path)
        assert (await service.client.get(other["result"])).content == b"wo ist der bahnhof heute\n"
        assert (await service.client.delete(f"/files/{done['id']}")).status_code == 204


async def test_a_result_that_cannot_be_read_now_is_not_given_up(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await finished(service, await service.client.post("/files", **sent()))
    opened = Path.open

    def refused(path: Path, *rest: str) -> object:
        if path.name == "result":
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest)

    with monkeypatch.context() as patched, capture_logs() as lines:
        patched.setattr(Path, "open", refused)
        assert_error(await service.client.get(done["result"]), 503, "storage_unavailable")
    assert any(done["id"] in str(line.get("cause")) for line in lines)
    assert (await service.client.get(done["result"])).status_code == 200
