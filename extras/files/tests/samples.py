"""A document of every type, made by another library where there is one, with the texts that are found in it."""

from __future__ import annotations

import io
import zipfile

import odf.opendocument
import odf.text
import openpyxl
import openpyxl.comments
import openpyxl.worksheet.table
import pptx
import pptx.util
from odf.style import Style, TextProperties
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from tandem.extras.documents.tests.documents import paragraph, run, with_body, with_members


def kept(document: object, save: str = "save") -> bytes:
    file = io.BytesIO()
    getattr(document, save)(file)
    return file.getvalue()


def presentation() -> bytes:
    document = pptx.Presentation()
    slide = document.slides.add_slide(document.slide_layouts[1])
    slide.shapes.title.text = "das haus"
    text = slide.placeholders[1].text_frame.paragraphs[0]
    text.add_run().text = "wo ist "
    bold = text.add_run()
    bold.text, bold.font.bold = "der bahnhof", True
    text.add_run().text = " heute?"
    inch = pptx.util.Inches(1)
    slide.shapes.add_table(1, 2, inch, inch, inch, inch).table.cell(0, 1).text = "guten morgen"
    slide.notes_slide.notes_text_frame.text = "kurz\vlang"
    return kept(document)


def workbook() -> bytes:
    document = openpyxl.Workbook()
    sheet = document.active
    assert sheet is not None
    sheet.title = "Das Blatt"
    for row in (["Name", "Wert"], ["guten morgen", 12], ["eins\nzwei", "=SUM(B2:B2)"]):
        sheet.append(row)
    sheet["A4"] = CellRichText("wo ist ", TextBlock(InlineFont(b=True), "der bahnhof"), " heute?")
    sheet["A2"].comment = openpyxl.comments.Comment("eine notiz", "Anna")
    sheet.add_table(openpyxl.worksheet.table.Table(displayName="Tabelle", ref="A1:B3"))
    return kept(document)


def inline_workbook() -> bytes:
    """As programs write it that make rows one by one."""
    document = openpyxl.Workbook(write_only=True)
    document.create_sheet().append(["x"])
    content = kept(document)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    start, end = sheet.index("<sheetData>"), sheet.index("</sheetData>")
    cells = '<row r="1"><c r="A1" t="inlineStr"><is><t>guten morgen</t></is></c><c r="B1"><v>3</v></c></row>'
    return with_members(content, {"xl/worksheets/sheet1.xml": f"{sheet[:start]}<sheetData>{cells}{sheet[end:]}"})


def open_text() -> bytes:
    document = odf.opendocument.OpenDocumentText()
    bold = Style(name="Fett", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)
    document.text.addElement(odf.text.H(outlinelevel=1, text="das haus"))
    text = odf.text.P(text="wo ist ")
    text.addElement(odf.text.Span(stylename=bold, text="der bahnhof"))
    text.addText(" heute")
    note = odf.text.Note(noteclass="footnote", id="n1")
    note.addElement(odf.text.NoteCitation(text="a"))
    body = odf.text.NoteBody()
    body.addElement(odf.text.P(text="eine notiz"))
    note.addElement(body)
    text.addElement(note)
    text.addText(" und morgen?")
    document.text.addElement(text)
    tabs = odf.text.P(text="eins")
    tabs.addElement(odf.text.Tab())
    tabs.addText("zwei & drei")
    document.text.addElement(tabs)
    document.text.addElement(odf.text.P(text="12"))
    return kept(document, "write")


def open_slides() -> bytes:
    from odf.draw import Frame, Page, TextBox
    from odf.style import MasterPage, PageLayout

    document = odf.opendocument.OpenDocumentPresentation()
    document.automaticstyles.addElement(PageLayout(name="Seite"))
    document.masterstyles.addElement(MasterPage(name="Standard", pagelayoutname="Seite"))
    page = Page(masterpagename="Standard")
    frame, box = Frame(width="10cm", height="3cm"), TextBox()
    box.addElement(odf.text.P(text="guten morgen"))
    frame.addElement(box)
    page.addElement(frame)
    document.presentation.addElement(page)
    return kept(document, "write")


def open_table() -> bytes:
    from odf.table import Table, TableCell, TableRow

    document = odf.opendocument.OpenDocumentSpreadsheet()
    table, row = Table(name="Das Blatt"), TableRow()
    for value, text in (("string", "guten morgen"), ("float", "12")):
        cell = TableCell(valuetype=value, **({"value": text} if value == "float" else {}))
        cell.addElement(odf.text.P(text=text))
        row.addElement(cell)
    table.addElement(row)
    document.spreadsheet.addElement(table)
    return kept(document, "write")


PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="de"><head><title>Das Buch</title><style>p { color: red }</style>
<script src="x.js"/></head>
<body class='x'><h1 id="eins">das haus</h1><p>wo ist <em>der bahnhof</em><a id="seite2"/> heute?</p>
<div>lose <code>make test</code> worte<pre>code bleibt</pre><p>eins<br/>zwei &amp; drei</p><p><b>ganz fett</b></p></div>
<p translate="no">bleibt</p></body></html>
"""
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
    '<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
    "</container>",
    "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">x</dc:identifier><dc:title>Titel</dc:title>'
    "<dc:language>de</dc:language></metadata><manifest>"
    '<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    '<item id="c" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    '<item id="p" href="seite%201.xhtml" media-type="application/xhtml+xml"/></manifest>'
    '<spine toc="c"><itemref idref="p"/></spine></package>',
    "OEBPS/seite 1.xhtml": PAGE,
    "OEBPS/nav.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body><nav><ol><li><a href="seite%201.xhtml">'
    "das haus</a></li></ol></nav></body></html>",
    "OEBPS/toc.ncx": '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><head/><navMap><navPoint '
    'id="a"><navLabel><text>das haus</text></navLabel><content src="seite%201.xhtml"/></navPoint></navMap></ncx>',
}


def book() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in BOOK.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return written.getvalue()


def pdf(*lines: str, encrypt: bool = False) -> bytes:
    """A page with those lines in Helvetica, and one without text."""
    from pypdf import PdfReader, PdfWriter

    shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
    stream = f"BT /F1 12 Tf 72 720 Td {shown}ET"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R 6 0 R] /Count 2 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >>"
        " >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>",
    )  # fmt: skip
    written, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    table = f"xref\n0 7\n0000000000 65535 f \n{table}trailer\n<< /Size 7 /Root 1 0 R >>\n"
    whole = f"{written}{table}startxref\n{len(written)}\n%%EOF\n".encode("latin-1")
    if not encrypt:
        return whole
    writer = PdfWriter(PdfReader(io.BytesIO(whole)))
    writer.encrypt("secret", algorithm="RC4-128")
    return kept(writer, "write")


CATALOGUE = r"""# Copyright
msgid ""
msgstr ""
"Project-Id-Version: x\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: a.c:1
msgid "guten morgen"
msgstr ""

#, c-format
msgctxt "menu"
msgid ""
"die datei %s "
"hat <b>%d</b> zeilen\n"
msgstr ""

#, fuzzy, c-format
#| msgid "alt %d"
msgid "neu %d"
msgstr "old %d"

msgid "das \"haus\""
msgstr   "the house"

msgid "eine datei"
msgid_plural "%d dateien"
msgstr[0] ""
msgstr[1] ""

#~ msgid "weg"
#~ msgstr "gone"
"""
XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file original="a" source-language="de" datatype="plaintext"><body>
  <trans-unit id="1"><source>guten <g id="1">morgen</g></source></trans-unit>
  <trans-unit id="2"><source>wo ist <x id="1"/> heute, {name}?</source>
   <target state="new">wo</target><note>eine notiz</note></trans-unit>
  <trans-unit id="3"><source>das haus</source><target state="final">the house</target></trans-unit>
  <trans-unit id="4" translate="no"><source>bleibt</source></trans-unit>
  <trans-unit id="5"><source>eins
zwei</source><target/><alt-trans><source>x y</source><target>z</target></alt-trans></trans-unit>
 </body></file>
</xliff>
"""
XLIFF2 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="de"><file id="f"><unit id="1">
<notes><note>eine notiz</note></notes>
<segment state="initial"><source>guten <pc id="1">morgen</pc></source></segment>
<segment><source>das haus</source><target>the house</target></segment></unit>
<unit id="2" translate="no"><segment><source>bleibt</source></segment></unit></file></xliff>
"""
STRINGS = r"""{
  "titel": "guten morgen",  "zahl": 1.50, "frei": true, "leer": "",
  "liste": ["wo ist {{name}}?", "https://example.org/ein/weg", "BTN_OK", "#ff0000", "a\/b\u00e4",
    "{n, plural, one {ein haus} other {# häuser}}"],
  "tief": {"guten morgen": "eins\nzwei \"drei\""}
}
"""
TABLE = 'name;wert\r\n"guten ""morgen""";1,5\r\nhaus und hof;BTN_OK\r\n"zwei\nzeilen";\r\n;12\r\n'
CUES = """WEBVTT - titel

NOTE eine notiz
noch eine

STYLE
::cue { color: red }

1
00:01.000 --> 00:02.500 align:start
<v Anna>wo ist der
bahnhof <c.gelb>heute</c> &amp; morgen</v>

00:03.000 --> 00:04.000
- guten <00:03.500>morgen
- wie geht es?

00:05.000 --> 00:06.000
♪ 12 ♪
"""
MARKDOWN = """---
title: bleibt hier
---
# Das *Haus* #

Kapitel eins
============

Wo ist **der bahnhof** [heute](https://example.org/a_b "titel")? Siehe `make test`\x20\x20
und <https://example.org>, ![bild](a.png) \\*kein\\* stern &amp; rest[^1].

> - [x] eins
>   zwei [drei][verweis]
> - vier

| Kopf | `a` \\| b |
|------|----------|
| zelle eins | zwei |

```python
code = "bleibt"
```

    auch code

<div>
ein kasten
</div>

[verweis]: https://example.org "titel bleibt"
"""

SAMPLES: dict[str, tuple[bytes, list[str]]] = {
    "csv": (TABLE.encode(), ["name", "wert", 'guten "morgen"', "haus und hof", "zwei\nzeilen"]),
    "docx": (
        with_body(paragraph(run("wo ist heute "), run("der bahnhof", "<w:rPr><w:b/></w:rPr>"))),
        ['wo ist heute <span id="s1">der bahnhof</span>'],
    ),
    "epub": (
        book(),
        [
            "Titel", "Das Buch", "das haus",
            'wo ist <span id="s1">der bahnhof</span><img id="o4"> heute?', 'lose <code id="o1">make test</code> worte',
            "eins", "zwei & drei", "ganz fett", "das haus", "das haus",
        ],
    ),
    "html": (b"<p>guten <b>morgen</b></p>\n<p>das haus</p>", ["guten <b>morgen</b>", "das haus"]),
    "json": (
        STRINGS.encode(),
        [
            "guten morgen", 'wo ist <code id="o1">{{name}}</code>?', "ein haus", '<code id="o0">#</code> häuser',
            'eins\nzwei "drei"',
        ],
    ),
    "md": (
        MARKDOWN.encode(),
        [
            'Das <span id="s1">Haus</span>', "Kapitel eins",
            'Wo ist <span id="s1">der bahnhof</span> <span id="s5">heute</span>? Siehe <code id="o9">make test</code>',
            'und <code id="o1">https://example.org</code>, <img id="o3"> *kein* stern &amp; rest<img id="o11">.',
            "bild", 'eins zwei <span id="s3">drei</span>', "vier", "Kopf", '<code id="o0">a</code> | b', "zelle eins",
            "zwei", "ein kasten",
        ],
    ),
    "odp": (open_slides(), ["guten morgen"]),
    "ods": (open_table(), ["guten morgen"]),
    "odt": (
        open_text(),
        [
            "das haus", 'wo ist <span id="s1">der bahnhof</span> heute<img id="o5"> und morgen?', "eine notiz", "eins",
            "zwei & drei",
        ],
    ),
    "pdf": (
        pdf("wo ist der bahn-", "hof heute abend", "denn?", "", "guten morgen"),
        ["wo ist der bahnhof heute abend denn?", "guten morgen"],
    ),
    "po": (
        CATALOGUE.encode(),
        [
            "guten morgen", 'die datei <code id="o1">%s</code> hat <span id="s3"><code id="o4">%d</code></span> zeilen',
            'neu <code id="o1">%d</code>', "eine datei", '<code id="o0">%d</code> dateien',
        ],
    ),
    "pptx": (
        presentation(),
        ["das haus", 'wo ist <span id="s1">der bahnhof</span> heute?', "guten morgen", "kurz", "lang"],
    ),
    "srt": (b"1\n00:00:01,000 --> 00:00:02,000\nguten morgen\n\n", ["guten morgen"]),
    "txt": (b"guten morgen\n", ["guten morgen"]),
    "vtt": (
        CUES.encode(),
        [
            'wo ist der bahnhof <span id="s1">heute</span> &amp; morgen', '- guten <img id="o1">morgen',
            "- wie geht es?",
        ],
    ),
    "xliff": (
        XLIFF.encode(),
        [
            'guten <span id="s1">morgen</span>', 'wo ist <img id="o1"> heute, <code id="o3">{name}</code>?',
            "eins\nzwei",
        ],
    ),
    "xlsx": (
        workbook(),
        ["guten morgen", "eins\nzwei", 'wo ist <span id="s1">der bahnhof</span> heute?', "eine notiz"],
    ),
}  # fmt: skip
