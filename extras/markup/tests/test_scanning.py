"""XML as it is divided and refused, and the bounds of markup."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from tandem.extras.markup import scanning
from tandem.extras.markup.html import HtmlDocument
from tandem.extras.markup.scanning import Token, scan_xml
from tandem.extras.markup.tests.test_html import is_nested, reverse, shout, tags, tidy, translated
from tandem.service.text.blocks import MarkupError, MarkupOptions


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("<r><t>eins</t><t>zwei <i>drei</i></t></r>", {}, ["eins", "zwei drei"]),
        ("Hallo <b>Welt</b>", {}, ["Hallo Welt"]),
        ("<r><t>eins</t><t>zwei</t></r>", {"outline_detection": False}, ["einszwei"]),
        ("<r><t>eins</t><t>zwei</t></r>", {"outline_detection": False, "splitting_tags": {"t"}}, ["eins", "zwei"]),
        ("<p>eins<s>zwei</s>drei</p>", {"splitting_tags": {"s"}}, ["eins", "zwei", "drei"]),
        ("<r><t>eins</t><u>zwei</u></r>", {"non_splitting_tags": {"t", "u"}}, ["einszwei"]),
        ("<r>eins <k>zwei</k> drei</r>", {"ignore_tags": {"k"}}, ["eins zwei drei"]),
        ("<r><title>ein <b>Wort</b></title></r>", {}, ["ein Wort"]),
        ("<r>a\nb</r>", {}, ["a\nb"]),
    ],
)
def test_xml_is_divided_as_asked(source: str, options: dict[str, object], expected: list[str]) -> None:
    given_options = {name: frozenset(value) if isinstance(value, set) else value for name, value in options.items()}
    document = HtmlDocument.parse(source, MarkupOptions(xml=True, **given_options))  # type: ignore[arg-type]
    assert [block.text for block in document.blocks] == expected
    assert "".join(part if isinstance(part, str) else part.raw for part in document.parts) == source


def test_xml_comes_back_as_xml() -> None:
    source = '<?xml version="1.0"?>\n<r><p a="1">ein <X id="1"/>Wort &amp; <![CDATA[<mehr>]]></p><!-- c --></r>'
    options = MarkupOptions(xml=True)
    expected = '<?xml version="1.0"?>\n<r><p a="1">EIN <X id="1"/>WORT &amp; &lt;MEHR&gt;</p><!-- c --></r>'
    assert translated(source, options=options) == expected
    ignored = MarkupOptions(xml=True, ignore_tags=frozenset({"k"}))
    assert translated("<r>ein <k>wort</k> da</r>", options=ignored).count("<k>wort</k>") == 1


@given(tidy())
def test_xml_tokens_are_the_text(text: str) -> None:
    source = text.replace("<br>", "<br/>").replace("<img>", "<img></img>")
    assert "".join(token.raw for token in scan_xml(source)) == source
    document = HtmlDocument.parse(source, MarkupOptions(xml=True))
    assert document.render([block.render(block.text) for block in document.blocks]) == source
    result = document.render([shout(block) for block in document.blocks])
    assert Counter(t.raw for t in scan_xml(result) if t.name) == Counter(t.raw for t in scan_xml(source) if t.name)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<a><b></a>", "mismatched tag in line 1"),
        ("\n<a", "line 2"),
        ("a & b", "not well-formed"),
        ("<a>&nbsp;</a>", "undefined entity"),
        ("</tandem><tandem>", "well-formed"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "well-formed"),
        ("<a>\ud800</a>", "half a character"),
        ("<a b='1' b='2'/>", "duplicate attribute"),
    ],
)
def test_what_is_no_xml_is_refused(text: str, fault: str) -> None:
    with pytest.raises(MarkupError, match=fault):
        scan_xml(text)


@pytest.mark.parametrize("xml", [False, True])
def test_depth_and_elements_are_bounded(xml: bool) -> None:
    options = MarkupOptions(xml=xml, max_depth=20, max_elements=50)
    HtmlDocument.parse("<b>" * 20 + "x" + "</b>" * 20, options)
    with pytest.raises(MarkupError, match="at most 20 elements within one another") as deep:
        HtmlDocument.parse("<b>" * 21 + "x" + "</b>" * 21, options)
    assert deep.value.value == 21
    with pytest.raises(MarkupError, match="at most 50 elements") as many:
        HtmlDocument.parse("<b>x</b>" * 51, options)
    assert many.value.value == 51


def test_elements_that_never_end_are_bounded_before_they_are_put_into_one_another() -> None:
    """A parser looks through all open elements at every tag."""
    options = MarkupOptions(max_elements=100_000)
    HtmlDocument.parse("<p><b>a" * 2_000, options)
    with pytest.raises(MarkupError, match="at most 200 elements within one another") as endless:
        HtmlDocument.parse("<p><b>a" * 15_000, options)
    assert endless.value.value == 15_000


@pytest.mark.parametrize("tag", ["</b>", "</p>", "</br>", "</x y=z>"])
def test_end_tags_that_close_nothing_are_bounded_before_any_token_is_made(
    tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = scanning._html_tokens

    def counted(one: Any, raw: str, plain: str) -> list[Token]:
        made.append(raw)
        return make(one, raw, plain)

    monkeypatch.setattr(scanning, "_html_tokens", counted)
    with pytest.raises(MarkupError, match="at most 20000 end tags") as stray:
        HtmlDocument.parse(tag * 250_000)
    assert (stray.value.value, made) == (250_000, [])
    HtmlDocument.parse(tag * 20_000)
    assert len(made) == 20_000


def test_the_deepest_markup_that_is_let_in_is_written() -> None:
    text = "x " + "<b>y " * 200 + "z" + "</b>" * 200
    assert tags(translated(text)) == tags(text)
    assert is_nested(translated(text, reverse))


def test_a_block_with_very_many_elements_is_translated_in_pieces() -> None:
    text = "<b>ein</b> wort " * 500
    document = HtmlDocument.parse(text)
    assert len(document.blocks) == 1_000
    assert translated(text) == text.replace("ein", "EIN").replace("wort", "WORT")


@pytest.mark.parametrize(
    "text",
    ["<b>" * 6_000, "</b>" * 5_000, "<" * 20_000, "<a " * 6_000, "<!--" * 5_000, "<code>" * 3_000, "&" * 20_000,
     "<b>a</b>" * 2_500, "<p translate=no>" * 1_250, "<svg>" * 4_000, "<b>a " * 150 + "</b>" * 150 + "b " * 9_000,
     "<code>a</code> " * 190 + "a " * 8_000],
)  # fmt: skip
def test_hostile_markup_is_refused_or_comes_back(text: str) -> None:
    try:
        result = translated(text, reverse)
    except MarkupError:
        return
    assert tags(result) == tags(text)
