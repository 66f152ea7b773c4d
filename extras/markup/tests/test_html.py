"""Markup: what is not translated comes back byte for byte, what is keeps its tags, and no tag is made of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
import turbohtml
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.extras.markup.html import HtmlDocument
from tandem.extras.markup.inline import MarkupBlock
from tandem.extras.markup.scanning import Kind, scan_html
from tandem.service.text.blocks import MarkupOptions, Pairs

PIECES = (
    "Haus", "alt", "a", "é", "😀", "今日", " ", " ", "\n", "\r\n", "\t", "&amp;", "&lt;", "&lt;script&gt;", "&nbsp;",
    "AT&T", "&#x41;", "&", "<", ">", '"', "x < y", ".", ", ", "\u2028", "\0", "\x0c", "<b>", "</b>", "<i class=x>",
    "</i>", "<a href='a>b'>", "</a>", "<B>", "</B>", "<p>", "</p>", "<div translate=no>", "<div>", "</div>", "<br>",
    "<br/>", "<img src=x>", "<hr>", "<wbr>", "<!-- c -->", "<!-->", "<!DOCTYPE html>", "<![CDATA[x]]>", "<?pi?>",
    "<code>", "</code>", "<span class='notranslate y'>", "<span>", "</span>", "<script>", "</script>", "<style>",
    "</style>", "<textarea>", "</textarea>", "<title>", "</title>", "<svg>", "</svg>", "<math>", "</math>", "<td>",
    "<table>", "</table>", "<li>", "<ul>", "</ul>", "<pre>", "</pre>", "</>", "</", "<p", "<x id=1/>", "<noscript>",
    "</noscript>", "<select>", "<option>", "<template>", "</template>", "<tr>", "<dt>", "<dd>", "</li>", "</td>",
    "<ruby>", "<rt>", "</rt>", "</ruby>", "<button>", "</button>", "<path/>", "<svg/>", "<h1>", "</h1>",
)  # fmt: skip
SOUP = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
ANY = st.text(st.characters(exclude_categories=[]), max_size=60)


@st.composite
def tidy(draw: st.DrawFn, depth: int = 3) -> str:
    """Well-formed markup with words in it."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        words = " ".join(draw(st.lists(st.sampled_from(["Haus", "alt", "rot", "x &amp; y", "3", "ja,"]), max_size=4)))
        parts.append(draw(st.sampled_from(["", " "])) + words + draw(st.sampled_from(["", " "])))
        name = draw(st.sampled_from(["b", "i", "a", "span", "code", "p", "div", "br", "img", "#", "svg", "em"]))
        if name in ("br", "img"):
            parts.append(f"<{name}>")
        elif name == "#":
            parts.append("<!--c-->")
        elif depth:
            parts.append(f"<{name}>{draw(tidy(depth - 1))}</{name}>")
    return "".join(parts)


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def shout(block: MarkupBlock) -> str:
    """A translation that aligns with the source word for word."""
    text = "".join(one.upper() if len(one.upper()) == 1 else one for one in block.text)
    return block.render(text, [(word, word) for word in words(text)])


def reverse(block: MarkupBlock) -> str:
    """A translation that turns each line's words round."""
    lines: list[str] = []
    pairs: list[tuple[tuple[int, int], tuple[int, int]]] = []
    start = done = 0
    for line in block.text.split("\n"):
        found = [match.span() for match in re.finditer(r"\S+", line)]
        place = done
        for first, last in reversed(found):
            pairs.append(((start + first, start + last), (place, place + last - first)))
            place += last - first + 1
        lines.append(" ".join(line[first:last] for first, last in reversed(found)))
        start, done = start + len(line) + 1, done + len(lines[-1]) + 1
    return block.render("\n".join(lines), pairs)


def translated(text: str, how=shout, options: MarkupOptions | None = None) -> str:  # type: ignore[no-untyped-def]
    document = HtmlDocument.parse(text, options)
    return document.render([how(block) for block in document.blocks])


def tags(text: str) -> Counter[str]:
    """Tags and comments as they were written."""
    return Counter(
        token.raw for token in scan_html(text) if token.kind is not Kind.TEXT and token.kind is not Kind.JUNK
    )


def elements(text: str) -> Counter[str]:
    """The elements that a browser makes of a text."""
    return Counter(element.tag for element in turbohtml.parse_fragment(text).find_all())


def ends(text: str) -> Iterator[tuple[Kind, str]]:
    yield from ((token.kind, token.name) for token in scan_html(text) if token.kind in (Kind.START, Kind.END))


def is_nested(text: str) -> bool:
    stack: list[str] = []
    for kind, name in ends(text):
        if kind is Kind.START:
            stack.append(name)
        elif not stack or stack.pop() != name:
            return False
    return not stack


@given(SOUP | ANY)
@example("<p>a</><b>x\r\n</b></p")
def test_tokens_are_the_text(text: str) -> None:
    assert "".join(token.raw for token in scan_html(text)) == text


@given(SOUP | ANY | tidy())
def test_a_translation_that_is_the_text_gives_the_markup_back(text: str) -> None:
    document = HtmlDocument.parse(text)
    assert document.render([block.render(block.text) for block in document.blocks]) == text
    assert "".join(part if isinstance(part, str) else part.raw for part in document.parts) == text


@given(SOUP | tidy(), st.data())
@example("<p>Haus<!-- c --> <b>alt</b><br></p>", None)
@example("<math><tr>Haus <x/>alt", None)
@example("<svg><p></svg><div></div><b>Haus</b>", None)
@example("<b>Haus</>", None)
@example("<!-- c -->Haus</>", None)
@example("<b>Haus<p", None)
@example("<b>Haus</b><p a='", None)
def test_tags_come_back_once_whatever_the_translation_is(text: str, data: st.DataObject | None) -> None:
    def other(block: MarkupBlock) -> str:
        if data is None:
            return block.render("")
        text = data.draw(st.text(st.sampled_from("ab <>&\"'/\n-!.é今"), max_size=30))
        place = st.integers(0, 40)
        pairs: Pairs = data.draw(st.lists(st.tuples(st.tuples(place, place), st.tuples(place, place)), max_size=6))
        return block.render(text, pairs)

    document = HtmlDocument.parse(text)
    result = document.render([other(block) for block in document.blocks])
    assert tags(result) <= tags(text), (text, result)
    assert tags(result) == tags(text) or "<ruby>" in text, (text, result)  # readings go
    assert not is_nested(text) or elements(result) <= elements(text), (text, result)
    assert set(elements(result)) <= set(elements(text)), (text, result)


@given(tidy())
@example(
    "<br><b><b><b></b></b></b><b><b><code>Haus</code></b><br><b><b></b></b>Haus Haus Haus<b><b></b></b></b>"
    "<b><b><b>Haus Haus</b></b></b>"
)
def test_nested_markup_stays_nested(text: str) -> None:
    for how in (shout, reverse, lambda block: block.render(block.text.upper())):
        result = translated(text, how)
        assert is_nested(result), (text, result)
        assert tags(result) == tags(text)


@given(st.text(st.sampled_from("<>&;/\"' scriptamglx=!-"), max_size=40))
def test_escaped_text_never_becomes_markup(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    document = HtmlDocument.parse(f"<p>a {escaped} b</p>")
    (block,) = document.blocks
    for translation in (text, block.text.upper(), f"{text} <script>alert(1)</script> <!-- <![CDATA["):
        result = document.render([block.render(translation)])
        assert elements(result) == Counter(["p"]), result
        assert not any(token.kind is Kind.OTHER for token in scan_html(result))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>das <b>alte <i>rote</i></b> haus.</p>", "<p>DAS <b>ALTE <i>ROTE</i></b> HAUS.</p>"),
        ("das <b>haus</b>, <i>ja</i>!", "DAS <b>HAUS</b>, <i>JA</i>!"),
        ("eins <b> zwei </b> drei", "EINS <b>ZWEI</b> DREI"),
        ("<p>eins<p>zwei <b>drei<p>vier</b>", "<p>EINS<p>ZWEI <b>DREI<p>VIER</b>"),
        ("<ul><li>a b<li>c <a href=x>d</a></ul>", "<ul><li>A B<li>C <a href=x>D</a></ul>"),
        ("a<br>b <b>c<br/>d</b>", "A<br>B <b>C<br/>D</b>"),
        ("sieh <img src=x> das <!-- c --> an", "SIEH <img src=x> DAS <!-- c --> AN"),
        ("<a href=x><img src=y></a> text", "<a href=x><img src=y></a> TEXT"),
        ("<span class=icon></span> speichern", "<span class=icon></span> SPEICHERN"),
        ("donau<wbr>dampf fahrt", "DONAUDAMPF<wbr> FAHRT"),
        ("a &amp; b &lt;i&gt; 5&nbsp;m", "A &amp; B &lt;I&gt; 5&nbsp;M"),
        ("<title>a &amp; b</title><style>a{}</style>", "<title>A &amp; B</title><style>a{}</style>"),
        ("<div>  ein\n   satz\t</div>\n", "<div>  EIN SATZ\t</div>\n"),
        ("<b><i>alles</i></b>", "<b><i>ALLES</i></b>"),
        ("<x-y>a</x-y> b", "<x-y>A</x-y> B"),
        ("5 < 6 <3 ja", "5 &lt; 6 &lt;3 JA"),
        ("ja <b", "JA <b"),
    ],
)
def test_markup_goes_with_its_words(source: str, expected: str) -> None:
    assert translated(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("das <b>alte</b> haus", "haus <b>alte</b> das"),
        ("das <b>alte <i>rote</i></b> haus", "haus <b><i>rote</i> alte</b> das"),
        ("eins <b>zwei drei</b> <i>vier</i>", "<i>vier</i> <b>drei zwei</b> eins"),
        ("eins <code>x = 1</code> zwei", "zwei 1 = x <code>x = 1</code> eins"),
        ("eins <img src=x> zwei", "zwei eins <img src=x>"),
    ],
)
def test_markup_follows_its_words_to_other_places(source: str, expected: str) -> None:
    if "code" in source:  # what is kept is one word in the translation
        document = HtmlDocument.parse(source)
        (block,) = document.blocks
        result = block.render("zwei x = 1 eins", [((0, 4), (11, 15)), ((11, 15), (0, 4))])
        assert [block.text[a:b] for a, b in block.kept] == ["x = 1"]
        assert result == "zwei <code>x = 1</code> eins"
    else:
        assert translated(source, reverse) == expected


def test_without_alignment_markup_stays_at_its_share_of_the_sentence() -> None:
    (block,) = HtmlDocument.parse("eins zwei <b>drei vier</b> fünf sechs").blocks
    assert block.render("un deux trois quatre cinq six") == "un deux <b>trois quatre</b> cinq six"


def test_a_word_that_is_not_aligned_goes_between_its_neighbours() -> None:
    (block,) = HtmlDocument.parse("das <b>grosse</b> haus").blocks
    pairs = [((0, 3), (0, 3)), ((11, 15), (8, 13))]
    assert block.render("the big house", pairs) == "the <b>big</b> house"
    assert block.render("the house", [((0, 3), (0, 3)), ((11, 15), (4, 9))]) == "the<b></b> house"


def test_names_are_found_where_they_are_written_alike() -> None:
    (block,) = HtmlDocument.parse("Frag <b>Tandem</b> doch.").blocks
    assert block.render("Do ask Tandem.", [((5, 11), (0, 2))]) == "Do ask <b>Tandem</b>."


@pytest.mark.parametrize(
    ("source", "written", "expected"),
    [
        ("the <b>Git</b> command", "der Git-Befehl", "der <b>Git</b>-Befehl"),
        ("web <b>Tandem</b>", "Web-Tandem", "Web-<b>Tandem</b>"),
        ("an <b>in</b> word", "ein Inline-Wort", "ein<b></b> Inline-Wort"),
        ("the <b>Git</b> command", "der Git-Git-Befehl", "der<b></b> Git-Git-Befehl"),
    ],
)
def test_a_name_that_became_part_of_a_word_keeps_its_element(source: str, written: str, expected: str) -> None:
    (block,) = HtmlDocument.parse(source).blocks
    assert block.render(written, [((0, 3), (0, 3)), ((len(block.text) - 4, len(block.text)), (4, 4))]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<p translate=no>x <b>y</b></p>",
        "<div class='a notranslate'>x<p>y</p></div>",
        "<pre>a\n b</pre><code>x</code><kbd>y</kbd><samp>z</samp><var>a</var>",
        "<script>var a = '<p>x</p>';</script><style>p{}</style><textarea>x</textarea>",
        "<svg><text>x</text></svg><math><mi>x</mi></math>",
        "<p alt='x' title='y'></p><!-- x --><!DOCTYPE html>",
        "<ul><li translate=no>x<li>–</ul>",
    ],
)
def test_what_is_not_to_be_translated_is_not(text: str) -> None:
    assert HtmlDocument.parse(text).blocks == ()
    assert translated(f"{text}<p>ja</p>") == f"{text}<p>JA</p>"


def test_kept_parts_are_named_and_come_back_as_they_were() -> None:
    (block,) = HtmlDocument.parse("nimm <code>a  <i>b</i></code> und <span translate=NO>x&amp;y</span>").blocks
    assert block.text == "nimm a b und x&y"
    assert [block.text[start:end] for start, end in block.kept] == ["a b", "x&y"]
    written = block.render("take x&y and a b", [])
    assert written == "take <span translate=NO>x&amp;y</span> and <code>a  <i>b</i></code>"
    lost = block.render("take this")
    assert tags(lost) == tags(block.raw)
    assert "<span translate=NO>x&amp;y</span>" in lost


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        (
            "nach <ruby>ost<rp>(</rp><rt>o<b>s</b>t</rt><rp>)</rp>en<rt>en</rt></ruby> und",
            "nach osten und",
            "NACH <ruby>OSTEN</ruby> UND",
        ),
        ("<p><ruby>osten<rp>(<rt>o<rp>)</ruby> und", "osten und", "<p><ruby>OSTEN</ruby> UND"),
        ("<p>nach <ruby>ost<rt translate=no>x</rt></ruby>", "nach ostx", None),
        ("nach <rt>osten", "osten", None),
        ("<ruby>nach <rt>osten und westen", "osten und westen", None),
        ("<ruby>nach <rt><p>osten</p></rt></ruby>", "osten", None),
    ],
)
def test_readings_are_no_part_of_a_sentence(source: str, text: str, expected: str | None) -> None:
    """Where there is no expectation it is none, or none that surely ends: nothing of it may be lost."""
    document = HtmlDocument.parse(source)
    assert document.blocks[-1].text == text
    assert document.render([block.raw for block in document.blocks]) == source
    if expected:
        assert translated(source) == expected


def test_a_long_listing_is_no_part_of_a_sentence() -> None:
    document = HtmlDocument.parse(f"vor <code>{'x ' * 200}</code> nach")
    assert [block.text for block in document.blocks] == ["vor", "nach"]


def test_text_for_detection_is_what_people_read() -> None:
    document = HtmlDocument.parse("<p>Guten <b>Morgen</b></p><script>x</script><p>Ja &amp; nein<br>doch</p>")
    assert document.text == "Guten Morgen\nJa & nein\ndoch"


@pytest.mark.parametrize(
    "text",
    [
        "<p>Hallo Welt\n" * 1_000,
        "<ul>" + "<li>Hallo <b>Welt</b>\n" * 1_000 + "</ul>",
        "<dl>" + "<dt>Hallo<dd>Welt<p>ja" * 500 + "</dl>",
        "<table><caption>Hallo<colgroup><col>" + "<thead><tr><th>a<tbody><tr><td>Hallo<td>Welt<tfoot><tr><td>x" * 300,
        "<table>" + "<colgroup><tr><td>a<p>b" * 400 + "</table>",
        "<select>" + "<optgroup><option>Hallo<option>Welt" * 400 + "<hr></select>",
        "<ol>" + "<li>a<ul><li>b<p>c<li>d</ul>" * 300 + "</ol>",
        "<p>Hallo<div>Welt</div>" * 500,
        "<svg>" + "<path d='M0'/>" * 500 + "</svg> Welt",
    ],
)
def test_elements_without_end_tags_stand_side_by_side(text: str) -> None:
    document = HtmlDocument.parse(text, MarkupOptions(max_depth=8))
    assert document.render([block.render(block.text) for block in document.blocks]) == text
    result = translated(text)
    assert result == re.sub(r"(?<![</\w'=])\w+(?![\w'])(?=[^>]*(?:<|$))", lambda found: found[0].upper(), text)
    assert elements(result) == elements(text)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>eins\n<p>zwei<div>drei</div>vier", ["eins", "zwei", "drei", "vier"]),
        ("<ul><li>eins<li>zwei<ul><li>drei</ul>vier</ul>", ["eins", "zwei", "drei", "vier"]),
        ("<table><tr><td>eins<td>zwei<tr><th>drei</table>vier", ["eins", "zwei", "drei", "vier"]),
        ("<dl><dt>eins<dd>zwei<dt>drei</dl>", ["eins", "zwei", "drei"]),
        # What is kept ends with its element.
        ("<ul><li translate=no>a<ul><li>b</ul>c<li>d</ul>", ["d"]),
        ("<table><tr><td translate=no>a<p>b<td>c</table>", ["c"]),
        ("<dl><dt class=notranslate>a<ul><li>b</ul><dd>c</dl>", ["c"]),
        ("<ul><li>a<div translate=no><p>b<hr>c</div><li>d</ul>", ["a", "d"]),
        ("<td translate=no>a<p>b</td><td>c", ["c"]),
        ("<div translate=no><table><tr><td>a</div>b</table>c</div>d", ["d"]),
        ("<b>a <code>b</b> c</code> d", ["a", "d"]),
        ("<div><span translate=no><p>a</span> b</p></div>", ["b"]),
        ("<svg/> a", ["a"]),
    ],
)
def test_each_element_without_an_end_tag_is_its_own_block(source: str, expected: list[str]) -> None:
    assert [block.text for block in HtmlDocument.parse(source).blocks] == expected


@pytest.mark.parametrize(
    "text",
    [
        "<b>fett <i>kursiv</b> Text</i>",
        "<b>sehr fett <i>und kursiv</b> ganz anders</i> und so",
        "<p>eins <b>zwei <i>drei</b> vier</i> fünf</p><p>sechs</p>",
        "<b>eins <p>zwei</b> drei</p> vier",
        "<p>eins <b>zwei</p>drei</b> vier",
        "<div><b>eins</div><div>zwei</b> drei</div>",
        "<ul><li>eins <b>zwei<li>drei</b> vier</ul>",
        "eins <span translate=no>x <b>y</span> zwei</b> drei",
        "<p>eins <code>x <b>y</code> zwei drei</b> vier</p>",
    ],
)
def test_misnested_tags_stay_between_the_same_words(text: str) -> None:
    """Each stretch between two stray tags is a block of its own, so that no word comes to another side of one."""
    skeleton = re.sub(r"\w+", "w", text)
    for how in (shout, reverse, lambda block: block.render(block.text.upper())):
        result = translated(text, how)
        assert re.sub(r"\w+", "w", result) == skeleton
        assert elements(result) == elements(text)
        stretches = zip(re.split("<[^>]*>", text), re.split("<[^>]*>", result), strict=True)
        assert all(sorted(old.lower().split()) == sorted(new.lower().split()) for old, new in stretches), result


def block(text: str) -> MarkupBlock:
    (found,) = HtmlDocument.parse(text).blocks
    return found


@pytest.mark.parametrize(
    ("text", "read", "kept"),
    [
        ("48 m<sup>3</sup> und", "48 m3 und", ["3"]),
        ("H<sub>2</sub>O ist", "H2O ist", ["2"]),
        ('Fußnote<sup><a href="#f1">1</a></sup>.', "Fußnote.", []),  # of the word, but not in it
        ('Haus <a href="#">¶</a> alt <b>*</b>', "Haus ¶ alt *", ["¶", "*"]),
        ("Haus <b>1.204</b> und <sup>n</sup>", "Haus 1.204 und n", []),
    ],
)
def test_an_element_without_letters_is_an_object(text: str, read: str, kept: list[str]) -> None:
    found = block(text)
    assert found.text == read and [found.text[slice(*span)] for span in found.kept] == kept
    assert found.render(f"so {read}") == f"so {text}" or not kept


def test_a_raised_number_keeps_its_word_wherever_that_goes() -> None:
    found = block("48 m<sup>3</sup> und 3 Tanks m<sup>3</sup>")
    assert found.render("3 tanks m3 and 483 m3") == "3 tanks m<sup>3</sup> and 483 m<sup>3</sup>"


def test_empty_elements_part_words() -> None:
    found = block('Hund<img src="a.png">Katze')
    assert found.text == "Hund Katze"
    assert found.render("dog cat", [((0, 4), (0, 3)), ((5, 10), (4, 7))]) == 'dog<img src="a.png">cat'
    assert block("Donau<wbr>dampf").text == "Donaudampf"
    assert block("<b>Hund</b><i></i><u>Katze</u>").text == "Hund Katze"
    before = block("Das Haus<img> ist alt.")  # whose space the sentence has itself
    assert before.render("The house is old.", [((4, 8), (4, 9)), ((9, 12), (10, 12))]) == "The house<img> is old."


@pytest.mark.parametrize(
    "objects", ["<img a><img b>", "<img a><!-- c --><input>", "<img a> <img b>", "<img a><img b> <img c>"]
)
def test_objects_side_by_side_stay_so(objects: str) -> None:
    found = block(f"Das {objects} Haus ist <img>alt.")
    assert found.render("The house is old.", [((0, 3), (0, 3)), ((4, 8), (4, 9)), ((9, 12), (10, 12))]) == (
        f"The {objects} house is <img>old."
    )


def test_an_amount_is_not_found_in_two_others() -> None:
    found = block("Preis: <s>10 €</s> <b>8 €</b> da")
    pairs = [((0, 5), (0, 5)), ((7, 11), (7, 10)), ((12, 15), (11, 13)), ((16, 18), (14, 18))]
    assert found.render("Price: €10 €8 here", pairs) == "Price: <s>€10</s> <b>€8</b> here"


def test_a_no_break_space_between_elements_stays() -> None:
    found = block("<a>Hund</a>&nbsp;<b>Katze</b> da")
    pairs = [((0, 4), (0, 3)), ((5, 10), (4, 7)), ((11, 13), (8, 12))]
    assert found.render("dog cat here", pairs) == "<a>dog</a>&nbsp;<b>cat</b> here"
    assert block("<a>Hund</a> <b>Katze</b>").render("dog cat", pairs[:2]) == "<a>dog</a> <b>cat</b>"
    assert block("Hund&nbsp;da").render("Hund da") == "Hund&nbsp;da"  # as it was read


def test_what_begins_a_line_begins_it() -> None:
    found = block("Haus<br><img>Der Hund <b>da</b><br><i></i>Katze")
    pairs = [((0, 4), (0, 5)), ((9, 13), (10, 13)), ((14, 16), (6, 9)), ((17, 22), (14, 17))]
    expected = "house<br><img><b>the</b> dog<br><i></i>cat"
    assert found.render("house\nthe dog\ncat", pairs) == expected


def test_a_reference_stands_in_its_link() -> None:
    found = block("<a href=''>[1]</a> Das Haus")
    assert found.render("[1] The house", [((8, 12), (8, 13))]) == "<a href=''>[1]</a> The house"


def test_a_link_has_a_word() -> None:
    found = block('Guten Abend <a href="">hier</a> bitte')
    assert '<a href=""></a>' not in found.render("Good evening please", [((0, 5), (0, 4)), ((6, 11), (5, 12))])


def test_what_is_wrapped_whole_is_a_text() -> None:
    assert not block("<p><b>Haus</b></p>").has_markup and not block("<i><b>Haus</b></i>").has_markup
    assert block("<b>Haus</b> alt").has_markup and block("<b>Haus</b><img>").has_markup
    assert block("<b>Haus</b>").render("house") == "<b>house</b>"


@pytest.mark.parametrize(
    "markup",
    [
        "<button><i class=x></i>&nbsp;Haus</button>",
        "<p>das <b>&nbsp;Haus&nbsp;</b></p>",
        "<p><b>&nbsp;&nbsp;Haus</b> <i>ist</i></p>",
        "<p>&nbsp;<b>Haus</b></p>",
    ],
)
def test_no_break_spaces_stay_in_their_element(markup: str) -> None:
    document = HtmlDocument.parse(markup)
    (found,) = document.blocks
    assert document.render([found.render(found.text.replace("Haus", "Heim"))]) == markup.replace("Haus", "Heim")


def test_no_space_is_put_before_what_stands_first() -> None:
    document = HtmlDocument.parse('<x id="1"/> von <x id="2"/> Dateien', MarkupOptions(xml=True))
    (found,) = document.blocks
    assert found.render(" of  files").startswith('<x id="1"/> of')


@pytest.mark.parametrize(
    ("markup", "texts"),
    [
        ("<nav><a>Start</a> <a>Über uns</a></nav>", ["Start", "Über uns"]),
        ("<button>Ja</button><button>nein</button>", ["Ja", "nein"]),
        ("<label>Vorname <input></label><label>Name <input></label>", ["Vorname", "Name"]),
        ("<span><b>Sichern</b></span><span>Ende</span>", ["Sichern", "Ende"]),
        ("<b>Summe</b><i>12 €</i>", ["Summe", "12 €"]),
        ("<b>Guten</b> <i>Morgen</i>", ["Guten Morgen"]),
        ("<b>Haus</b><b>boot</b>", ["Haus boot"]),
        ("<a>Hund</a>, <a>Katze</a>", ["Hund, Katze"]),
    ],
)
def test_links_in_a_row_are_texts_of_their_own(markup: str, texts: list[str]) -> None:
    assert [block.text for block in HtmlDocument.parse(markup).blocks] == texts


@pytest.mark.parametrize(
    ("source", "translation", "pairs", "markup"),
    [
        ("Etwa 10<sup>6</sup> Zellen", "Some 106 cells", (), "Some 10<sup>6</sup> cells"),
        (
            "<a>Haus</a><a>Hund</a> ist",
            "House dog is",
            (((0, 4), (0, 5)), ((5, 9), (6, 9)), ((10, 13), (10, 12))),
            "<a>House</a><a>dog</a> is",
        ),
        (
            "Haus (inkl. <i>Hof</i>)",
            "House (incl. yard)",
            (((0, 4), (0, 5)), ((12, 15), (13, 18)), ((15, 16), (13, 18))),
            "House (incl. <i>yard</i>)",
        ),
        ("Der Hund<sup>1</sup> bellt", "The dog barks", (((4, 8), (4, 7)),), "The dog<sup>1</sup> barks"),
        ("<b>x</b> &lt;%= a %&gt; alt", "x <%= a %> old", (), "<b>x</b> &lt;%= a %&gt; old"),
        ("<b>x</b> <%= a < b %> & alt", "x <%= a < b %> & old", (), "<b>x</b> <%= a < b %> &amp; old"),
        ("SO<sub>4</sub><sup>2−</sup> ist", "SO42− is", (), "SO<sub>4</sub><sup>2−</sup> is"),
        ("<b>H</b><i>aus</i>", "House", (), "<b>House</b><i></i>"),
        (
            "Das <b>Eins</b><b>Zwei</b> ist",
            "The database is",
            (((4, 8), (4, 12)), ((14, 17), (13, 15))),
            "The <b>database</b><b></b> is",
        ),
        ("Speichern <i></i>", "Save", (), "Save <i></i>"),
        ("Speichern<i></i>", "Save", (), "Save<i></i>"),
        ("v<sub>max</sub> ist neu", "vmax is new", (), "v<sub>max</sub> is new"),
        ("am 1<sup>er</sup> Tag", "on day 1er", (), "on day 1<sup>er</sup>"),
    ],
)
def test_markup_goes_to_its_words(
    source: str, translation: str, pairs: tuple[tuple[tuple[int, int], tuple[int, int]], ...], markup: str
) -> None:
    (block,) = HtmlDocument.parse(source, MarkupOptions()).blocks
    assert block.render(translation, pairs) == markup
