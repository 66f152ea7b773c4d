"""Word documents: formatting survives, everything else stays, and hostile archives are refused by their bounds."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import docx
import pytest
from docx.shared import Inches

from tandem.extras.documents.tests.documents import (
    BOUNDS,
    blank,
    body_of,
    members,
    paragraph,
    run,
    segments,
    translated,
    with_body,
)
from tandem.extras.documents.tests.documents import with_members as changed
from tandem.extras.files.bounds import FileRefused, Segment
from tandem.service.http.error_replies import reply_for

BOLD = "<w:rPr><w:b/></w:rPr>"


def png() -> bytes:
    """An image of one pixel."""
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0\0")),
        (b"IEND", b""),
    )
    written = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


@pytest.mark.parametrize("wrap", ["w:hyperlink", "w:ins"])
def test_two_formats_of_a_link_stay_in_one(tmp_path: Path, wrap: str) -> None:
    linked = f'<{wrap} w:id="1">{run("der alte ", BOLD)}{run("hund")}</{wrap}>'
    content = with_body(paragraph(run("das ist "), linked, run(" hier")))
    (found,) = segments(tmp_path, "docx", content)
    assert found.text == 'das ist <span id="s1">der alte </span><span id="s2">hund</span> hier'
    new = body_of(
        translated(tmp_path, "docx", content, ['x <span id="s1">the old</span> <span id="s2">dog</span> <i>here</i>'])
    )
    assert new.count(f"</{wrap}>") == 1 and "".join(re.findall("<w:t[^>]*>([^<]*)<", new)) == "x the old dog here"


def test_a_document_of_another_library(tmp_path: Path) -> None:
    document = docx.Document()
    document.core_properties.title = "kein absatz"
    document.add_heading("das haus", 1)
    text = document.add_paragraph("wo ist ")
    text.add_run("der bahnhof").bold = True
    text.add_run(" heute?")
    text.add_run().add_picture(io.BytesIO(png()), Inches(1))
    document.add_paragraph("123", style="List Bullet")
    document.add_table(1, 2).cell(0, 1).text = "guten morgen"
    document.sections[0].header.paragraphs[0].text = "kopf"
    document.sections[0].footer.paragraphs[0].text = "fuss"
    kept = io.BytesIO()
    document.save(kept)
    content = kept.getvalue()
    assert segments(tmp_path, "docx", content) == [
        Segment("das haus"),
        Segment('wo ist <span id="s1">der bahnhof</span> heute?', markup=True),
        Segment("guten morgen"),
        Segment("kopf"),
        Segment("fuss"),
    ]

    translations = ["A", '<span id="s1">B</span> is C & D?', "E", "F", "G"]
    new = translated(tmp_path, "docx", content, translations)
    opened = docx.Document(io.BytesIO(new))
    assert [(one.text, one.bold) for one in opened.paragraphs[1].runs[:-1]] == [("B", True), (" is C & D?", None)]
    assert opened.paragraphs[0].text == "A" and opened.paragraphs[0].style == opened.styles["Heading 1"]
    assert opened.paragraphs[2].text == "123" and opened.tables[0].cell(0, 1).text == "E"
    assert len(opened.inline_shapes) == 1 and opened.core_properties.title == "kein absatz"
    assert opened.sections[0].header.paragraphs[0].text == "F"
    assert opened.sections[0].footer.paragraphs[0].text == "G"
    before, after = members(content), members(new)
    assert list(before) == list(after)
    same = {name for name in before if before[name] == after[name]}
    assert {name for name in before if name not in same} == {
        "word/document.xml", *(name for name in before if name.startswith(("word/header", "word/footer"))),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        pytest.param(
            paragraph(run("eins "), run("zwei", "<w:rPr><w:lang w:val='de'/></w:rPr>")), ["eins zwei"], id="language"
        ),
        pytest.param(paragraph(run("eins"), "<w:r><w:tab/></w:r>", run("zwei")), ["eins", "zwei"], id="tab"),
        pytest.param(
            paragraph("<w:r><w:t>eins</w:t><w:br/><w:t>zwei</w:t></w:r>"), ["eins", "zwei"], id="break in a run"
        ),
        pytest.param(
            paragraph("<w:r><w:t>Nr</w:t><w:noBreakHyphen/><w:t>eins</w:t></w:r>"), ["Nr‑eins"], id="no-break hyphen"
        ),
        pytest.param(
            paragraph(run("a "), "<w:r><w:footnoteReference w:id='2'/></w:r>", run("b")),
            ['a <img id="o0">b'],
            id="note",
        ),
        pytest.param(
            paragraph(
                run("siehe "), f"<w:hyperlink r:id='x'>{run('die seite')}</w:hyperlink>", run(" dort &amp; hier &lt;")
            ),
            None,
            id="link",
        ),
        pytest.param(
            paragraph(
                run("weg "),
                f"<w:ins w:id='1'>{run('neu')}</w:ins><w:del w:id='2'><w:r><w:delText>alt</w:delText></w:r></w:del>",
            ),
            None,
            id="tracked changes",
        ),
        pytest.param(
            paragraph(f"<w:sdt><w:sdtPr/><w:sdtContent>{run('feld')}</w:sdtContent></w:sdt>", run("text")),
            ["feld", "text"],
            id="content control",
        ),
        pytest.param(
            f"<w:txbxContent>{paragraph(run('kasten'))}</w:txbxContent>{paragraph(run('danach'))}",
            ["kasten", "danach"],
            id="text box",
        ),
        pytest.param(paragraph("<w:pPr><w:jc/></w:pPr>", run(" "), run("1, 2")), [], id="nothing to translate"),
    ],
)
def test_what_a_paragraph_is_read_as(tmp_path: Path, body: str, texts: list[str] | None) -> None:
    content = with_body(body)
    found = segments(tmp_path, "docx", content)
    if texts is not None:
        assert [one.text for one in found] == texts
    again = translated(tmp_path, "docx", content)
    assert segments(tmp_path, "docx", again) == found
    if not found:
        assert members(again) == members(content)


def test_formats_move_with_their_words_and_nothing_gets_lost(tmp_path: Path) -> None:
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = paragraph(
        '<w:pPr><w:jc w:val="center"/></w:pPr><w:bookmarkStart w:id="0" w:name="x"/>',
        run("Das "), run("ist ", BOLD), run("fett", BOLD), note, run(" und "),
        f'<w:hyperlink r:id="r9">{run("verlinkt")}</w:hyperlink>', '<w:bookmarkEnd w:id="0"/>',
    )  # fmt: skip
    content = with_body(body)
    (found,) = segments(tmp_path, "docx", content)
    assert found.text == ('Das <span id="s1">ist fett</span><img id="o0"> und <span id="s2">verlinkt</span>')
    turned = '<span id="s2">Linked</span> and <b>this</b> <span id="s1">is <span id="s9">bold</span></span>'
    new = body_of(translated(tmp_path, "docx", content, [turned]))
    assert new.startswith('<w:p><w:pPr><w:jc w:val="center"/></w:pPr><w:bookmarkStart w:id="0" w:name="x"/>')
    assert new.endswith('<w:bookmarkEnd w:id="0"/></w:p>')
    link, plain, bold = (new.index(text) for text in ("Linked", "and this", "is "))
    assert link < plain < bold < new.index(note)
    assert new.index("<w:hyperlink") < link < new.index("</w:hyperlink>") < plain
    assert new.count("footnoteReference") == 1 and new.count("<w:hyperlink") == 1
    assert f"{BOLD}<w:t" in new.replace(' xml:space="preserve"', "")


def field(code: str, result: str) -> str:
    parts = (
        '<w:fldChar w:fldCharType="begin"/>',
        f"<w:instrText>{code}</w:instrText>",
        '<w:fldChar w:fldCharType="separate"/>',
    )
    return "".join(f"<w:r>{part}</w:r>" for part in parts) + result + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'


def test_fields_stay_whole(tmp_path: Path) -> None:
    link = field(' HYPERLINK "https://example.org" ', run("zur seite"))
    content = with_body(paragraph(run("auf "), field("PAGEREF x", run("neun")), run(" geht es "), link))
    (found,) = segments(tmp_path, "docx", content)
    assert found.text == 'auf <img id="o0"> geht es <span id="s1">zur seite</span>'
    new = body_of(translated(tmp_path, "docx", content, ['<span id="s1">to the page</span> on <img id="o0">']))
    kinds = [new[place + 18 : place + 23] for place in range(len(new)) if new.startswith('w:fldCharType="', place)]
    assert len(kinds) == 6
    assert (
        new.index("HYPERLINK") < new.index("to the page") < new.index(" on ") < new.index("PAGEREF") < new.index("neun")
    )


def test_a_field_over_several_paragraphs_is_not_moved(tmp_path: Path) -> None:
    start, end = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    content = with_body(paragraph(run("vor "), start, run("eins")) + paragraph(run("zwei"), end))
    assert [one.text for one in segments(tmp_path, "docx", content)] == ["vor", "eins", "zwei"]
    new = body_of(translated(tmp_path, "docx", content, ["A", "B", "C"]))
    assert [new.index(part) for part in (">A <", '"begin"', ">B<", ">C<", '"end"')] == sorted(
        new.index(part) for part in (">A <", '"begin"', ">B<", ">C<", '"end"')
    )


def test_links_as_simple_fields_and_text_with_its_reading_are_translated(tmp_path: Path) -> None:
    link = f'<w:fldSimple w:instr=" HYPERLINK &quot;x&quot; ">{run("der bahnhof")}</w:fldSimple>'
    page = f'<w:fldSimple w:instr=" PAGE ">{run("12")}</w:fldSimple>'
    ruby = f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('ost')}</w:rt><w:rubyBase>{run('osten')}</w:rubyBase></w:ruby></w:r>"
    content = with_body(paragraph(run("wo ist "), link, run(" auf seite "), page) + paragraph(ruby, run(" und westen")))
    assert [one.text for one in segments(tmp_path, "docx", content)] == [
        'wo ist <span id="s1">der bahnhof</span> auf seite', "osten und westen",
    ]  # fmt: skip
    new = body_of(translated(tmp_path, "docx", content, ['<span id="s1">THE STATION</span> IS', "EAST"]))
    assert link.replace("der bahnhof", "THE STATION") in new and page in new
    assert run("EAST") in new and "ruby" not in new
    assert body_of(translated(tmp_path, "docx", content)) == body_of(content)


def test_markup_that_is_too_long_is_translated_format_by_format(tmp_path: Path) -> None:
    bounds = replace(BOUNDS, markup_characters=30)
    content = with_body(paragraph(run("eins "), run("zwei", BOLD), run(" drei")))
    assert [one.text for one in segments(tmp_path, "docx", content, bounds)] == ["eins", "zwei", "drei"]
    new = translated(tmp_path, "docx", content, ["A", "B", "C"], bounds)
    runs = docx.Document(io.BytesIO(new)).paragraphs[0].runs
    assert [(one.text, one.bold) for one in runs] == [("A ", None), ("B", True), (" C", None)]


def test_characters_that_xml_does_not_know_are_left_out(tmp_path: Path) -> None:
    new = translated(tmp_path, "docx", with_body(paragraph(run("wort"))), ["a\x01b\nc"])
    assert docx.Document(io.BytesIO(new)).paragraphs[0].text == "ab c"


def declared_larger(document: bytes, name: str, size: int) -> bytes:
    """The document with another size of a member in its directory."""
    place = document.rindex(name.encode())
    header = document.rindex(b"PK\x01\x02", 0, place)
    return document[: header + 24] + struct.pack("<I", size) + document[header + 28 :]


def encrypted(document: bytes) -> bytes:
    place = document.index(b"PK\x01\x02")
    return document[: place + 8] + b"\x01" + document[place + 9 :]


BOMB = changed(blank(), {"word/media/bomb.bin": bytes(8 << 20)})
ENTITIES = (
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">&e;</w:document>'
)
DEEP = with_body(paragraph("<w:smartTag>" * 300 + run("wort") + "</w:smartTag>" * 300))


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        pytest.param(b"nur worte", 415, "holds no office document", id="text"),
        pytest.param(b"%PDF-1.7", 415, "a PDF document", id="pdf"),
        pytest.param(blank()[:2000], 422, "damaged", id="cut"),
        pytest.param(b"PK\x03\x04" + bytes(500), 422, "damaged", id="no archive"),
        pytest.param(changed(blank(), {"[Content_Types].xml": None}), 415, "no Word document", id="another archive"),
        pytest.param(changed(blank(), {"[Content_Types].xml": b"<Types/>"}), 415, "no Word document", id="no body"),
        pytest.param(changed(blank(), {"word/document.xml": None}), 422, "lacks a part", id="missing part"),
        pytest.param(changed(blank(), {"word/document.xml": b"<w:document"}), 422, "cannot be read", id="broken XML"),
        pytest.param(changed(blank(), {"word/document.xml": ENTITIES.encode()}), 422, "document type", id="entity"),
        pytest.param(
            changed(blank(), {"word/document.xml": ENTITIES.encode("utf-16")}),
            422,
            "document type",
            id="hidden entity",
        ),
        pytest.param(DEEP, 422, "nested too deeply", id="deep"),
        pytest.param(BOMB, 413, "at most 200 unpacked bytes per packed one", id="bomb"),
        pytest.param(declared_larger(blank(), "word/document.xml", 2 << 30), 413, "bytes when unpacked", id="large"),
        pytest.param(declared_larger(blank(), "word/document.xml", 10), 422, "damaged", id="lying size"),
        pytest.param(changed(blank(), {f"x/{n}": b"" for n in range(2000)}), 413, "2000 members", id="members"),
        pytest.param(changed(blank(), {"../../etc/x": b"x"}), 422, "name that is not allowed", id="way out"),
        pytest.param(changed(blank(), {"word/DOCUMENT.XML": b"x"}), 422, "there twice", id="same name"),
        pytest.param(encrypted(blank()), 422, "encrypted", id="encrypted"),
    ],
)
def test_hostile_documents_are_refused(tmp_path: Path, content: bytes, status: int, says: str) -> None:
    with pytest.raises(FileRefused) as caught:
        segments(tmp_path, "docx", content)
    assert says in str(caught.value)
    assert reply_for(caught.value).status == status
    for secret in (str(tmp_path), "root:", "Traceback"):
        assert secret not in str(caught.value)


def test_documents_with_macros_are_refused(tmp_path: Path) -> None:
    types = members(blank())["[Content_Types].xml"].decode()
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    content = changed(blank(), {"[Content_Types].xml": types.replace(main, "application/macro+xml").encode()})
    with pytest.raises(FileRefused, match="or one with macros"):
        segments(tmp_path, "docx", content)


VBA = "application/vnd.ms-office.vbaProject"


@pytest.mark.parametrize(
    ("declared", "added"),
    [
        (f'<Default Extension="bin" ContentType="{VBA}"/>', {}),
        (f'<Override PartName="/word/code.bin" ContentType="{VBA}"/>', {}),
        ("", {"word/vbaProject.bin": b"code"}),
        ("", {"word/VBAPROJECT.BIN": b"code"}),
    ],
    ids=["default", "override", "member", "case"],
)
def test_macros_are_found_in_what_says_it_has_none(tmp_path: Path, declared: str, added: dict[str, bytes]) -> None:
    types = members(blank())["[Content_Types].xml"].decode().replace("</Types>", f"{declared}</Types>")
    content = changed(with_body(paragraph(run("wort"))), {"[Content_Types].xml": types.encode()})
    assert segments(tmp_path, "docx", with_body(paragraph(run("wort"))))
    with pytest.raises(FileRefused, match="or one with macros"):
        segments(tmp_path, "docx", changed(content, added))


def test_the_rest_of_an_archive_keeps_its_compression_and_time(tmp_path: Path) -> None:
    content = with_body(paragraph(run("wort")))
    new = translated(tmp_path, "docx", content, ["word"])
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(io.BytesIO(new)) as after:
        facts = [
            [(one.filename, one.date_time, one.compress_type) for one in zip_.infolist()] for zip_ in (before, after)
        ]
    assert facts[0] == facts[1]


@pytest.mark.parametrize(
    ("name", "based", "is_code"),
    [
        ("Source Code", "Normal", True),
        ("HTML Preformatted", "Normal", True),
        ("Codeblock", "Normal", True),
        ("Meiner", "SourceCode", True),
        ("Zip Code", "Normal", False),
        ("Plain Text", "Normal", False),
    ],
)
def test_paragraphs_in_a_style_for_code_stay(tmp_path: Path, name: str, based: str, is_code: bool) -> None:
    styles = members(blank())["word/styles.xml"].decode()
    named = '<w:style w:type="paragraph" w:styleId="{}"><w:name w:val="{}"/><w:basedOn w:val="{}"/></w:style>'
    added = named.format("SourceCode", "Source Code", "Normal") + named.format("Kennung", name, based)
    body = paragraph(run("das haus")) + paragraph(
        '<w:pPr><w:pStyle w:val="Kennung"/></w:pPr>', run('print("guten morgen")')
    )
    changes = {"word/styles.xml": styles.replace("</w:styles>", f"{added}</w:styles>")}
    content = changed(with_body(body), changes)
    texts = [one.text for one in segments(tmp_path, "docx", content)]
    assert texts == ["das haus"] + ['print("guten morgen")'] * (not is_code)
    new = body_of(translated(tmp_path, "docx", content, ["A", "B"][: len(texts)]))
    assert ('print("guten morgen")' in new) is is_code


SUB, SUP = (f'<w:rPr><w:vertAlign w:val="{one}script"/></w:rPr>' for one in ("sub", "super"))


def test_raised_and_lowered_runs_stay_at_their_word(tmp_path: Path) -> None:
    body = paragraph(run("haus H"), run("2", SUB), run("O und m"), run("2", SUP), run(" ist"))
    (segment,) = segments(tmp_path, "docx", with_body(body))
    assert segment.text == 'haus H<sub id="s1">2</sub>O und m<sup id="s2">2</sup> ist'
    new = translated(tmp_path, "docx", with_body(body), ['H<sub id="s1">2</sub>O house m<sup id="s2">2</sup>'])
    kept = [one.replace(" ", "") for one in body_of(new).replace('xml:space="preserve"', "").split("<w:r>")[1:]]
    assert ["vertAlign" in one for one in kept] == [False, True, False, True]
