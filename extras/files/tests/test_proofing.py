"""The language that a document says its texts are in is the one that they are translated into."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tandem.extras.documents.tests.documents import (
    members,
    paragraph,
    run,
    source_file,
    translated,
    with_body,
    with_members,
)
from tandem.extras.files.formats import FORMATS
from tandem.extras.files.tests.samples import SAMPLES
from tandem.extras.files.tests.test_formats import in_capitals

ODT = '<style:text-properties fo:language="{}" fo:country="{}" style:language-asian="zh" style:country-asian="CN"/>'


def test_word(tmp_path: Path) -> None:
    language = '<w:rPr><w:lang w:val="{}" w:eastAsia="ja-JP"/></w:rPr>'
    content = with_body(paragraph(run("wo ist", language.format("de-DE")), run(" das", language.format("de-CH"))))
    styles = members(content)["word/styles.xml"]
    content = with_members(content, {"word/styles.xml": styles.replace(b'w:val="en-US"', b'w:val="de-AT"')})
    new = members(in_capitals(tmp_path, "docx", content))
    body = new["word/document.xml"]
    assert b'w:val="en-US" w:eastAsia="ja-JP"' in body and b"de-DE" not in body
    assert new["word/styles.xml"] == styles


def test_slides(tmp_path: Path) -> None:
    name = "ppt/slides/slide1.xml"
    slide = members(SAMPLES["pptx"][0])[name].decode()
    marked = slide.replace("<a:r><a:t>", '<a:r><a:rPr lang="de-DE" b="0"/><a:t>')
    new = members(in_capitals(tmp_path, "pptx", with_members(SAMPLES["pptx"][0], {name: marked})))[name]
    assert b'lang="en-US"' in new and b"de-DE" not in new


@pytest.mark.parametrize(
    ("target", "before", "after"),
    [
        ("en", ("de", "DE"), ("en", "US")),
        ("en", ("en", "GB"), ("en", "GB")),
        ("pt-BR", ("de", "DE"), ("pt", "BR")),
        ("en", ("zxx", "none"), ("zxx", "none")),
    ],
)
def test_open_document(tmp_path: Path, target: str, before: tuple[str, str], after: tuple[str, str]) -> None:
    sample = SAMPLES["odt"][0]
    page = members(sample)["styles.xml"].decode()
    start = page.index("</office:document-styles>")
    style = '<office:styles><style:style style:name="x" style:family="text">{}</style:style></office:styles>'
    marked = page[:start] + style.format(ODT.format(*before)) + page[start:]
    path, result = tmp_path / "a.odt", tmp_path / "b.odt"
    path.write_bytes(with_members(sample, {"styles.xml": marked}))
    source = replace(source_file(path), target=target)
    FORMATS["odt"].write(source, [one.text for one in FORMATS["odt"].read(source)], result)
    assert ODT.format(*after) in members(result.read_bytes())["styles.xml"].decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<html lang="de">', '<html lang="en">'),
        ("<HTML class=x LANG=de-AT>", "<HTML class=x LANG=en>"),
        ('<html xml:lang="de" lang="de">', '<html xml:lang="en" lang="en">'),
        ('<html lang="en-GB">', '<html lang="en-GB">'),
        ("<html>", "<html>"),
    ],
)
def test_a_page(tmp_path: Path, before: str, after: str) -> None:
    rest = '<head><title>x</title></head><body><p>wo ist <span lang="fr">rue</span></p></body></html>'
    new = translated(tmp_path, "html", f"<!doctype html>{before}{rest}".encode())
    assert new.decode() == f"<!doctype html>{after}{rest}"
