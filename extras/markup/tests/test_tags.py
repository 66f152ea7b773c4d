"""Pairs of tags and of emphasis in a plain text are inline markup; everything else of it stays text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.markup.inline import MarkupBlock
from tandem.extras.markup.tags import read_tags
from tandem.models.bundle import Bundle
from tandem.service.text.spans import Span
from tests.service.support import served


def block_of(text: str) -> MarkupBlock | None:
    document = read_tags(text)
    return document.blocks[0] if document else None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("das <b>haus</b> ist", "das haus ist"),
        ("das <1>haus</1> ist <0>alt</0>", "das haus ist alt"),
        ("das **haus** ist *alt* und ~~neu~~ und _gut_", "das haus ist alt und neu und gut"),
        ("**das <i>haus</i>** ist", "das haus ist"),
        ("[b]das[/b] [url=https://a.de/b?c=d]haus[/url] [quote=Anna]ist[/quote]", "das haus ist"),
        ('[caption id="1" w=5]das[/caption] haus', "das haus"),
        ("[b]das <b>haus[/b] ist</b>", "das <b>haus ist</b>"),
        ('<a href="x?a=1&b=2">a & b</a> &lt;', "a & b &lt;"),  # entities are none
        ("<b>das</b> <i>haus", "das <i>haus"),
        ("<b>das <i>haus</b> ist</i>", "das <i>haus ist</i>"),
        ('[Das](https://a.de/b_(c)) haus [ist **so**](x.md "Titel"), [a](#b)', "Das haus ist so, a"),
        ("- [x] [das](a.html)\n- [b](b.html)[b]haus[/b]", "- [x] das\n- bhaus"),
        ("{% trans %}das{% endtrans %} {{#if x}}haus{{/if}} {{< note >}}ist{{< /note >}}", "das haus ist"),
        ("{%- if a %}das{% else %}haus{% endif -%}, {{#b}} so {{/b}}", "das{% else %}haus, {{#b}} so {{/b}}"),
        (
            "''das'' '''haus''', '''''ist''''', it''s '' so '' ''{0}'' und 5'' ''",
            "das haus, ist, it''s '' so '' ''{0}'' und 5'' ''",
        ),
        ("```\na **b** c _d_\n```\n**das** haus", "```\na **b** c _d_\n```\ndas haus"),
        ("<b>eins</b>\r\n  *zwei*\ndrei", "eins\r\n  zwei\ndrei"),
    ],
)
def test_pairs_are_markup(text: str, read: str) -> None:
    block = block_of(text)
    assert block is not None and block.text == read
    assert block.render(read) == text


@pytest.mark.parametrize(
    "text",
    [
        "das haus",
        "5 < 10 und 10 > 5, 2 * 3 * 4",
        "das <b>haus",
        "das <br/> haus <x id='1'/>",
        "<b>eins\nzwei</b>",
        "Hallo *|FNAME|*, `<b>so</b>` und `*so*`",
        "snake_case_name und a*b*c, __init__",
        "List<String> und </b>",
        "Der Befehl <code>git status</code> ist gut",
        "feld[i](x.y), ![bild](a.png), [so](nicht) und [so] (a.b)",
        "```\n**x**\n```",
        "{{#a}}so\nja{{/a}}, {% so %}{{name}}",
        "siehe [1] und [a], [b]das haus, [*] und [/b",
    ],
)
def test_what_is_no_pair_is_text(text: str) -> None:
    assert read_tags(text) is None


def test_protected_tags_are_no_markup() -> None:
    text = "<b>das</b> <i>haus</i>"
    document = read_tags(text, [Span(0, 3), Span(6, 10)])
    assert document is not None and document.blocks[0].text == "<b>das</b> haus"
    text = '<a href="https://a.de">das</a> haus'
    document = read_tags(text, [Span(9, 21)])  # an address within a tag is a part of it
    assert document is not None and document.blocks[0].text == "das haus"


def test_tags_go_to_the_words_of_theirs_and_nothing_is_escaped() -> None:
    block = block_of("das *alte* haus & <b>mein</b> hund")
    assert block is not None and block.text == "das alte haus & mein hund"
    pairs = [((0, 3), (0, 3)), ((4, 8), (10, 13)), ((9, 13), (4, 9)), ((16, 20), (16, 18)), ((21, 25), (19, 22))]
    assert block.render("the house old & my dog", pairs) == "the house *old* & <b>my</b> dog"


@given(
    st.lists(
        st.sampled_from(
            ["<b>", "</b>", "<i x='1'>", "</i>", "[b]", "[/b]", "*", "**", "_", " ", "haus", "&", "\n", "~~"]
        )
    )
)
def test_any_tags_come_back_from_a_translation(parts: list[str]) -> None:
    """Whatever is translated, each pair once, its start before its end."""
    text = "".join(parts)
    block = block_of(text)
    if block is not None:
        assert block.render(block.text) == text
        written = block.render("ein ganz anderer satz")
        tags = [node.opening for node in block.nodes]
        assert all(tag in written for tag in tags)
        assert written.count("<b>") == written.count("</b>")


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["das <b>haus</b> & <1>es</1>.\nwo *ist* es?", "<b>das haus</b>\r\n{x} &lt;"])
async def test_it_is_read_without_and_comes_back_with(bundles: dict[str, Bundle], text: str) -> None:
    async with served(bundles) as service:
        assert (await service.translate(text)).json()["translatedText"] == text
        assert not any("b>" in read or "*" in read for read in service.read_texts)
        body = (await service.translate("das <b>haus</b>", protect=["placeholders"])).json()
    assert body["translatedText"] == "das <b>haus</b>"
    assert [one["text"] for one in body["protected"]] == ["<b>", "</b>"]
