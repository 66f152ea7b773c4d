"""Sentences that go on over several subtitles are read whole, and divided among as many."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.documents.tests.documents import segments, translated
from tandem.extras.files.formats.spread import divided

WORDS = st.lists(st.text("abcäöü,.", min_size=1, max_size=10), min_size=1, max_size=30)


def subtitles(*texts: str, ending: str = "srt") -> str:
    point = "," if ending == "srt" else "."
    cues = (
        f"{number}\n00:00:{number:02}{point}000 --> 00:00:{number:02}{point}900\n{text}\n"
        for number, text in enumerate(texts, 1)
    )
    return ("" if ending == "srt" else "WEBVTT\n\n") + "\n".join(cues)


@pytest.mark.parametrize("ending", ["srt", "vtt"])
@pytest.mark.parametrize(
    ("texts", "read"),
    [
        (["Als ich\nkam,", "sah ich", "den Hund."], ["Als ich kam, sah ich den Hund."]),
        (["Ich gehe heim,", "Hans auch."], ["Ich gehe heim, Hans auch."]),
        (["Das ist gut.", "das weiß ich"], ["Das ist gut.", "das weiß ich"]),
        (["Ich liebe dich", "Du liebst mich"], ["Ich liebe dich", "Du liebst mich"]),  # of a song
        (["Und jetzt:", "alle!"], ["Und jetzt:", "alle!"]),
        (["Ich wollte...", "nur sagen"], ["Ich wollte...", "nur sagen"]),
        (["wo ist er", "wo ist sie"], ["wo ist er", "wo ist sie"]),  # in small letters anyway
        (["<i>Wir müssen", "<i>heute</i> gehen"], ["Wir müssen", '<span id="s0">heute</span> gehen']),
        (["<i>Wir müssen</i>", "<i>heute gehen.</i>"], ["Wir müssen heute gehen."]),
        (["- Wo?\n- Hier und", "dort."], ["- Wo?", "- Hier und dort."]),
        (["Er kam und", "ANNA: ging"], ["Er kam und", "ging"]),
        (["ANNA: Das Haus\nist alt.\nEVA: Ja,\ndas stimmt."], ["Das Haus ist alt.", "Ja, das stimmt."]),
        (["- Das Haus\nist alt.\n- Ja."], ["- Das Haus ist alt.", "- Ja."]),
        (["Er kam und", "12 Hunde"], ["Er kam und", "12 Hunde"]),
        (["Er kam und", "♪", "ging"], ["Er kam und", "ging"]),
        (["Er", *"abcdefg"], ["Er a b c d e", "f g"]),
    ],
)
def test_what_is_one_text(tmp_path: Path, ending: str, texts: list[str], read: list[str]) -> None:
    content = subtitles(*texts, ending=ending).encode()
    assert [one.text for one in segments(tmp_path, ending, content)] == read
    assert translated(tmp_path, ending, content) == content


@pytest.mark.parametrize("ending", ["srt", "vtt"])
def test_a_translation_is_divided_where_a_clause_ends(tmp_path: Path, ending: str) -> None:
    content = subtitles("<i>Als ich gestern\nnach Hause kam,</i>", "sah ich den Hund & die\nKatze.", ending=ending)
    new = "When I got home last night, I saw the dog & the cat."
    written = translated(tmp_path, ending, content.encode(), [new]).decode()
    sign = "&" if ending == "srt" else "&amp;"
    wanted = "<i>When I got home\nlast night,</i>", f"I saw the dog\n{sign} the cat."
    assert written == subtitles(*wanted, ending=ending)


def test_speakers_with_tags_are_apart(tmp_path: Path) -> None:
    content = subtitles("<v.laut Anna B>der hund\n<v Eva>die katze</v>", "<c.rot>ein\nhaus</c>", ending="vtt").encode()
    found = [one.text for one in segments(tmp_path, "vtt", content)]
    assert found == ["der hund", "die katze", "ein haus"]
    new = translated(tmp_path, "vtt", content, ["A very long", "b", "a house"]).decode()
    assert "<v.laut Anna B>A very long\n<v Eva>b</v>\n" in new


def test_positions_stay_and_blank_lines_are_borders(tmp_path: Path) -> None:
    content = subtitles(r"{\an8}Der Mann, der", r"{\an8}das Haus hat.", "Guten Morgen.\n \nWie geht es?\nGut?").encode()
    found = [one.text for one in segments(tmp_path, "srt", content)]
    assert found == ["Der Mann, der das Haus hat.", "Guten Morgen.", "Wie geht es? Gut?"]
    written = translated(tmp_path, "srt", content, ["A b c d", "E", "F g"]).decode()
    assert written == subtitles(r"{\an8}A b", r"{\an8}c d", "E\n \nF\ng")


def test_tags_of_substation_are_no_text(tmp_path: Path) -> None:
    content = subtitles(r"{\an8}{\i1}Guten Morgen{\i0}", r"Das ist {\b1}gut{\b0}.").encode()
    found = [one.text for one in segments(tmp_path, "srt", content)]
    assert found == ["Guten Morgen", 'Das ist <img id="o1">gut<img id="o3">.']
    assert translated(tmp_path, "srt", content) == content


@given(WORDS, st.lists(st.integers(1, 80), min_size=2, max_size=6))
def test_shares_are_the_text_and_each_has_a_word(words: list[str], sizes: list[int]) -> None:
    shares = divided(" ".join(words), sizes)
    assert len(shares) == len(sizes)
    assert " ".join(share for share in shares if share) == " ".join(words)
    assert all(shares[: len(words)])
