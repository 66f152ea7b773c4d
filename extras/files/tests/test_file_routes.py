"""Files over HTTP: our own routes and LibreTranslate's, who may see what, and every refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from tandem.extras.accounts.keys import CallerLimits
from tandem.extras.documents.tests.documents import members, paragraph, run, with_body
from tandem.extras.documents.tests.test_docx import BOLD
from tandem.extras.files.jobs import FileJobs
from tandem.extras.files.records import FileJob
from tandem.extras.files.serving import FileService
from tandem.extras.files.tests.working import finished, sent
from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.support import PATIENCE, Served, assert_error, served, until

pytestmark = pytest.mark.anyio
ADMIN_KEY = "administrator-of-these-tests"


@pytest.fixture
async def small(bundles: dict[str, Bundle], tmp_path: Path) -> AsyncIterator[Served]:
    """A service with small bounds that keeps its data."""
    async with served(bundles, Settings(data=tmp_path, file_bytes=2048, request_timeout=1.0)) as running:
        yield running


def files(service: Served) -> FileJobs:
    jobs: FileJobs = service.app.state.parts.resource(FileService).jobs
    return jobs


async def open_jobs(service: Served) -> list[FileJob]:
    return await asyncio.to_thread(files(service)._store.unfinished)


async def test_a_file_from_upload_to_deletion(service: Served) -> None:
    service.graphs.gate.clear()
    accepted = await service.client.post("/files", **sent(name="Wo ist’s.TXT"))
    job = accepted.json()
    assert accepted.status_code == 202 and accepted.headers["location"] == f"/files/{job['id']}"
    assert job["name"] == "Wo ist’s.txt" and job["status"] in ("queued", "running") and job["progress"] == 0
    assert not {"result", "error", "finished", "expires", "detectedLanguage", "owner", "download"} & set(job)
    assert_error(await service.client.get(f"/files/{job['id']}/result"), 409, "file_not_ready")
    service.graphs.gate.set()
    done = await finished(service, accepted)
    assert (done["status"], done["progress"], done["result_name"]) == ("done", 1.0, "Wo ist’s.en.txt")
    assert done["created"] <= done["finished"] < done["expires"]
    result = await service.client.get(done["result"])
    assert result.content == b"wo ist der bahnhof heute\n"
    assert result.headers["content-type"].startswith("text/plain")
    assert (
        result.headers["content-disposition"]
        == "attachment; filename=\"Wo ist_s.en.txt\"; filename*=UTF-8''Wo%20ist%E2%80%99s.en.txt"
    )
    assert (await service.client.delete(f"/files/{job['id']}")).status_code == 204
    for path in (f"/files/{job['id']}", f"/files/{job['id']}/result"):
        assert_error(await service.client.get(path), 404, "file_not_found")
    assert_error(await service.client.delete(f"/files/{job['id']}"), 404, "file_not_found")


@pytest.mark.parametrize(
    ("name", "shown", "header"),
    [
        ("../../etc/passwd.txt", "passwd.txt", "passwd.en.txt"),
        ("C:\\secret\\brief.txt", "brief.txt", "brief.en.txt"),
        ("a\u202etxt;b=c.txt", "atxt;b=c.txt", "atxt_b_c.en.txt"),
        (".txt", "file.txt", "file.en.txt"),
        ("ä" * 200 + ".txt", "ä" * 75 + ".txt", "_" * 75 + ".en.txt"),
    ],
)
async def test_any_file_name_is_safe(service: Served, name: str, shown: str, header: str) -> None:
    done = await finished(service, await service.client.post("/files", **sent(name=name)))
    assert done["name"] == shown
    result = await service.client.get(done["result"])
    disposition = result.headers["content-disposition"]
    assert f'filename="{header}"' in disposition and disposition.isascii()


async def test_a_word_document_through_the_whole_pipeline(service: Served) -> None:
    body = paragraph(run("wo ist "), run("der bahnhof", BOLD), run(" heute")) + paragraph(run("guten morgen"))
    content = with_body(body)
    done = await finished(service, await service.client.post("/files", **sent(content, "a.docx")))
    assert done["status"] == "done", done
    result = (await service.client.get(done["result"])).content
    text = members(result)["word/document.xml"].decode()
    assert "guten morgen" in text and text.count("<w:b/>") == 1
    assert {k: v for k, v in members(result).items() if k != "word/document.xml"} == {
        k: v for k, v in members(content).items() if k != "word/document.xml"
    }


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("html", b"<!doctype html><title>das haus</title>\n<p>wo ist <b>der bahnhof</b> heute<script>x</script>"),
        ("srt", b"3\n00:00:01,250 --> 00:00:03,999\nwo ist\nder bahnhof heute\n\n"),
    ],
)
async def test_markup_and_subtitles_through_the_whole_pipeline(service: Served, ending: str, content: bytes) -> None:
    done = await finished(service, await service.client.post("/files", **sent(content, f"a.{ending}")))
    assert done["status"] == "done", done
    result = (await service.client.get(done["result"])).content
    for part in (
        (b"<script>x</script>", b"<title>das haus</title>") if ending == "html" else (b"01,250 --> 00:00:03,999",)
    ):
        assert part in result
    assert len(result.split()) == len(content.split())


@pytest.mark.parametrize(
    ("request_", "status", "code", "says"),
    [
        (sent(name="a.doc"), 415, "unsupported_file", "send one of .arb, .csv, .docx, .epub, .htm, .html"),
        (sent(name="a"), 415, "unsupported_file", "files without a file extension"),
        (sent(b"%PDF-1.7", "a.txt"), 415, "unsupported_file", "holds a PDF document"),
        (sent(b"wort", "a.docx"), 415, "unsupported_file", "holds no office document"),
        (sent(b"\xff\xfe\xff", "a.txt"), 422, "broken_file", "not valid UTF-16-LE"),
        (sent(target="xx"), 404, "language_not_served", "does not know the language 'xx'"),
        (sent(model="none"), 404, "model_not_found", "none"),
        (sent(source="d" * 36), 422, "invalid_field", "at most 35 characters, but is 36"),
        ({"files": {"file": ("a.txt", b"x")}}, 422, "invalid_field", "target: is required"),
        ({"data": {"target": "en"}, "files": {"other": ("a.txt", b"x")}}, 422, "invalid_field", "file: is required"),
        ({"files": [("file", ("a.txt", b"x")), ("file", ("b.txt", b"x"))]}, 400, "bad_request", "one file"),
        ({"data": {"file": "x", "target": "en"}}, 415, "unsupported_media_type", "multipart/form-data"),
        ({"json": {"file": "x"}}, 415, "unsupported_media_type", "multipart/form-data"),
        (
            {"content": b"--x\r\nbroken", "headers": {"content-type": "multipart/form-data; boundary=x"}},
            422,
            "invalid_field",
            "file: is required",
        ),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, 400, "bad_request", "multipart"),
    ],
)
async def test_what_is_refused(service: Served, request_: dict[str, Any], status: int, code: str, says: str) -> None:
    body = assert_error(await service.client.post("/files", **request_), status, code)
    assert says in body["error"]
    assert await open_jobs(service) == []


async def test_uploads_have_a_bound_of_their_own(small: Served) -> None:
    over = 2048 + (64 << 10) + 1
    body = assert_error(await small.client.post("/files", **sent(b"x" * over)), 413, "too_large")
    assert body["detail"]["bound"] == over - 1 and body["detail"]["value"] > over

    async def pieces() -> AsyncIterator[bytes]:  # without Content-Length
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        for _ in range(80):
            yield b"x" * 1024

    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert_error(await small.client.post("/files", content=pieces(), headers=headers), 413, "too_large")


async def test_a_slow_upload_is_given_up(small: Served) -> None:
    async def never() -> AsyncIterator[bytes]:
        yield b"--x\r\n"
        await asyncio.sleep(PATIENCE)

    headers = {"content-type": "multipart/form-data; boundary=x"}
    body = assert_error(await small.client.post("/files", content=never(), headers=headers), 408, "body_timeout")
    assert "1 s" in body["error"]


async def test_callers_without_a_key_see_files_by_id_only(service: Served) -> None:
    done = await finished(service, await service.client.post("/files", **sent()))
    assert (await service.client.get("/files")).json() == []
    named = await service.client.get("/files", params={"id": [done["id"], "unknown", done["id"]]})
    assert named.json() == [done]
    too_many = await service.client.get("/files", params={"id": ["x"] * 101})
    assert_error(too_many, 422, "invalid_field")


async def test_files_belong_to_their_keys(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, require_key=True, admin_key=SecretStr(ADMIN_KEY), files_per_caller=1)
    async with served(bundles, settings) as service:
        access = service.app.state.parts.access
        anna, ben = (access.keys.add(name, CallerLimits()).secret for name in ("anna", "ben"))
        access.refresh()
        head = {
            name: {"authorization": f"Bearer {key}"} for name, key in (("a", anna), ("b", ben), ("root", ADMIN_KEY))
        }
        assert_error(await service.client.post("/files", **sent()), 401, "key_missing")
        assert_error(await service.client.post("/files", **sent(api_key="tandem_wrong")), 403, "key_invalid")
        accepted = await service.client.post("/files", **sent(), headers=head["a"])
        job = await finished(service, accepted)
        assert [one["id"] for one in (await service.client.get("/files", headers=head["a"])).json()] == [job["id"]]
        assert (await service.client.get("/files", headers=head["b"])).json() == []
        for path, method in ((f"/files/{job['id']}", "GET"), (job["result"], "GET"), (f"/files/{job['id']}", "DELETE")):
            assert_error(await service.client.request(method, path, headers=head["b"]), 404, "file_not_found")
            assert_error(await service.client.request(method, path), 401, "key_missing")
        assert (await service.client.get(job["result"], headers=head["root"])).status_code == 200
        service.graphs.gate.clear()
        by_field = await service.client.post("/files", **sent(api_key=ben))
        assert by_field.status_code == 202
        full = await service.client.post("/files", **sent(api_key=ben))
        assert_error(full, 429, "too_many_files")
        assert int(full.headers["retry-after"]) > 0
        service.graphs.gate.set()


async def test_a_file_is_charged_for(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with served(bundles, Settings(data=tmp_path, anonymous_quota=30)) as service:
        assert (await service.client.post("/files", **sent())).status_code == 202
        over = await service.client.post("/files", **sent())
        assert_error(over, 429, "quota_exceeded")
        folders = [one for one in (tmp_path / "files").iterdir() if one.is_dir()]
        assert len(folders) == 1


async def test_libretranslate_waits_for_the_file(service: Served) -> None:
    reply = await service.client.post("/translate_file", **sent(name="brief über uns.txt"))
    assert reply.status_code == 200
    url = reply.json()["translatedFileUrl"]
    assert list(reply.json()) == ["translatedFileUrl"]
    assert url.startswith("http://localhost/download_file/") and url.endswith(".brief%20%C3%BCber%20uns.en.txt")
    result = await service.client.get(url)
    assert result.content == b"wo ist der bahnhof heute\n"
    assert result.headers["content-disposition"].startswith("attachment; ")
    behind = await service.client.post("/translate_file", **sent(), headers={"X-Forwarded-Prefix": "/mt"})
    assert behind.json()["translatedFileUrl"].startswith("http://localhost/mt/download_file/")
    assert_error(await service.client.get("/download_file/guessed.a.txt"), 404, "file_not_found")


@pytest.mark.parametrize(
    ("request_", "status", "code", "says"),
    [
        ({"files": {"file": ("a.txt", b"x")}}, 400, "invalid_field", "Invalid request: missing target parameter"),
        ({"data": {"target": "en"}, "files": {"x": ("a", b"")}}, 400, "invalid_field", "missing file parameter"),
        (sent(target="xx"), 400, "language_not_served", "xx"),
        (sent(api_key="tandem_wrong"), 403, "key_invalid", "not valid"),
    ],
)
async def test_libretranslate_statuses(
    service: Served, request_: dict[str, Any], status: int, code: str, says: str
) -> None:
    assert says in assert_error(await service.client.post("/translate_file", **request_), status, code)["error"]


async def test_libretranslate_names_the_job_that_goes_on(small: Served) -> None:
    small.graphs.gate.clear()
    body = assert_error(await small.client.post("/translate_file", **sent()), 504, "deadline")
    job = (await small.client.get(f"/files/{body['detail']['id']}")).json()
    assert job["status"] in ("queued", "running") and job["id"] in body["error"]
    small.graphs.gate.set()


async def test_libretranslate_is_told_of_a_failure(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files(service)._runner, "_wait", 0.01)
    service.graphs.crash_step = service.bundle.source_vocabularies[0].encode("haus")[-1]
    with capture_logs():  # no tracebacks for people
        body = assert_error(await service.client.post("/translate_file", **sent(b"das haus")), 500, "file_failed")
    assert "could not be translated" in body["error"]


async def test_a_client_that_leaves_cancels_the_file(service: Served) -> None:
    service.graphs.gate.clear()
    asked = asyncio.create_task(service.client.post("/translate_file", **sent()))
    await until(service.graphs.entered.is_set)
    (job,) = await open_jobs(service)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    service.graphs.gate.set()
    ended = await files(service).wait(job, PATIENCE)
    assert ended is not None and ended.status == "cancelled"


async def test_what_cannot_be_counted_fails_nothing(service: Served) -> None:
    """As where a client leaves while the service ends: its store is closed before the job is gone."""
    jobs = files(service)
    before = jobs.counts
    await jobs.close()
    jobs._store._database.close()
    await jobs._count()
    assert jobs.counts == before


async def test_a_shutdown_does_not_keep_clients_waiting(service: Served) -> None:
    service.graphs.gate.clear()
    words = "wort " * 900  # two slices
    asked = asyncio.create_task(service.client.post("/translate_file", **sent(words.encode())))
    await until(service.graphs.entered.is_set)
    service.engine.dispatcher.close()
    service.graphs.gate.set()
    assert_error(await asked, 503, "draining")
    assert await open_jobs(service) == []


async def test_cancelled_and_failed_files_have_no_result(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files(service)._runner, "_wait", 0.01)
    service.graphs.gate.clear()
    accepted = await service.client.post("/files", **sent())
    path = accepted.headers["location"]
    assert (await service.client.delete(path)).status_code == 204
    assert (await service.client.get(path)).json()["status"] == "cancelled"
    assert_error(await service.client.get(f"{path}/result"), 410, "file_gone")
    service.graphs.gate.set()
    service.graphs.crash_step = service.bundle.source_vocabularies[0].encode("haus")[-1]
    with capture_logs():
        failed = await finished(service, await service.client.post("/files", **sent(b"das haus")))
    assert (failed["status"], failed["code"]) == ("failed", "decoding_failed")
    body = assert_error(await service.client.get(f"/files/{failed['id']}/result"), 409, "file_not_ready")
    assert failed["error"] in body["error"]


async def test_metrics_count_files(service: Served) -> None:
    await finished(service, await service.client.post("/files", **sent()))
    text = (await service.client.get("/metrics")).text
    assert 'tandem_file_jobs{status="done"} 1.0' in text
    assert 'tandem_file_jobs{status="queued"} 0.0' in text
    assert "tandem_file_bytes 25.0" in text


async def test_the_document_describes_the_routes(service: Served) -> None:
    paths = (await service.client.get("/openapi.json")).json()["paths"]
    for path, method in (("/files", "post"), ("/translate_file", "post")):
        body = paths[path][method]["requestBody"]["content"]["multipart/form-data"]["schema"]
        assert body["properties"]["file"]["format"] == "binary" and "target" in body["required"]
    for path in ("/files", "/files/{id}", "/files/{id}/result", "/translate_file", "/download_file/{name}"):
        for operation in paths[path].values():
            for status, reply in operation["responses"].items():
                if status not in ("200", "202", "204"):
                    assert "example" in reply["content"]["application/json"], (path, status)
