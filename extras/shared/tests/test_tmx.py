"""Translation memories as TMX: what other tools write, what is refused, and out and in again."""

from __future__ import annotations

import io

import pytest
from translate.storage.tmx import tmxfile

from tandem.extras.shared.tmx import TmxError, TmxPair, read_tmx, read_units, write_tmx

HEAD = '<tmx version="1.4"><header srclang="{}"/><body>'
UNIT = '<tu><tuv xml:lang="de-AT"><seg>{}</seg></tuv><tuv xml:lang="en"><seg>house</seg></tuv></tu></body></tmx>'
FRENCH = '<tuv lang="fr"><note>n</note><seg>maison</seg></tuv>'


def read(text: str, encoding: str = "utf-8", source: str = "", target: str = "") -> list[TmxPair]:
    return list(read_tmx(io.BytesIO(text.encode(encoding)), source, target))


def test_round_trip() -> None:
    pairs = [
        (TmxPair("de", "en", 'Über <b>&amp;</b> "1 < 2"\t😀', "over & under"), 0.0),
        (TmxPair("en", "pt-br", "line\nline", "linha"), 1e9),
    ]
    written = "".join(write_tmx(pairs, "1.0"))
    assert read(written) == [pair for pair, _ in pairs]
    assert 'changedate="20010909T014640Z"' in written
    for number, (pair, _) in enumerate(pairs):  # as another program reads it
        unit = tmxfile.parsestring(written.encode(), pair.source, pair.target).units[number]
        assert (unit.source, unit.target) == (pair.text, pair.translation)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_what_other_tools_write(encoding: str) -> None:
    """A document type of no content, another encoding, several targets, older attributes, and inline codes."""
    segment = 'ein <bpt i="1">&lt;b&gt;</bpt>grünes<ept i="1"/> <hi>Haus<ph/></hi>!<!-- so -->'
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">' + HEAD.format("de") + UNIT
    text = text.format(segment).replace("</tu>", FRENCH + "</tu>")
    german = "ein grünes Haus!"
    assert read(text, encoding) == [TmxPair("de-AT", "en", german, "house"), TmxPair("de-AT", "fr", german, "maison")]
    assert read(text, encoding, target="fr-CA") == [TmxPair("de-AT", "fr", german, "maison")]
    assert read(text, encoding, source="en", target="de") == [TmxPair("en", "de-AT", "house", german)]
    assert read(text, encoding, source="cs") == []


@pytest.mark.parametrize(
    ("variants", "target"),
    [
        ("", "en"),
        ("<tuv xml:lang='de'><seg>Haus</seg></tuv>", ""),
        ("<tuv xml:lang='en'><seg>house</seg></tuv>", ""),
        ("<tuv xml:lang='de'><seg>Haus</seg></tuv><tuv xml:lang='fr'><seg>maison</seg></tuv>", "en"),
        ("<tuv xml:lang='de'><seg>Haus</seg></tuv><tuv xml:lang='*all*'><seg>house</seg></tuv>", "en"),
        ("<tuv xml:lang='de'><seg>Haus</seg></tuv><tuv><seg>house</seg></tuv>", ""),
        ("<tuv xml:lang='de'><seg>Haus</seg></tuv><tuv xml:lang='en'/>", "en"),
    ],
    ids=["empty", "source", "target", "other", "all", "none", "segment"],
)
def test_a_unit_without_a_pair_is_told(variants: str, target: str) -> None:
    text = HEAD.format("de") + f"<tu>{variants}</tu>" + UNIT.format("Haus")
    assert list(read_units(io.BytesIO(text.encode()), "", target)) == [[], [TmxPair("de-AT", "en", "Haus", "house")]]


FILE = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
BOMB = '<!DOCTYPE tmx [<!ENTITY a "{}"><!ENTITY b "&a;&a;&a;&a;">]>'.format("x" * 1000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB + HEAD.format("de") + UNIT.format("&b;"), "entities"),
        (FILE + HEAD.format("de") + UNIT.format("&a;"), "entities"),
        ('<!DOCTYPE tmx SYSTEM "tmx14.dtd">' + HEAD.format("de") + UNIT.format("&a;"), "entity"),
        ('<?xml version="1.0" encoding="utf-16"?>' + HEAD.format("de") + UNIT.format("ü"), "cannot be read as XML"),
        (HEAD.format("de") + UNIT.format("Haus")[:-9], "cannot be read as XML"),
        (HEAD.format("de") + UNIT.format("x" * 10_000_001), "cannot be read as XML"),
        ("<a>" * 300, "must be TMX"),
        ("<html/>", "must be TMX"),
        ("", "cannot be read as XML"),
        (HEAD.format("de") + "<note/>" * 10_000 + UNIT.format("Haus"), "10000 elements"),
        (HEAD.format("*all*") + UNIT.format("Haus"), "source language"),
        ('<tmx version="1.4"><header srclang="de"/></tmx>', "has no <body>"),
        (HEAD.format("de").replace("<body>", "") + UNIT.format("Haus").replace("</body>", ""), "has no <body>"),
    ],
    ids=["bomb", "file", "undefined", "encoding", "cut", "huge", "deep", "html", "nothing", "elements", "no-source",
         "no-body", "no-body-but-units"],
)  # fmt: skip
def test_refused(text: str, message: str) -> None:
    with pytest.raises(TmxError, match=message):
        read(text)
