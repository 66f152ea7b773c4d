"""Files, which the image has all that they need for."""

from __future__ import annotations

from io import BytesIO

import httpx
import pytest
from docx import Document

pytest.importorskip("tandem.extras.files", exc_type=ModuleNotFoundError)

from tandem.extras.files.tests.samples import SAMPLES
from tests.docker.test_service import SENTENCE

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("kind", ["txt", "html", "srt", "docx"])
def test_file(address: str, kind: str) -> None:
    """Every kind of file is read and written: nothing that this needs was left out of the image."""
    with httpx.Client(base_url=address, timeout=60) as client:
        files = {"file": (f"letter.{kind}", document(kind), "application/octet-stream")}
        reply = client.post("/translate_file", data={"source": "de", "target": "en"}, files=files)
        assert reply.status_code == 200, reply.text
        result = client.get(reply.json()["translatedFileUrl"])
    assert result.status_code == 200
    text = (
        result.text if kind != "docx" else "\n".join(part.text for part in Document(BytesIO(result.content)).paragraphs)
    )
    assert "station" in text.lower()


@pytest.mark.parametrize("kind", SAMPLES)
def test_sample(address: str, kind: str) -> None:
    """The image has what each type's module imports."""
    with httpx.Client(base_url=address, timeout=60) as client:
        files = {"file": (f"letter.{kind}", SAMPLES[kind][0], "application/octet-stream")}
        reply = client.post("/translate_file", data={"source": "de", "target": "en"}, files=files)
        assert reply.status_code == 200, reply.text
        assert client.get(reply.json()["translatedFileUrl"]).content


def document(kind: str) -> bytes:
    """A file of a kind with one German sentence."""
    if kind == "docx":
        letter, content = Document(), BytesIO()
        letter.add_paragraph(SENTENCE)
        letter.save(content)
        return content.getvalue()
    forms = {"txt": "{}\n", "html": "<!doctype html><p>{}</p>", "srt": "1\n00:00:01,000 --> 00:00:02,000\n{}\n"}
    return forms[kind].format(SENTENCE).encode()
