"""All file types: what is read of them, that the rest stays, that other programs open them, and what is refused."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import docx
import odf.opendocument
import odf.teletype
import odf.text
import openpyxl
import pptx
import pytest
from translate.storage import html as htmlfile
from translate.storage import markdown, pypo, subtitles, xliff, xliff2

from tandem.extras.documents.tests.documents import (
    BOUNDS,
    blank,
    members,
    paragraph,
    run,
    segments,
    source_file,
    translated,
    with_body,
    with_members,
)
from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.formats import FORMATS
from tandem.extras.files.tests.samples import CATALOGUE, SAMPLES, XLIFF2, inline_workbook, pdf
from tandem.service.http.error_replies import reply_for

PACKAGES = ("docx", "epub", "odp", "ods", "odt", "pptx", "xlsx")
FILLED_IN = ("po", "xliff")
_MARKUP = re.compile(r"(<code.*?</code>|<[^>]*>)")


def upper(text: str) -> str:
    """A translation: every word that is no markup in capitals."""
    parts = _MARKUP.split(text)
    parts[::2] = [html.escape(html.unescape(part).upper(), quote=False) for part in parts[::2]]
    return "".join(parts)


def unnumbered(text: str) -> str:
    return re.sub(r'id="([so])\d+"', r"\1", text)


def in_capitals(folder: Path, ending: str, content: bytes) -> bytes:
    found = segments(folder, ending, content)
    return translated(folder, ending, content, [upper(one.text) if one.markup else one.text.upper() for one in found])


def open_document(*texts: str) -> bytes:
    document, written = odf.opendocument.OpenDocumentText(), io.BytesIO()
    for text in texts:
        document.text.addElement(odf.text.P(text=text))
    document.write(written)
    return written.getvalue()


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("docx", with_body(paragraph(run("3,50 €")) + paragraph(run("3,50")))),
        ("md", "| Preis |\n|---|\n| 3,50 € |\n| 3,50 |\n".encode()),
        ("odt", open_document("3,50 €", "3,50")),
    ],
)
def test_amounts_of_money_alone_are_texts(tmp_path: Path, ending: str, content: bytes) -> None:
    assert [one.text for one in segments(tmp_path, ending, content) if any(map(str.isdigit, one.text))] == ["3,50 €"]


def test_every_type_has_a_sample() -> None:
    assert {form.module for form in FORMATS.values()} == {FORMATS[ending].module for ending in SAMPLES}


@pytest.mark.parametrize("ending", SAMPLES)
def test_texts_are_replaced_and_all_else_stays(tmp_path: Path, ending: str) -> None:
    content, texts = SAMPLES[ending]
    assert [one.text for one in segments(tmp_path, ending, content)] == texts
    new = in_capitals(tmp_path, ending, content)
    again = [one.text for one in segments(tmp_path, FORMATS[ending].result or ending, new)]
    expected = [] if ending in FILLED_IN else [upper(text) if "<" in text else text.upper() for text in texts]
    assert list(map(unnumbered, again)) == list(map(unnumbered, expected))
    if ending not in (*PACKAGES, *FILLED_IN, "pdf"):
        assert translated(tmp_path, ending, content) == content
        lines = [re.sub(r"\s|>\s+(?=zwei)", "", html.unescape(text.decode().lower())) for text in (new, content)]
        assert lines[0] == lines[1] and new.count(b"\r") == content.count(b"\r")


@pytest.mark.parametrize("ending", PACKAGES)
def test_members_without_texts_stay_as_they_are(tmp_path: Path, ending: str) -> None:
    content, _ = SAMPLES[ending]
    same, new = translated(tmp_path, ending, content), in_capitals(tmp_path, ending, content)
    if ending != "epub":  # which says that its language is another one
        assert members(same) == members(content)
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(io.BytesIO(new)) as after:
        assert [one.filename for one in before.infolist()] == [one.filename for one in after.infolist()]
        for old, kept in zip(before.infolist(), after.infolist(), strict=True):
            assert (old.date_time, old.compress_type) == (kept.date_time, kept.compress_type)
        if "mimetype" in before.namelist():
            first = after.infolist()[0]
            assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
    changed = {name for name, member in members(content).items() if members(new)[name] != member}
    expected = {
        "docx": r"word/document\.xml", "epub": r"OEBPS/(.*\.xhtml|toc\.ncx|book\.opf)", "odp": "content.xml",
        "ods": "content.xml", "odt": "content.xml", "pptx": r"ppt/(slides|notesSlides)/\w+\.xml",
        "xlsx": r"xl/(sharedStrings|worksheets/sheet1|comments/comment1)\.xml",
    }  # fmt: skip
    assert changed and all(re.fullmatch(expected[ending], name) for name in changed)


def read_csv(content: bytes) -> str:
    return " ".join("|".join(row) for row in csv.reader(io.StringIO(content.decode(), newline=""), delimiter=";"))


def read_docx(content: bytes) -> str:
    return "|".join(one.text for one in docx.Document(io.BytesIO(content)).paragraphs)


def read_pptx(content: bytes) -> str:
    slide = pptx.Presentation(io.BytesIO(content)).slides[0]
    runs = slide.placeholders[1].text_frame.paragraphs[0].runs
    assert [(run.text, run.font.bold) for run in runs] == [("WO IST ", None), ("DER BAHNHOF", True), (" HEUTE?", None)]
    return f"{slide.shapes.title.text} {slide.notes_slide.notes_text_frame.text}"


def read_xlsx(content: bytes) -> str:
    book = openpyxl.load_workbook(io.BytesIO(content), rich_text=True)
    sheet = book["Das Blatt"]
    assert [cell.value for cell in sheet[1]] == ["Name", "Wert"]  # the table's columns have these names
    assert [cell.value for cell in sheet[3]] == ["EINS\nZWEI", "=SUM(B2:B2)"] and sheet["B2"].value == 12
    bold = sheet["A4"].value[1]
    assert bold.text == "DER BAHNHOF" and bold.font.b
    return f"{sheet['A2'].value} {sheet['A2'].comment.text}"


def read_odt(content: bytes) -> str:
    document = odf.opendocument.load(io.BytesIO(content))
    (bold, *_) = document.getElementsByType(odf.text.Span)
    assert odf.teletype.extractText(bold) == "DER BAHNHOF" and bold.getAttribute("stylename") == "Fett"
    return " ".join(odf.teletype.extractText(one) for one in document.getElementsByType(odf.text.P))


def read_epub(content: bytes) -> str:
    parts = members(content)
    for name, part in parts.items():
        if name != "mimetype":
            ElementTree.fromstring(part)
    page = parts["OEBPS/seite 1.xhtml"].decode()
    assert 'xml:lang="en"' in page and '<a id="seite2"/> HEUTE?' in page
    return page + parts["OEBPS/book.opf"].decode()


def read_po(content: bytes) -> str:
    catalogue = pypo.pofile.parsestring(content)
    assert catalogue.parseheader()["Language"] == "en"
    messages = [unit for unit in catalogue.units if unit.istranslatable()]
    assert all(unit.istranslated() for unit in messages)  # and not fuzzy
    return " ".join(text for unit in messages for text in getattr(unit.target, "strings", [unit.target]))


def read_xliff(content: bytes) -> str:
    document = xliff.xlifffile.parsestring(content)
    assert document.gettargetlanguage() == "en"
    return "|".join(unit.target or "" for unit in document.units)


def read_json(content: bytes) -> str:
    found = json.loads(content)
    assert found["liste"][1:4] == ["https://example.org/ein/weg", "BTN_OK", "#ff0000"] and found["zahl"] == 1.5
    return str(found["titel"] + found["liste"][0] + found["tief"]["guten morgen"])


OPENED: dict[str, tuple[Callable[[bytes], str], tuple[str, ...]]] = {
    "csv": (read_csv, ('GUTEN "MORGEN"|1,5', "ZWEI\nZEILEN|")),
    "docx": (read_docx, ("WO IST HEUTE DER BAHNHOF",)),
    "epub": (
        read_epub,
        ("<title>DAS BUCH<", "<code>make test</code>", "code bleibt", "ZWEI &amp; DREI", ">bleibt</p>", "age>en</d"),
    ),
    "json": (read_json, ("GUTEN MORGEN", "WO IST {{name}}?", 'EINS\nZWEI "DREI"')),
    "odt": (read_odt, ("WO IST DER BAHNHOF HEUTE", "EINE NOTIZ", "ZWEI & DREI")),
    "pdf": (read_docx, ("WO IST DER BAHNHOF HEUTE ABEND DENN?|GUTEN MORGEN",)),
    "po": (
        read_po,
        ("GUTEN MORGEN", "the house", "DIE DATEI %s HAT <b>%d</b> ZEILEN\n", "NEU %d", "EINE DATEI", "%d DATEIEN"),
    ),
    "pptx": (read_pptx, ("DAS HAUS", "KURZ\vLANG")),
    "xliff": (read_xliff, ("GUTEN MORGEN|WO IST HEUTE, {name}?|the house||EINS ZWEI",)),
    "xlsx": (read_xlsx, ("GUTEN MORGEN", "EINE NOTIZ")),
}  # fmt: skip


@pytest.mark.parametrize("ending", OPENED)
def test_results_open_elsewhere(tmp_path: Path, ending: str) -> None:
    opened, texts = OPENED[ending]
    found = opened(in_capitals(tmp_path, ending, SAMPLES[ending][0]))
    for text in texts:
        assert text in found


@pytest.mark.parametrize(
    ("ending", "reader"),
    [("html", htmlfile.htmlfile), ("md", markdown.MarkdownFile), ("srt", subtitles.SubRipFile)],
)
def test_another_program_reads_the_same_document(tmp_path: Path, ending: str, reader: Any) -> None:
    content, texts = SAMPLES[ending]
    before = [unit.source for unit in reader.parsestring(content).units]
    after = [unit.source for unit in reader.parsestring(in_capitals(tmp_path, ending, content)).units]
    assert [text.lower() for text in after] == [text.lower() for text in before]
    changed = sum(new != old for new, old in zip(after, before, strict=True))
    # Markdown: of a paragraph a line break makes two texts and a picture's a third; what HTML says is no text there.
    assert changed == len(texts) - (3 if ending == "md" else 0)


def office(folder: Path, file: Path, kind: str, *options: str) -> bytes:
    """The file as LibreOffice saves it in that format."""
    command = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", *options]
    command += ["--convert-to", kind, "--outdir", f"{folder}/made", str(file)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return (folder / "made" / file.with_suffix(f".{kind}").name).read_bytes()


def shown(folder: Path, ending: str, content: bytes) -> str:
    """What is to be read in LibreOffice, without spaces: where lines end depends on the letters."""
    (folder / f"shown.{ending}").write_bytes(content)
    page = content if ending == "pdf" else office(folder, folder / f"shown.{ending}", "pdf")
    return "".join("".join(one.text for one in segments(folder, "pdf", page)).split())


libreoffice = pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")


@pytest.mark.slow
@libreoffice
@pytest.mark.parametrize("ending", ["docx", "odp", "ods", "odt", "pptx", "xlsx"])
def test_results_open_in_libreoffice(tmp_path: Path, ending: str) -> None:
    text = shown(tmp_path, ending, in_capitals(tmp_path, ending, SAMPLES[ending][0]))
    assert SAMPLES[ending][1][0].upper().split()[0] in text


LETTER = """<!DOCTYPE html><html lang="de"><meta charset="utf-8"><title>der brief</title><h1>das haus am see</h1>
<p>guten morgen. das <b>rote haus</b> ist sehr <i>alt</i>, und der <a href="https://example.org/a?b=1">garten</a> auch.
<ul><li>wir trinken kaffee.<li>die kinder spielen im <u>garten</u>.</ul><table border="1"><tr><th>name<th>wert
<tr><td>der hund<td>12<tr><td>die alte katze<td>7</table><p>wo ist der bahnhof?<br>er ist in der stadt."""
WRITER = ("html", LETTER.encode(), "HTML (StarWriter)")
CALC = ("csv", b"name;wert\nhaus;1,5\nhund;12\n", "CSV:59,34,76")
IMPRESS = ("pptx", SAMPLES["pptx"][0], "")


@pytest.mark.slow
@libreoffice
@pytest.mark.parametrize(
    ("ending", "made_of"),
    [
        ("docx", WRITER), ("odt", WRITER), ("pdf", WRITER), ("ods", CALC), ("xlsx", CALC), ("odp", IMPRESS),
        ("pptx", IMPRESS),
    ],
)  # fmt: skip
def test_documents_of_libreoffice_look_as_before(tmp_path: Path, ending: str, made_of: tuple[str, bytes, str]) -> None:
    content = by_libreoffice(tmp_path, ending, *made_of)
    before, new = shown(tmp_path, ending, content), in_capitals(tmp_path, ending, content)
    after = shown(tmp_path, FORMATS[ending].result or ending, new)
    assert after.upper() == before.upper() and len(before) > 20
    (first, *_) = segments(tmp_path, ending, content)
    assert "".join(first.text.upper().split()) in after


def by_libreoffice(folder: Path, ending: str, source: str, content: bytes, reader: str) -> bytes:
    (folder / f"a.{source}").write_bytes(content)
    return office(folder, folder / f"a.{source}", ending, *([f"--infilter={reader}"] if reader else []))


EPUBCHECK = Path("/usr/share/java/epubcheck.jar")


@pytest.mark.slow
@libreoffice
@pytest.mark.skipif(not EPUBCHECK.exists(), reason="Debian's epubcheck is not installed")
def test_epubcheck_finds_no_more_fault_than_before(tmp_path: Path) -> None:
    content = by_libreoffice(tmp_path, "epub", *WRITER)
    said = []
    for book in (content, SAMPLES["epub"][0]):
        for version in (book, in_capitals(tmp_path, "epub", book)):
            (tmp_path / "book.epub").write_bytes(version)
            command = ["java", "-jar", str(EPUBCHECK), "book.epub"]
            done = subprocess.run(command, cwd=tmp_path, timeout=120, check=False, capture_output=True, text=True)
            assert "EPUBCheck completed" in done.stdout
            said.append(sorted(done.stderr.splitlines()))
    assert said[0] == said[1] and said[2] == said[3]


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_catalogues_pass_gettext(tmp_path: Path) -> None:
    (tmp_path / "a.po").write_bytes(in_capitals(tmp_path, "po", CATALOGUE.encode()))
    command = ["msgfmt", "-c", "-o", str(tmp_path / "a.mo"), str(tmp_path / "a.po")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    missing = "header field 'PO-Revision-Date' missing"
    assert done.returncode == 0 or missing in done.stderr, done.stderr
    assert "format" not in done.stderr and "begin with" not in done.stderr and "end with" not in done.stderr


def test_placeholders_that_changed_places_are_for_people_to_see(tmp_path: Path) -> None:
    content = b'msgid "%d zeilen in %s"\nmsgstr ""\n\n#, c-format\nmsgid "haus"\nmsgstr ""\n'
    turned = '<code id="o2">%s</code> with <code id="o0">%d</code> lines'
    new = translated(tmp_path, "po", content, [turned, "house"]).decode()
    assert new.startswith('#, fuzzy\nmsgid "%d zeilen in %s"\nmsgstr "%s with %d lines"\n')
    assert new.endswith('#, c-format\nmsgid "haus"\nmsgstr "house"\n')


def test_a_catalogue_in_another_language_is_translated_anew(tmp_path: Path) -> None:
    content = CATALOGUE.replace("Language: ", "Language: fr").encode()
    new = in_capitals(tmp_path, "po", content)
    assert 'DAS "HAUS"' in [unit.target for unit in pypo.pofile.parsestring(new).units]
    assert b'"Language: en\\n"' in new


@pytest.mark.parametrize(
    ("before", "target", "rule", "forms"),
    [
        ("Language: fr", "pl", "nplurals=3; plural=(n==1 ? 0 : n%10>=2", ["EINE DATEI", "%d DATEIEN", "%d DATEIEN"]),
        ("Language: fr", "ja", "nplurals=1; plural=0;", ["%d DATEIEN"]),
        ("Language: fr", "fr-CA", "nplurals=2; plural=(n != 1);", ["EINE DATEI", "%d DATEIEN"]),  # it is French already
        ("Language: fr", "pt-BR", "nplurals=2; plural=(n > 1);", ["EINE DATEI", "%d DATEIEN"]),
        ("nplurals=INTEGER; plural=EXPRESSION;", "sl", "nplurals=4;", ["EINE DATEI", *["%d DATEIEN"] * 3]),
        ("Language: fr", "fa", "nplurals=2; plural=(n != 1);", ["EINE DATEI", "%d DATEIEN"]),  # no rule here
    ],
)
def test_plural_forms_are_those_of_the_target_language(
    tmp_path: Path, before: str, target: str, rule: str, forms: list[str]
) -> None:
    old = "Language: " if before.startswith("Language") else "nplurals=2; plural=(n != 1);"
    (tmp_path / "a.po").write_text(CATALOGUE.replace(old, before), encoding="utf-8")
    source = replace(source_file(tmp_path / "a.po"), target=target)
    texts = [upper(one.text) if one.markup else one.text.upper() for one in FORMATS["po"].read(source)]
    FORMATS["po"].write(source, texts, tmp_path / "b.po")
    made = pypo.pofile.parsefile(str(tmp_path / "b.po"))
    assert made.parseheader()["Plural-Forms"].startswith(rule)
    (unit,) = (unit for unit in made.units if unit.hasplural())
    assert unit.target.strings == forms


def test_xliff_2(tmp_path: Path) -> None:
    new = in_capitals(tmp_path, "xlf", XLIFF2.encode()).decode()
    assert 'srcLang="de" trgLang="en">' in new
    assert '<segment state="translated"><source>guten <pc id="1">morgen</pc></source>' in new
    assert '</source><target>GUTEN <pc id="1">MORGEN</pc></target></segment>' in new
    assert new.count("<target>") == 2
    units = xliff2.Xliff2File.parsestring(new.encode()).units
    assert [unit.target for unit in units] == ["GUTEN MORGEN", "the house", None]


def test_marks_and_what_is_kept_come_back_once_whatever_the_translation(tmp_path: Path) -> None:
    content = b"**eins** `zwei` drei"
    (found,) = segments(tmp_path, "md", content)
    assert found.text == '<span id="s0">eins</span> <code id="o4">zwei</code> drei'
    for new, written in (
        ('x <span id="s0">a*b</span> <span id="s9">y</span></span>', "x **a\\*b** y`zwei`"),
        ('<code id="o4">k</code><code id="o4">k</code> [x](y)<b>z', "`zwei` [x\\](y)z****"),
    ):
        assert translated(tmp_path, "md", content, [new]).decode() == written


def test_markup_that_is_too_long_is_translated_piece_by_piece(tmp_path: Path) -> None:
    bounds = replace(BOUNDS, markup_characters=20)
    content = b"wo ist **der bahnhof** 12 `code` heute"
    assert [one.text for one in segments(tmp_path, "md", content, bounds)] == ["wo ist", "der bahnhof", "heute"]
    assert translated(tmp_path, "md", content, ["A", "B", "C"], bounds) == b"A **B** 12 `code` C"


def test_cells_that_are_written_in_their_rows(tmp_path: Path) -> None:
    new = in_capitals(tmp_path, "xlsx", inline_workbook())
    sheet = openpyxl.load_workbook(io.BytesIO(new)).active
    assert sheet is not None and [cell.value for cell in sheet[1]] == ["GUTEN MORGEN", 3]


@pytest.mark.parametrize("text", ["a,b\nguten morgen,2\n", "sep=|\nwort, eins|zwei\n", "guten morgen\n"])
def test_delimiters(tmp_path: Path, text: str) -> None:
    new = translated(
        tmp_path, "csv", text.encode(), ['x;"y"|z'] * len(segments(tmp_path, "csv", text.encode()))
    ).decode()
    assert '"x;""y""|z"' in new and new.count("\n") == text.count("\n")
    assert new.startswith("sep=|\n") == text.startswith("sep=|\n")


VTT = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
SRT = "1\n00:00:01,000 --> 00:00:02,000\n"
UNIT = '<xliff version="1.2"><file target-language="en"><trans-unit><source>{}</source></trans-unit></file></xliff>'


@pytest.mark.parametrize(
    ("ending", "text", "kept"),
    [
        pytest.param("vtt", f"{VTT}wo ist das\n", f"{VTT}WO IST DAS\n", id="last cue"),
        pytest.param("srt", f"{SRT}wo ist das\n\n\n{SRT}12\n\n", f"{SRT}WO IST DAS\n\n\n{SRT}12\n\n", id="blank lines"),
        pytest.param("srt", f"{SRT}wo ist\r\ndas\r\n\r\n{SRT}{{\\an8}}wo\rist",
                     f"{SRT}WO IST\r\nDAS\r\n\r\n{SRT}{{\\an8}}WO\rIST", id="line ends of a subtitle"),
        pytest.param("srt", f"{SRT}HANS: komm!\nANNA: nein!\n", f"{SRT}HANS: KOMM!\nANNA: NEIN!\n", id="speakers"),
        pytest.param("srt", f"{SRT}>> wo ist\n>> BEN: da\n", f"{SRT}>> WO IST\n>> BEN: DA\n", id="another speaker"),
        pytest.param("srt", f"{SRT}wo ist <br/>der hund\nheute\n", f"{SRT}WO IST <br/>DER HUND\nHEUTE\n",
                     id="line ends of pages"),
        pytest.param("vtt", f"{VTT}- wo<BR>- da\n", f"{VTT}- WO<BR>- DA\n", id="line ends of pages in a cue"),
        pytest.param("srt", f"{SRT[2:]}12\n\n{SRT[2:]}wo ist das",
                     f"{SRT[2:]}12\n\n{SRT[2:]}WO IST DAS", id="subtitles without numbers"),
        pytest.param("csv", '"a b\r\nc";"=IF(A1;""x y"")"\r\n', '"A B\r\nC";"=IF(A1;""x y"")"\r\n', id="cells"),
        pytest.param("csv", '"das haus" ist alt|der "hund"\n2|x\n', '"DAS HAUS" IST ALT|DER "HUND"\n2|X\n',
                     id="quotes in cells"),
        pytest.param("csv", "key,de,note\ngreeting,guten morgen,gruß\nhaus.tür,die tür\n",
                     "key,de,NOTE\ngreeting,GUTEN MORGEN,GRUSS\nhaus.tür,DIE TÜR\n", id="keys by their heading"),
        pytest.param("csv", "id;de;pt_BR\ngreeting;wort;\"zwei\nzeilen\"\n",
                     "id;de;pt_BR\ngreeting;WORT;\"ZWEI\nZEILEN\"\n",
                     id="languages of columns"),
        pytest.param("csv", "Handle,lang,text\nrot-a,de,wort\n2,de,zwei\n",
                     "Handle,lang,TEXT\nrot-a,de,WORT\n2,de,ZWEI\n", id="languages"),
        pytest.param("csv", "was,text\nhome.title,wort\nmenu_file,datei\nsave,sichern\n",
                     "WAS,TEXT\nhome.title,WORT\nmenu_file,DATEI\nsave,SICHERN\n", id="keys by their looks"),
        pytest.param("csv", "preis,de\n12,wort\nauf anfrage,wort\nab 1.000,en\n",
                     "PREIS,DE\n12,WORT\nAUF ANFRAGE,WORT\nAB 1.000,EN\n",
                     id="words among numbers are no keys"),
        pytest.param("csv", "en,de\nwort,wort\n", "en,de\nWORT,WORT\n", id="languages alone"),
        pytest.param("csv", "was,text\n&Datei,wort\nB&eenden,wort\nName*,wort\nJa/Nein,x\n",
                     "WAS,TEXT\n&DATEI,WORT\nB&EENDEN,WORT\nNAME*,WORT\nJA/NEIN,X\n", id="labels are no keys"),
        pytest.param("csv", "key\nhome.x\nwort\n", "KEY\nhome.x\nWORT\n", id="no key without another column"),
        pytest.param("po", '#, x\n#, fuzzy\nmsgid "a"\nmsgstr "b"\n', '#, x\nmsgid "a"\nmsgstr "A"\n', id="flags"),
        pytest.param("vtt", f"WEBVTT x\nX: y\n{VTT[8:]}wo ist das\n", f"WEBVTT x\nX: y\n{VTT[8:]}WO IST DAS\n",
                     id="cue in the header"),
        pytest.param("vtt", "WEBVTT\r\n\n00:01.000 --> 00:02.000\r\nwo ist\rdas\n\r\n",
                     "WEBVTT\r\n\n00:01.000 --> 00:02.000\r\nWO IST\rDAS\n\r\n", id="line ends of a cue"),
        pytest.param("md", "# a\r\n\n- b\r- c\r\n\nwo\r\nist\nd\n\r\n```\r\nx\n```",
                     "# A\r\n\n- B\r- C\r\n\nWO IST D\n\r\n```\r\nx\n```", id="line ends of a page"),
        pytest.param("po", '# x\r\nmsgid "a\\nb"\nmsgstr ""\r\n\n#~ y\r\n',
                     '# x\r\nmsgid "a\\nb"\nmsgstr ""\r\n"A\\n"\r\n"B"\r\n\n#~ y\r\n', id="line ends of a catalogue"),
        pytest.param("md", "a\n\n$$\nx = y\n$$\n", "A\n\n$$\nx = y\n$$\n", id="formula"),
        pytest.param("md", "[^a]: wo ist\n", "[^a]: WO IST\n", id="footnote"),
        pytest.param("md", "|a|b\n|-|-\n|x \\| y|y\n", "|A|B\n|-|-\n|X \\| Y|Y\n", id="bar in a cell"),
        pytest.param("md", "[a *b*], [c][]\n\n[a *b*]: x\n[c]: y\n",
                     "[A *B*][a *b*], [C][c]\n\n[a *b*]: x\n[c]: y\n", id="reference"),
    ],
)  # fmt: skip
def test_what_stands_around_texts_stays(tmp_path: Path, ending: str, text: str, kept: str) -> None:
    assert in_capitals(tmp_path, ending, text.encode()).decode() == kept
    assert ending == "po" or translated(tmp_path, ending, text.encode()) == text.encode()


@pytest.mark.parametrize("encoding", ["iso-8859-1", "us-ascii"])
def test_xliff_writes_what_its_encoding_does_not_have(tmp_path: Path, encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?>{UNIT.format("gr&#246;sse &#8364;")}'.encode()
    new = in_capitals(tmp_path, "xliff", content)
    assert ElementTree.fromstring(new).find(".//target").text == "GR\u00d6SSE \u20ac"  # type: ignore[union-attr]
    assert b"&#8364;</target>" in new


def test_parts_whose_type_is_that_of_their_ending(tmp_path: Path) -> None:
    content = SAMPLES["docx"][0]
    types = members(content)["[Content_Types].xml"].decode()
    (main,) = re.findall(r'<Override PartName="/word/document.xml" ContentType="([^"]*)"/>', types)
    types = re.sub(r'<Override PartName="/word/document.xml"[^>]*>', "", types)
    types = re.sub(r'(Extension="xml" ContentType=)"[^"]*"', rf'\1"{main}"', types)
    found = segments(tmp_path, "docx", with_members(content, {"[Content_Types].xml": types}))
    assert [one.text for one in found] == SAMPLES["docx"][1]


@pytest.mark.parametrize(
    ("ending", "member", "ruby"),
    [
        (
            "odt", "content.xml",
            "<text:ruby><text:ruby-base>osten</text:ruby-base><text:ruby-text>{}</text:ruby-text></text:ruby>",
        ),
        ("epub", "OEBPS/seite 1.xhtml", "<ruby>osten<rt>{}</rt></ruby>"),
    ],
)  # fmt: skip
def test_the_reading_of_a_text_goes(tmp_path: Path, ending: str, member: str, ruby: str) -> None:
    sample = SAMPLES[ending][0]
    content = with_members(sample, {member: members(sample)[member].decode().replace("heute", ruby.format("ost"))})
    (text,) = (found.text for found in segments(tmp_path, ending, content) if "osten" in found.text)
    assert "ost<" not in text
    translated = members(in_capitals(tmp_path, ending, content))[member].decode()
    assert ruby.format("").replace("osten", "OSTEN") in translated


@pytest.mark.parametrize(
    ("position", "element"),
    [("super 58%", "sup"), ("sub 58%", "sub"), ("33% 58%", "sup"), ("-33% 58%", "sub"), ("0% 100%", "span")],
)
@pytest.mark.parametrize("inherited", [False, True])
def test_raised_and_lowered_texts_stay_at_their_word(
    tmp_path: Path, position: str, element: str, inherited: bool
) -> None:
    sample = SAMPLES["odt"][0]
    page = members(sample)["content.xml"].decode()
    said = '<style:style style:name="{}" style:family="text"{}>{}</style:style></office:automatic-styles>'
    said_here = said.format("Hoch", "", f'<style:text-properties style:text-position="{position}"/>')
    goes_on = said.format("T9", ' style:parent-style-name="Hoch"', "")
    for style in (said_here, goes_on):
        page = page.replace("</office:automatic-styles>", style)
    raised = f'5 m<text:span text:style-name="{"T9" if inherited else "Hoch"}">2</text:span> gross'
    content = with_members(sample, {"content.xml": page.replace("das haus", raised)})
    assert segments(tmp_path, "odt", content)[0].text == f'5 m<{element} id="s1">2</{element}> gross'
    assert raised.upper().split("<")[0] in members(in_capitals(tmp_path, "odt", content))["content.xml"].decode()


def test_paragraphs_of_a_text_in_a_style_for_code_stay(tmp_path: Path) -> None:
    sample = SAMPLES["odt"][0]
    style = '<style:style style:name="P9" style:family="paragraph" style:parent-style-name="Source_20_Code"/>'
    paragraph = '<text:p text:style-name="P9">print("guten <text:span>morgen</text:span>")</text:p>'
    page = members(sample)["content.xml"].decode()
    page = page.replace("</office:automatic-styles>", f"{style}</office:automatic-styles>")
    styles = members(sample)["styles.xml"].decode()
    named = '<style:style style:name="Source_20_Code" style:display-name="Source Code" style:family="paragraph"/>'
    assert "<office:styles/>" in styles
    changes = {
        "content.xml": page.replace("</office:text>", f"{paragraph}</office:text>"),
        "styles.xml": styles.replace("<office:styles/>", f"<office:styles>{named}</office:styles>"),
    }
    content = with_members(sample, changes)
    assert [one.text for one in segments(tmp_path, "odt", content)] == SAMPLES["odt"][1]
    assert paragraph in members(in_capitals(tmp_path, "odt", content))["content.xml"].decode()


def test_a_cell_says_its_text_once(tmp_path: Path) -> None:
    said = 'office:value-type="string" office:string-value="{}"'
    table = members(SAMPLES["ods"][0])["content.xml"].decode()
    for value, left in (("guten morgen", False), ("etwas anderes", True)):
        changed = table.replace('office:value-type="string"', said.format(value))
        new = in_capitals(tmp_path, "ods", with_members(SAMPLES["ods"][0], {"content.xml": changed}))
        assert (b"string-value" in members(new)["content.xml"]) == left


BOMB = {"bomb.bin": bytes(8 << 20)}
ENTITY = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'
BODY = {
    "docx": "word/document.xml", "epub": "OEBPS/seite 1.xhtml", "odp": "content.xml", "ods": "content.xml",
    "odt": "content.xml", "pptx": "ppt/slides/slide1.xml", "xlsx": "xl/comments/comment1.xml",
}  # fmt: skip
WRAPPED = b"\xd0\xcf\x11\xe0" + bytes(100) + "EncryptedPackage".encode("utf-16-le")
LOCKED = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
    'manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>'
)
RIGHTS = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData '
    'xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData><CipherReference URI="OEBPS/seite%201.xhtml"/></CipherData>'
    "</EncryptedData></encryption>"
)
MACROS = {
    "pptx": "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    "xlsx": "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
}


def with_macros(ending: str) -> bytes:
    types = members(SAMPLES[ending][0])["[Content_Types].xml"].decode()
    main = next(kind for kind in re.findall('"([^"]*)"', types) if kind.endswith(".main+xml"))
    return with_members(SAMPLES[ending][0], {"[Content_Types].xml": types.replace(main, MACROS[ending])})


REFUSED = [
    *((ending, with_members(SAMPLES[ending][0], BOMB), 413, "unpacked bytes per packed one") for ending in PACKAGES),
    *((ending, with_members(SAMPLES[ending][0], {BODY[ending]: ENTITY}), 422, "declares") for ending in PACKAGES),
    *((ending, with_members(SAMPLES[ending][0], {BODY[ending]: "<x>"}), 422, "again") for ending in PACKAGES),
    *((ending, SAMPLES[ending][0][:-100], 422, "damaged") for ending in PACKAGES),
    *((ending, WRAPPED, 422, "encrypted") for ending in PACKAGES),
    *((ending, SAMPLES["epub"][0], 415, f"named .{ending}, but holds") for ending in PACKAGES if ending != "epub"),
    ("epub", SAMPLES["odt"][0], 415, "no EPUB book"),
    *((ending, with_macros(ending), 415, "or one with macros") for ending in MACROS),
    ("pptx", with_members(SAMPLES["pptx"][0], {"ppt/vbaProject.bin": "code"}), 415, "or one with macros"),
    ("xlsx", with_members(SAMPLES["xlsx"][0], {"xl/vbaProject.bin": "code"}), 415, "or one with macros"),
    ("odt", with_members(SAMPLES["odt"][0], {"META-INF/manifest.xml": LOCKED}), 422, "encrypted"),
    ("odt", SAMPLES["odp"][0], 415, "opendocument.presentation"),
    ("epub", with_members(SAMPLES["epub"][0], {"META-INF/encryption.xml": RIGHTS}), 422, "encrypted"),
    ("epub", with_members(SAMPLES["epub"][0], {"OEBPS/seite 1.xhtml": None}), 422, "lacks a part"),
    ("pdf", pdf("wort", encrypt=True), 422, "encrypted"),
    ("pdf", pdf("wort").replace(b"/Root", b"/Encrypt << /Filter /Adobe.PubSec >> /Root"), 422, "without protection"),
    ("pdf", pdf(), 422, "no text layer"),
    ("pdf", b"%PDF-1.4\nnichts", 422, "damaged"),
    ("pdf", blank(), 415, "a zip archive"),
    ("json", b'{"a": wort}', 422, "line 1, column 7"),
    ("csv", b'a,b\nc,"wort\n', 422, "begins in line 2"),
    ("po", b'msgid "a"\nmsgstr "b\n', 422, "line 2"),
    ("po", b'msgid ""\nmsgstr "Content-Type: text/plain; charset=EBCDIC\\n"\n', 422, "written in EBCDIC"),
    ("vtt", b"1\n00:01.000 --> 00:02.000\nwort\n", 415, "WEBVTT"),
    ("vtt", b"WEBVTT\n\n1\n00:01 --> 00:02.000\nwort\n", 422, "line 4"),
    ("xliff", b"<xliff><file>" + b"<g>" * 900 + b"x" + b"</g>" * 900 + b"</file></xliff>", 422, "at most 200 elements"),
    ("html", b"<div>" * 900 + b"wort" + b"</div>" * 900, 422, "at most 200 elements within one another, and has 201"),
    ("xliff", ENTITY.encode(), 422, "declares entities"),
    ("xliff", b"<tmx/>", 415, "no XLIFF"),
    ("xliff", b"<xliff><file>", 422, "well-formed"),
    ("xliff", b'<?xml version="1.0" encoding="EBCDIC"?><xliff/>', 422, "written in ebcdic"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "content", "status", "says"),
    REFUSED,
    ids=lambda value: "bytes" if isinstance(value, bytes) else str(value),
)
def test_what_is_refused(tmp_path: Path, ending: str, content: bytes, status: int, says: str) -> None:
    with pytest.raises(FileRefused) as caught:
        segments(tmp_path, ending, content)
    assert says in str(caught.value)
    assert reply_for(caught.value).status == status
    assert str(tmp_path) not in str(caught.value)
