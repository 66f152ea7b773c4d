"""Files of programs' texts: what is translated of them, and that nothing of what programs read is."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from translate.storage import pypo

from tandem.extras.documents.tests.documents import segments, translated
from tandem.extras.files.tests.test_formats import in_capitals, upper

HEADER = 'msgid ""\nmsgstr "Language: de\\n"\n\n'


def test_texts_of_a_catalogue_of_keys_are_its_translations(tmp_path: Path) -> None:
    content = (
        HEADER + 'msgid "home.title"\nmsgstr "guten morgen"\n\nmsgid "home.open"\nmsgstr ""\n\n'
        'msgid "files.one"\nmsgid_plural "files.many"\nmsgstr[0] "eine datei"\nmsgstr[1] "%d dateien"\n'
    )
    new = in_capitals(tmp_path, "po", content.encode()).decode()
    found = {unit.source: unit.target for unit in pypo.pofile.parsestring(new.encode()).units}
    assert found["home.title"] == "GUTEN MORGEN" and found["home.open"] == ""
    assert found["files.one"].strings == ["EINE DATEI", "%d DATEIEN"] and "Language: en" in new


def test_a_catalogue_of_keys_in_the_target_language_stays(tmp_path: Path) -> None:
    content = HEADER.replace("de", "en") + '#, fuzzy\nmsgid "home.title"\nmsgstr "good"\n\nmsgid "a.b"\nmsgstr ""\n'
    assert segments(tmp_path, "po", content.encode()) == []
    assert translated(tmp_path, "po", content.encode()) == content.encode()


def test_flags_of_obsolete_messages_are_theirs(tmp_path: Path) -> None:
    obsolete = '#, fuzzy\n#~ msgid "alt"\n#~ msgstr "old"\n\n'
    content = HEADER.replace("de", "en") + f'{obsolete}msgid "haus"\nmsgstr "house"\n\n{obsolete}#, c-format\n'
    (found,) = segments(tmp_path, "po", f'{content}msgid "hund"\nmsgstr ""\n'.encode())
    assert found.text == "hund"
    new = translated(tmp_path, "po", f'{content}msgid "hund"\nmsgstr ""\n'.encode(), ["dog"]).decode()
    assert new == f'{content}msgid "hund"\nmsgstr "dog"\n'


def test_a_name_among_messages_makes_no_catalogue_of_keys(tmp_path: Path) -> None:
    content = HEADER + 'msgid "guten morgen"\nmsgstr "bonjour"\n\nmsgid "README.md"\nmsgstr "LISEZMOI.md"\n'
    first, *_ = segments(tmp_path, "po", content.encode())
    assert first.text == "guten morgen"


@pytest.mark.parametrize(("charset", "word"), [("ISO-8859-1", "größe"), ("KOI8-R", "дом"), ("UTF-8", "größe €")])
def test_a_catalogue_is_read_as_it_says(tmp_path: Path, charset: str, word: str) -> None:
    content = f'msgid ""\nmsgstr "Content-Type: text/plain; charset={charset}\\n"\n\nmsgid "{word}"\nmsgstr ""\n'
    new = translated(tmp_path, "po", content.encode(charset), ["Œuvre"]).decode()
    header, entry = content.replace(charset, "UTF-8").split("\n\n")
    assert new == f"{header}\n\n{entry}".replace('msgstr ""\n', 'msgstr "Œuvre"\n')


FORMS = [
    ("{n, plural, =0 {keine} one {# datei} other {# dateien von {name}}}",
     "{n, plural, =0 {KEINE} one {# DATEI} other {# DATEIEN VON {name}}}"),
    ("{n, plural, offset:1 one{er} other{sie und #}}", "{n, plural, offset:1 one{ER} other{SIE UND #}}"),
    ("hier {who, select, male {sein} other {ihr # {n, plural, other {kind}}}} haus",
     "HIER {who, select, male {SEIN} other {IHR # {n, plural, other {KIND}}}} HAUS"),
    ("{n, plural, one {<p>hund</p>} other {<p># hunde</p>}}", "{n, plural, one {<p>HUND</p>} other {<p># HUNDE</p>}}"),
    ("{n, selectordinal, other {#.}}", "{n, selectordinal, other {#.}}"),
    ("{n, plural, one {nie}", "{n, plural, one {nie}"),  # does not end
    ("{n, plural, other {'{'x'}' da}}", "{n, plural, other {'{'X'}' DA}}"),
    ("drücke <1>hier</1> <0/> oder <2>da", "DRÜCKE <1>HIER</1> <0/> ODER <2>DA"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FORMS)
@pytest.mark.parametrize("ending", ["json", "po", "xliff", "csv"])
def test_forms_are_translated_one_by_one(tmp_path: Path, ending: str, text: str, expected: str) -> None:
    quoted = text.replace("<", "&lt;").replace(">", "&gt;")
    writing = {
        "json": json.dumps({"a": text}, ensure_ascii=False), "csv": f'sep=|\n{text}\n',
        "po": f'{HEADER}msgid "wort"\nmsgstr ""\n\nmsgid "{text}"\nmsgstr ""\n',
        "xliff": unit(f"<source>{quoted}</source>"),
    }  # fmt: skip
    new = in_capitals(tmp_path, ending, writing[ending].encode()).decode()
    changed = expected if ending != "xliff" else expected.replace("<", "&lt;").replace(">", "&gt;")
    assert changed in new or (expected == text and ending == "po")


LAYOUTS = [
    "nutze %s\n  -a, --alle      alle dateien\n\n      --ende\tdas ende",
    "{name}:\tdas haus   {n}",
    "\n   so geht {x} hier:\n\n    a\n    {y} b\n",
]


@pytest.mark.parametrize("text", LAYOUTS)
@pytest.mark.parametrize("ending", ["json", "po", "xliff"])
def test_lines_with_what_programs_fill_in_stay_indented_and_in_columns(tmp_path: Path, ending: str, text: str) -> None:
    writing = {
        "json": json.dumps({"a": text}),
        "po": f'{HEADER}msgid {json.dumps(text)}\nmsgstr ""\n',
        "xliff": unit(f"<source>{text}</source>"),
    }
    (one,) = segments(tmp_path, ending, writing[ending].encode())
    spaced = " ".join(upper(one.text).split())  # as translations of HTML are
    new = translated(tmp_path, ending, writing[ending].encode(), [spaced]).decode()
    found = {
        "json": lambda: json.loads(new)["a"],
        "po": lambda: pypo.pofile.parsestring(new.encode()).units[1].target,
        "xliff": lambda: re.findall("<target[^>]*>([^<]*)</target>", new)[0],
    }[ending]()
    assert found.upper() == text.upper() and found != text


def test_an_apostrophe_of_a_translation_quotes_nothing(tmp_path: Path) -> None:
    content = json.dumps({"a": "{n, plural, other {von {name}}}"}).encode()
    new = translated(tmp_path, "json", content, ["d'<code id=\"o1\">{name}</code>, it's"])
    assert json.loads(new) == {"a": "{n, plural, other {d''{name}, it's}}"}


def unit(inside: str, attributes: str = "") -> str:
    file = '<xliff version="1.2"><file source-language="de" target-language="en" original="a" datatype="plaintext">'
    return f'{file}<body><trans-unit id="1"{attributes}>{inside}</trans-unit></body></file></xliff>'


def mrk(number: int, text: str | None) -> str:
    return f'<mrk mtype="seg" mid="{number}"' + ("/>" if text is None else f">{text}</mrk>")


SEGMENTED = (
    "<source>eins zwei. drei vier.</source>"
    "<seg-source>" + mrk(1, 'eins <g id="1">zwei.</g>') + " " + mrk(2, "drei vier.") + "</seg-source>"
)
ONE, TWO = mrk(1, 'EINS <g id="1">ZWEI.</g>'), mrk(2, "DREI VIER.")
DONE = mrk(1, "one two.")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("", f"{ONE} {TWO}"),
        (f"<target>{mrk(1, None)} {mrk(2, '')}</target>", f"{ONE} {TWO}"),
        (f"<target>{DONE} {mrk(2, None)}</target>", f"{DONE} {TWO}"),
        (f"<target>{DONE}</target>", f"{DONE}{TWO}"),
        (f'<target state="new">{DONE} {mrk(2, None)}</target>', f"{ONE} {TWO}"),
    ],
)
def test_segments_of_translation_tools(tmp_path: Path, target: str, expected: str) -> None:
    new = in_capitals(tmp_path, "xliff", unit(SEGMENTED + target).encode()).decode()
    assert new == unit(f'{SEGMENTED}<target state="needs-review-translation">{expected}</target>')


def test_segments_that_are_finished_stay(tmp_path: Path) -> None:
    content = unit(f"{SEGMENTED}<target>{DONE} {mrk(2, 'three')}</target>", ' approved="yes"').encode()
    assert segments(tmp_path, "xliff", content) == []
    assert translated(tmp_path, "xliff", content) == content


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('hallo <x id="START_TAG_B" ctype="x-b"/>welt<x id="CLOSE_TAG_B" ctype="x-b"/>, <x id="INTERPOLATION"/>.',
         'HALLO <x id="START_TAG_B" ctype="x-b"/>WELT<x id="CLOSE_TAG_B" ctype="x-b"/>, <x id="INTERPOLATION"/>.'),
        ('<x id="START_LINK_1"/>eins<x id="CLOSE_LINK"/> zwei', '<x id="START_LINK_1"/>EINS<x id="CLOSE_LINK"/> ZWEI'),
        ('a <mrk mtype="protected">so nicht</mrk> haus', 'A <mrk mtype="protected">so nicht</mrk> HAUS'),
        ('a <bpt id="1">{</bpt>wort<ept id="1">}</ept> b', 'A <bpt id="1">{</bpt>WORT<ept id="1">}</ept> B'),
        ('a <g id="2">b <bpt id="1">{</bpt>c</g> d<ept id="1">}</ept> e',
         'A <g id="2">B <bpt id="1">{</bpt>C</g> D<ept id="1">}</ept> E'),
        ('{V, plural, =1 {ein wort} other {<x id="I"/> worte &amp; mehr}}',
         '{V, plural, =1 {EIN WORT} other {<x id="I"/> WORTE &amp; MEHR}}'),
    ],
)  # fmt: skip
def test_marks_of_tools_stay_around_their_words(tmp_path: Path, source: str, expected: str) -> None:
    new = in_capitals(tmp_path, "xliff", unit(f"<source>{source}</source>", ' approved="yes"').encode()).decode()
    filled = f'<source>{source}</source><target state="needs-review-translation">{expected}</target>'
    assert new == unit(filled, ' approved="no"')


@pytest.mark.parametrize(
    "inside", ["<source/>", "<source></source>", '<source/><target state="new"/>', "<note>x</note>"]
)
def test_a_unit_without_a_text_stays(tmp_path: Path, inside: str) -> None:
    content = unit(inside).encode()
    assert segments(tmp_path, "xliff", content) == []
    assert translated(tmp_path, "xliff", content) == content


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ('<x id="START_TAG_B"/>', '<x id="CLOSE_TAG_B"/>'),
        ('<bpt id="1"/>', '<ept id="1"/>'),
        ('<bpt id="1" rid="3">{</bpt>', '<ept id="2" rid="3">}</ept>'),
        ('<bx id="1" rid="3"/>', '<ex rid="3" id="2"/>'),
        ('<sc id="1"/>', '<ec startRef="1"/>'),
    ],
)
def test_what_begins_and_ends_a_mark_is_one_for_the_translation(tmp_path: Path, begin: str, end: str) -> None:
    content = unit(f"<source>a {begin}welt{end} b</source>").encode()
    (found,) = segments(tmp_path, "xliff", content)
    assert found.text == 'a <span id="s1">welt</span> b'
    new = translated(tmp_path, "xliff", content, ['B <span id="s1">WORLD</span>']).decode()
    assert f">B {begin}WORLD{end}</target>" in new


@pytest.mark.parametrize(
    "inside",
    [
        SEGMENTED,
        f"{SEGMENTED}<target>{DONE} {mrk(2, None)}</target>",
        '<source>hallo <x id="START_TAG_B"/>du<x id="CLOSE_TAG_B"/></source><alt-trans><target>x</target></alt-trans>',
        "<source>ein wort</source><target/>",
    ],
)
@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_a_prefix_of_all_elements_changes_nothing(tmp_path: Path, inside: str, version: str) -> None:
    content = unit(inside)
    if version == "2.0":
        content = re.sub(r"(</?)trans-unit", r"\g<1>segment", content.replace('"1.2"', '"2.0"'))

    def prefixed(content: str) -> str:
        return re.sub(r"(</?)(?=\w)", r"\g<1>x:", content).replace("<x:xliff", '<x:xliff xmlns:x="urn:x"')

    new = in_capitals(tmp_path, "xliff", prefixed(content).encode()).decode()
    assert new == prefixed(in_capitals(tmp_path, "xliff", content.encode()).decode())
    assert new.count("<x:target") > content.count("<target") or "<target" in content


ARB = """{
  "@@locale": "de",
  "title": "guten morgen",
  "@title": {"type": "text", "description": "eine notiz", "placeholders": {"n": {"example": "ein wort"}}},
  "list": ["eins, zwei", {"a": "drei: vier"}]
}
"""


@pytest.mark.parametrize("ending", ["arb", "json"])
def test_flutters_resources(tmp_path: Path, ending: str) -> None:
    new = in_capitals(tmp_path, ending, ARB.encode()).decode()
    upper = (("guten morgen", "GUTEN MORGEN"), ("eins, zwei", "EINS, ZWEI"), ("drei: vier", "DREI: VIER"))
    expected = ARB.replace('"de"', '"en"')
    for old, text in upper:
        expected = expected.replace(old, text)
    assert new == expected


def test_markup_without_spaces_is_text_and_a_type_is_none(tmp_path: Path) -> None:
    content = '{"a": "<ul><li>eins</li><li>zwei</li></ul>", "b": "List<String>", "c": "<b>camelCase</b>"}'
    assert [one.text for one in segments(tmp_path, "json", content.encode())] == [
        "eins",
        "zwei",
    ]


BLOCKS = [
    ("<p>der hund</p>\n<ul>\n  <li>ein <b>rotes</b> %s</li>\n  <li>zwei</li></ul>",
     ["der hund", 'ein <span id="s1">rotes</span> <code id="o5">%s</code>', "zwei"]),
    ("<table><tr><td>haus</td><td class='x'>hund</td></tr></table>", ["haus", "hund"]),
    ("das <UL><li>haus<li>{n} hunde</UL> da", ["das", "haus", '<code id="o0">{n}</code> hunde', "da"]),
    ("nutze <menu> so <option>", ['nutze <img id="o1"> so']),
    ("hier</p>", ["hier"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "texts"), BLOCKS)
@pytest.mark.parametrize("ending", ["json", "po", "csv", "xliff"])
def test_blocks_of_html_in_a_string_are_texts_of_their_own(
    tmp_path: Path, ending: str, text: str, texts: list[str]
) -> None:
    quoted = text.replace("<", "&lt;").replace(">", "&gt;")
    writing = {
        "json": json.dumps({"a": text}),
        "csv": f'sep=|\n"{text}"\n',
        "po": f'{HEADER}msgid {json.dumps(text)}\nmsgstr ""\n',
        "xliff": unit(f"<source>{quoted}</source>"),
    }
    content = writing[ending].encode()
    found = [one.text for one in segments(tmp_path, ending, content)]
    assert found == texts
    new = html.unescape(in_capitals(tmp_path, ending, content).decode().replace('"\n"', "").replace("\\n", "\n"))
    assert re.sub(r"(?<![</%{'])\b[a-z]+\b(?![='}])", lambda word: word[0].upper(), text) in new


def test_a_string_of_html_comes_back(tmp_path: Path) -> None:
    content = json.dumps({"a": BLOCKS[0][0]}).encode()
    assert translated(tmp_path, "json", content) == content


def test_names_of_icons_and_the_like_stay(tmp_path: Path) -> None:
    named = '"icon": "fa-home", "class": ["btn-big x-y"], "css": "fa fa-x", "style": "color: red; top:0"'
    content = f'{{{named}, "title": "fa-home", "id": "ein wort", "icon-2": "die-maus"}}'
    found = [one.text for one in segments(tmp_path, "json", content.encode())]
    assert found == ["fa-home", "ein wort", "die-maus"]
    assert translated(tmp_path, "json", content.encode()) == content.encode()


def test_what_an_entry_is_stays(tmp_path: Path) -> None:
    content = (
        '{"type": "absatz", "lang": "de", "content": [{"nodeType": "text-x", "text": "hund", "align": "links"}],'
        ' "style": "fett", "kind": "kind", "role": "Die Rolle", "dir": "nach links", "name": "absatz"}'
    )
    found = [one.text for one in segments(tmp_path, "json", content.encode())]
    assert found == ["hund", "kind", "Die Rolle", "nach links", "absatz"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("de-AT", "x-Achse"),
        ("zh-Hans", "E-Mail"),
        ("MMM D, YYYY", "Hamm"),
        ("dddd, D. MMMM YYYY", "a day"),
        ("h:mm a", "Mass a"),
        ("MM/dd", "Add"),
        ("Do MMMM", "Do"),
    ],
)
@pytest.mark.parametrize("ending", ["json", "csv"])
def test_codes_of_languages_and_patterns_of_dates_stay(tmp_path: Path, ending: str, code: str, words: str) -> None:
    writing = {"json": json.dumps([code, words]), "csv": f"sep=|\n{code}|{words}\n"}
    found = [one.text for one in segments(tmp_path, ending, writing[ending].encode())]
    assert words in found and code not in found


@pytest.mark.parametrize("content", ['[{}, {{"x": "du, da"}}]', '{{"a.b": {}, "c": {{"x": "du, da"}}}}'])
def test_messages_of_formatjs(tmp_path: Path, content: str) -> None:
    entry = '{"id": "karte", "description": "eine notiz", "defaultMessage": "guten morgen"}'
    found = [one.text for one in segments(tmp_path, "json", content.format(entry).encode())]
    assert found == ["guten morgen", "du, da"]


def test_messages_of_browser_extensions(tmp_path: Path) -> None:
    entry = '{"message": "%s", "description": "eine notiz", "placeholders": {"a": {"content": "$1", "example": "x y"}}}'
    content = '{"greeting": %s, "bye": {"message": "ade du"}}' % (entry % "guten morgen")
    new = in_capitals(tmp_path, "json", content.encode()).decode()
    assert new == content.replace("guten morgen", "GUTEN MORGEN").replace("ade du", "ADE DU")
    other = '{"a": {"message": "ein wort", "description": "zwei worte"}, "b": "drei worte"}'
    assert len(segments(tmp_path, "json", other.encode())) == 3


def test_empty_names_and_nested_lists(tmp_path: Path) -> None:
    content = '{"": "ein wort", "a": [["zwei worte"], {"": ["drei worte", 1]}], "b": "vier, worte"}'
    assert in_capitals(tmp_path, "json", content.encode()).decode() == content.upper().replace('"A"', '"a"').replace(
        '"B"', '"b"'
    )


def test_trados_files_are_xliff_with_segments(tmp_path: Path) -> None:
    body = (
        '<?xml version="1.0" encoding="utf-8"?><xliff xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" version="1.2">'
        '<file source-language="de" target-language="en"><body><trans-unit id="a"><source>haus. {}</source><seg-source>'
        '<mrk mtype="seg" mid="1">haus.</mrk> <mrk mtype="seg" mid="2">{}</mrk></seg-source><target>'
        '<mrk mtype="seg" mid="1">{}</mrk> <mrk mtype="seg" mid="2">{}</mrk></target>'
        '<sdl:seg-defs><sdl:seg id="1" conf="{}"/></sdl:seg-defs></trans-unit></body></file></xliff>'
    )
    content = body.format("alt", "alt", "house.", "", "Draft")
    wanted = body.format("alt", "alt", "house.", "ALT", "Draft")
    assert in_capitals(tmp_path, "sdlxliff", content.encode()).decode() == wanted.replace(
        "<target>", '<target state="needs-review-translation">'
    )
