"""Plain text, subtitles and web pages: what is read of them, and what of them never changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.documents.tests.documents import BOUNDS, segments, translated
from tandem.extras.files.bounds import Bounds, FileRefused, Segment
from tandem.extras.files.slices import cut, joined, slices_of
from tandem.service.http.error_replies import reply_for

SUBTITLES = (
    "7\r\n00:00:01,250 --> 00:00:03,999 X1:10 X2:20\r\nwo ist der\r\nbahnhof heute\r\n\r\n"
    "9\r\n01:02:03,004 --> 01:02:05,006\r\n- <i>guten</i> morgen & gruss\r\n- wie geht es?\r\n\r\n"
    "10\r\n01:02:06,000 --> 01:02:07,000\r\n{\\an8}♪ 12 ♪\r\n\r\n"
)


def test_lines_of_a_text_come_back_with_everything_around_them(tmp_path: Path) -> None:
    content = b"  wo ist der bahnhof?\r\n\r\n\t- guten morgen \n***\r123\x0cdas haus"
    assert segments(tmp_path, "txt", content) == [
        Segment("wo ist der bahnhof?"), Segment("- guten morgen"), Segment("das haus"),
    ]  # fmt: skip
    assert translated(tmp_path, "txt", content) == content
    new = translated(tmp_path, "txt", content, ["A?", "- B\nC", "D"])
    assert new == b"  A?\r\n\r\n\t- B C \n***\r123\x0cD"


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs", "Cc"))))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    assert translated(folder, "txt", text.encode()) == text.encode()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-8"])
def test_encoding_and_mark_are_kept(tmp_path: Path, encoding: str) -> None:
    content = (("\ufeff" if encoding == "utf-16-be" else "") + "größe\r\n€ 😀 wort\r\n").encode(encoding)
    assert [one.text for one in segments(tmp_path, "txt", content)] == ["größe", "€ 😀 wort"]
    assert translated(tmp_path, "txt", content) == content
    new = translated(tmp_path, "txt", content, ["taille", "mot"])
    assert new.decode(encoding).lstrip("\ufeff") == "taille\r\nmot\r\n"


WESTERN = "Wie groß ist das Haus, und wo ist die Straße?\r\n„Hier“ – für 5 €.\r\n"


@pytest.mark.parametrize("ending", ["txt", "srt", "csv"])
def test_windows_1252_is_read_and_written(tmp_path: Path, ending: str) -> None:
    head = "1\r\n00:00:01,000 --> 00:00:02,000\r\n" if ending == "srt" else ""
    content = (head + WESTERN).encode("cp1252")
    found = segments(tmp_path, ending, content)
    assert "Wie groß ist das Haus" in found[0].text
    assert translated(tmp_path, ending, content) == content
    assert translated(tmp_path, ending, content, ["é"] * len(found)).count(b"\xe9") == len(found)
    beyond = translated(tmp_path, ending, content, ["ж"] * len(found))  # which it does not have
    assert beyond.decode().count("ж") == len(found)


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\nIl a été là, à côté de l'hôtel.\n"),
        ("csv", "id;Größe\n1;5 €\n"),
        ("txt", "Café naïve résumé"),
        ("txt", "Los nºs de ¡mañana!"),
        ("txt", "São ações da irmã."),
        ("txt", "JPEG:ää käytetään"),
        ("txt", "þú ert í alþýðulýðveldinu Kína, og það var gott"),
    ],
)
def test_windows_1252_is_read_of_a_few_words_too(tmp_path: Path, ending: str, text: str) -> None:
    content = text.encode("cp1252")
    found = [one.text for one in segments(tmp_path, ending, content)]
    assert not "".join(found).isascii() and all(one in text for one in found)
    assert translated(tmp_path, ending, content) == content


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("id;name;note\n1;на;the first of them", "cp1251"),
        ("the third one of them is пио here", "cp1251"),
        ("id;name;note\n1;όχι;the first of them", "cp1253"),
        ("Das ist möglich, aber nicht hier.", "cp850"),
        ("A nő elment az erdőbe tegnap este.", "cp1250"),
        ("Viņš ir mazajā mājā kopā ar draugiem", "cp1257"),
        ("Nu am văzut pe nimeni acolo", "cp1250"),
        ("Где находится дом?", "cp1251"),
        ("Gdzie jest dom i dokąd płynie łódź?", "iso8859-2"),
        ("Żółty dom jest mały, a łódź płynie daleko.", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy v domě.", "iso8859-2"),
        ("Árvíztűrő tükörfúrógép van a házban ma is.", "cp1250"),
        ("Πού είναι ο σταθμός;", "cp1253"),
        ("Wie gro\xdf ist \x81", "latin-1"),  # a byte that windows-1252 does not have
    ],
)
def test_other_encodings_are_not_taken_for_it(tmp_path: Path, text: str, encoding: str) -> None:
    with pytest.raises(FileRefused, match="not valid UTF-8 at byte"):
        segments(tmp_path, "txt", text.encode(encoding))


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        ("größe".encode("latin-1"), 422, "not valid UTF-8 at byte 2"),
        (b"\xff\xfea", 422, "UTF-16"),
        (b"%PDF-1.7 words", 415, "named .txt, but holds a PDF document"),
        (b"{\\rtf1 words}", 415, "an RTF document"),
        (b"words\0words", 415, "U+0000 at position 5"),
        ("wörter".encode("utf-16-le"), 422, "UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, status: int, says: str) -> None:
    with pytest.raises(FileRefused) as caught:
        segments(tmp_path, "txt", content)
    assert reply_for(caught.value).status == status
    assert says in str(caught.value)


def test_subtitles_keep_numbers_times_positions_lines_and_tags(tmp_path: Path) -> None:
    content = SUBTITLES.encode("utf-8-sig")
    assert segments(tmp_path, "srt", content) == [
        Segment("wo ist der bahnhof heute"),
        Segment('- <span id="s1">guten</span> morgen &amp; gruss', markup=True),
        Segment("- wie geht es?"),
    ]
    assert translated(tmp_path, "srt", content) == content
    new = translated(
        tmp_path, "srt", content, ["where is the station", '- good <span id="s1">morning</span> &amp; bye', "- how?"]
    )
    assert new.decode("utf-8-sig").split("\r\n") == [
        "7", "00:00:01,250 --> 00:00:03,999 X1:10 X2:20", "where is", "the station", "",
        "9", "01:02:03,004 --> 01:02:05,006", "- good <i>morning</i> & bye", "- how?", "",
        "10", "01:02:06,000 --> 01:02:07,000", "{\\an8}♪ 12 ♪", "", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        ("good morning. how are you doing?", ["good morning.", "how are you doing?"]),
        ("no. i have seen him there all day.", ["no. i have seen", "him there all day."]),
        ("one two three four", ["one two", "three four"]),
        ("word", ["word"]),
    ],
)
def test_subtitles_break_where_a_sentence_ends_if_that_is_near(tmp_path: Path, new: str, lines: list[str]) -> None:
    head = "1\n00:00:01,000 --> 00:00:02,000\n"
    written = translated(tmp_path, "srt", f"{head}guten morgen.\nwie geht es?\n".encode(), [new])
    assert written.decode() == "\n".join([f"{head}{lines[0]}", *lines[1:], ""])


def test_a_translation_cannot_add_a_subtitle(tmp_path: Path) -> None:
    content = b"1\n00:00:01,000 --> 00:00:02,000\nein wort\n"
    new = translated(tmp_path, "srt", content, ["x\n\n2\n00:00:05,000 --> 00:00:06,000\ny"])
    assert len(segments(tmp_path, "srt", new)) == 1


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        ("nur worte\n", 422, "line 1"),
        ("", 415, "no subtitle"),
        ("1\n00:00:01,000 --> 00:00:02,000\nwort\n\nunsinn ohne zeit\n\n3\n00:00 -> x\nwort\n", None, ""),
        ("1\n" + "9" * 5000 + ":00:01,000 --> 00:00:02,000\nwort\n", 422, "out of bounds"),
    ],
)
def test_broken_subtitles(tmp_path: Path, content: str, status: int | None, says: str) -> None:
    if status is None:  # odd lines within a subtitle are its text
        assert segments(tmp_path, "srt", content.encode())
        return
    with pytest.raises(FileRefused) as caught:
        segments(tmp_path, "srt", content.encode())
    assert reply_for(caught.value).status == status
    assert says in str(caught.value)


PAGE = """<!DOCTYPE html>
<html lang=de><head><meta charset="utf-8"><title>das haus</title><style>p { color: red }</style></head>
<body class='x'><!-- wort --><p>wo ist <B>der</b> bahnhof &amp; heute?<P>zwei
<pre>code bleibt</pre><ul><li>guten<li>morgen</ul><script>let wort = "<p>wort</p>"</script>
</body></html>
"""


def test_a_page_comes_back_but_for_its_texts(tmp_path: Path) -> None:
    found = segments(tmp_path, "html", PAGE.encode())
    assert [one.text for one in found] == [
        "das haus", "wo ist <B>der</b> bahnhof &amp; heute?", "zwei", "guten", "morgen",
    ]  # fmt: skip
    assert [one.markup for one in found] == [False, True, False, False, False]
    assert translated(tmp_path, "html", PAGE.encode()) == PAGE.replace("lang=de", "lang=en").encode()
    new = translated(tmp_path, "html", PAGE.encode(), ["a & b", "c <B>d</b>", "e", "f", "g"]).decode()
    assert "<title>a &amp; b</title>" in new and "<p>c <B>d</b><P>e" in new
    assert new.replace("a &amp; b", "das haus").replace("c <B>d</b>", found[1].text).count("\n") == PAGE.count("\n")


def test_a_page_says_its_encoding(tmp_path: Path) -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"><p>größe'
    content = page.encode("latin-1")
    assert [one.text for one in segments(tmp_path, "html", content)] == ["größe"]
    assert translated(tmp_path, "html", content, ["weiß ж"]) == page.replace("größe", "weiß &#1078;").encode("latin-1")
    with pytest.raises(FileRefused, match="written in ebcdic"):
        segments(tmp_path, "html", b"<meta charset=ebcdic><p>wort")


def test_a_block_too_long_for_its_markup_is_cut_as_text(tmp_path: Path) -> None:
    bounds = Bounds(characters=10_000, slice_characters=100, markup_characters=50)
    content = f"<p>{'wort ' * 20}<b>fett</b></p>".encode()
    found = segments(tmp_path, "html", content, bounds)
    assert [one.markup for one in found] == [False]
    assert translated(tmp_path, "html", content, ["x"], bounds).count(b"<b>") == 1


@given(st.lists(st.tuples(st.text(min_size=1, max_size=120), st.booleans())), st.integers(1, 60), st.integers(1, 5))
def test_slices_hold_every_segment(parts: list[tuple[str, bool]], characters: int, texts: int) -> None:
    bounds = Bounds(characters=10**6, slice_characters=characters, markup_characters=200, slice_texts=texts)
    slices = list(slices_of([Segment(text, markup) for text, markup in parts], bounds))
    numbers = [number for one in slices for number in one.segments]
    assert joined(numbers, [text for one in slices for text in one.texts]) == [text for text, _ in parts]
    for one in slices:
        assert len(one.texts) <= texts
        assert one.characters <= characters or len(one.texts) == 1
        assert {parts[number][1] for number in one.segments} == {one.markup}


def test_a_long_text_is_cut_behind_sentences() -> None:
    assert cut("eins zwei. drei vier. fünf", 15) == ["eins zwei. ", "drei vier. fünf"]
    assert cut("einszweidrei", 5) == ["einsz", "weidr", "ei"]


def test_too_many_characters(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="at most 100000 characters to translate, but this one has 120000") as caught:
        list(slices_of([Segment("x" * 60_000)] * 2, BOUNDS))
    assert reply_for(caught.value).status == 413
    assert caught.value.detail == {"bound": 100_000, "value": 120_000}
