"""What pages and books say in attributes: which is translated, and that the rest of a tag stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.documents.tests.documents import members, segments, translated, with_members
from tandem.extras.files.tests.samples import SAMPLES
from tandem.extras.files.tests.test_formats import in_capitals


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<img src="haus.png" alt="ein Haus">', '<img src="haus.png" alt="EIN HAUS">'),
        ("<p>Das <img alt='das Haus'/> hier.</p>", "<p>DAS <img alt='DAS HAUS'/> HIER.</p>"),
        ('<a title="mehr &amp; mehr" href=x>los</a>', '<a title="MEHR &amp; MEHR" href=x>LOS</a>'),
        ('<p>ein <b aria-label="Wort">wort</b> mehr</p>', '<p>EIN <b aria-label="WORT">WORT</b> MEHR</p>'),
        ('<input type="Submit" value="x"><input value="rot">', '<input type="Submit" value="X"><input value="rot">'),
        ('<textarea placeholder="Text">Haus</textarea>', '<textarea placeholder="TEXT">Haus</textarea>'),
        ('<meta name="Description" content="ein\n Haus">', '<meta name="Description" content="EIN HAUS">'),
        ('<meta property="og:title" content="a"><meta name="robots" content="all">',
         '<meta property="og:title" content="A"><meta name="robots" content="all">'),
        ('<option label="rot">', '<option label="ROT">'),
        ('<img alt=""><img alt="12,5"><img alt=rot src=a>', '<img alt=""><img alt="12,5"><img alt="ROT" src=a>'),
        ('<input type=submit value=los!>', '<input type=submit value="LOS!">'),
        ('<a data-x="title=\'rot\'" title="blau">g</a>', '<a data-x="title=\'rot\'" title="BLAU">G</a>'),
        ('<div translate="no"><img alt="rot"></div>', '<div translate="no"><img alt="rot"></div>'),
        ('<pre title="Quelltext"><b title="rot">x</b></pre>', '<pre title="QUELLTEXT"><b title="rot">x</b></pre>'),
        ('<img class="notranslate" alt="rot"><img alt="rot">', '<img class="notranslate" alt="rot"><img alt="ROT">'),
    ],
)  # fmt: skip
def test_pages(tmp_path: Path, page: str, expected: str) -> None:
    assert in_capitals(tmp_path, "html", page.encode()).decode() == expected


def test_quotation_marks_do_not_end_a_value(tmp_path: Path) -> None:
    page = b"<img alt='haus'>"
    assert translated(tmp_path, "html", page, ["""das "alte" 'haus' & <b>"""]) == (
        b"<img alt='das &quot;alte&quot; &#x27;haus&#x27; &amp; &lt;b&gt;'>"
    )


def test_a_text_is_translated_once(tmp_path: Path) -> None:
    page = b'<a title="los"></a><a title="los"></a>'
    assert [one.text for one in segments(tmp_path, "html", page)] == ["los"]
    assert translated(tmp_path, "html", page, ["go"]) == b'<a title="go"></a><a title="go"></a>'


def test_books(tmp_path: Path) -> None:
    name = "OEBPS/seite 1.xhtml"
    body = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><body title="buch"><p>das <img src="a.png" alt="alte"/> haus</p>'
        '<img alt="ein &amp; zwei" src="b.png"/><div translate="no"><img alt="rot" src="c.png"/></div></body></html>'
    )
    book = with_members(SAMPLES["epub"][0], {name: body.encode()})
    page = members(in_capitals(tmp_path, "epub", book))[name].decode()
    for tag in ('<body title="BUCH">', '<img src="a.png" alt="ALTE"/>', 'alt="EIN &amp; ZWEI"', 'alt="rot"'):
        assert tag in page
