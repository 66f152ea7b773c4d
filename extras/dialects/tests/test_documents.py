"""DeepL's documents, with its own Python client: offered where the extra `files` is."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path
from typing import Any

import deepl
import httpx
import pytest
from docx import Document

pytest.importorskip("tandem.extras.files", exc_type=ModuleNotFoundError)

from tandem.extras.accounts.tests.keyed import Keyed
from tandem.extras.dialects.deepl import documents
from tandem.extras.dialects.tests.test_deepl_client import RAILWAY, client, connect
from tandem.extras.files.jobs import bounds_of
from tandem.extras.files.records import FileJob
from tandem.extras.files.serving import FileService
from tandem.extras.files.tests.samples import SAMPLES
from tandem.extras.files.tests.working import InProcess
from tandem.service.settings import Settings
from tests.service.http.live import Live

__all__ = ["client"]


@pytest.fixture(autouse=True)
def quick(server: Live) -> None:
    """Files are read and written in the server's process."""
    jobs = server.app.state.parts.resource(FileService).jobs
    jobs._sandbox = jobs._runner._sandbox = InProcess(bounds_of(Settings()))


def test_a_documents_life(client: deepl.DeepLClient, tmp_path: Path) -> None:
    made = client.create_glossary("Railway", "DE", "EN", RAILWAY)
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("wo ist der bahnhof heute\n\nguten morgen\n")
    languages: dict[str, Any] = {"source_lang": "DE", "target_lang": "EN-US"}
    done = client.translate_document_from_filepath(source, target, formality="more", glossary=made, **languages)
    assert target.read_text() == "wo ist der station heute\n\nguten morgen\n"
    assert (done.status, done.billed_characters) == (deepl.DocumentStatus.Status.DONE, 36)

    handle = client.translate_document_upload("guten morgen", filename="a.txt", **languages)
    assert re.fullmatch("Document ID: [0-9A-F]{32}, key: [0-9A-F]{64}", str(handle))
    assert client.translate_document_wait_until_done(handle).done
    for _ in range(2):
        kept = io.BytesIO()
        client.translate_document_download(handle, kept)
        assert kept.getvalue() == b"guten morgen"
    for other in (
        deepl.DocumentHandle(handle.document_id, "CD34" * 16),
        deepl.DocumentHandle("12AB" * 8, handle.document_key),
    ):
        for attempt in (client.translate_document_get_status, client.translate_document_download):
            with pytest.raises(deepl.DeepLException, match="Not found"):
                attempt(other)
    client.delete_glossary(made)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("a.invalid", {"target_lang": "EN-GB"}, "Invalid file.*file extension '.invalid'"),
        ("a.html", {"target_lang": "EN-GB", "output_format": "docx"}, "output_format"),
        ("a.txt", {"target_lang": "XX"}, "target_lang.*not supported"),
        ("a.txt", {"target_lang": "EN-GB", "source_lang": "DE", "glossary": "none"}, "no such glossary"),
    ],
)
def test_documents_that_are_refused(client: deepl.DeepLClient, name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(deepl.DeepLException, match=f"Bad request.*{says}"):
        client.translate_document_upload("Wo ist der Bahnhof?", filename=name, **options)


def test_a_document_in_the_target_language_is_an_error(client: deepl.DeepLClient, tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("Das ist ein sehr altes Haus.")
    with pytest.raises(deepl.DocumentTranslationException, match="Source and target language are equal") as caught:
        client.translate_document_from_filepath(source, tmp_path / "b.txt", target_lang="DE")
    with pytest.raises(deepl.DeepLException, match="Bad request"):  # of which the client reads no more
        client.translate_document_download(caught.value.document_handle)


def test_an_upload_says_which_language_was_taken(server: Live) -> None:
    """The likeliest that is served."""
    file = {"file": ("a.txt", "Pourriez-vous me dire où se trouve la gare ?")}
    reply = httpx.post(f"{server.url}/v2/document", data={"target_lang": "EN-GB", "formality": "more"}, files=file)
    assert reply.status_code == 200, reply.text
    notice = reply.headers["x-tandem-notice"]
    assert notice.startswith("formality=more: ") and "source_lang: taken to be de, " in notice


def test_the_quota_counts_documents(keyed: Keyed, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = connect(keyed.live.url, keyed.poor)
    monkeypatch.delattr("deepl.http_client._BackoffTimer.sleep_until_deadline")  # it does not try again
    with pytest.raises(deepl.QuotaExceededException, match="at most 30 characters"):
        poor.translate_document_upload(
            "wo ist der bahnhof heute. " * 2, filename="a.txt", source_lang="DE", target_lang="EN-GB"
        )


def test_a_pdf_becomes_a_word_document(client: deepl.DeepLClient, server: Live, tmp_path: Path) -> None:
    """The client asks for the type that the result's name has, where that is another than the document's."""
    source = tmp_path / "a.pdf"
    source.write_bytes(SAMPLES["pdf"][0])
    languages: dict[str, Any] = {"source_lang": "DE", "target_lang": "EN-US"}
    client.translate_document_from_filepath(source, tmp_path / "b.docx", **languages)
    assert "wo ist der bahnhof" in Document(str(tmp_path / "b.docx")).paragraphs[0].text
    refused = "output_format: must be docx, which is what a pdf becomes"
    with source.open("rb") as file, pytest.raises(deepl.DeepLException, match=refused):
        client.translate_document_upload(file, filename="a.pdf", output_format="pdf", **languages)
    with source.open("rb") as file:
        form = {"source_lang": "DE", "target_lang": "EN-US"}
        reply = httpx.post(f"{server.url}/v2/document", data=form, files={"file": ("a.pdf", file)})
    assert reply.headers["x-tandem-notice"] == "output_format: the result is a docx, which a pdf becomes"


def test_a_question_counts_as_a_request(keyed: Keyed) -> None:
    url, key = f"{keyed.live.url}/v2/document/none", {"Authorization": f"DeepL-Auth-Key {keyed.slow}"}
    statuses = [httpx.post(url, data={"document_key": "none"}, headers=key).status_code for _ in range(2)]
    assert statuses == [404, 429]


def test_a_clock_that_was_set_back_leaves_a_document_no_negative_time() -> None:
    created = time.time() + 3_600
    job = FileJob("x", "key", "a.txt", "txt", "de", "en", None, "running", created, characters=10, bytes=10, done=5)
    assert documents._status(job).seconds_remaining == 0
