"""Markdown and its dialects: what is a text of its own, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.documents.tests.documents import segments, translated
from tandem.extras.files.tests.test_formats import in_capitals


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("das haus.  \nder hund.\n", ["das haus.", "der hund."]),
        ("das haus\\\nder hund\n", ["das haus", "der hund"]),
        ("> das haus  \n> der *hund*\n", ["das haus", 'der <span id="s1">hund</span>']),
        ("| der hund<br>die katze |\n|-|\n| a<BR />b |\n", ["der hund", "die katze", "a", "b"]),
        ("> [!NOTE]\n> der hund\n> bellt\n", ["der hund bellt"]),
        ("> [!tip]- ein titel\n> der hund\n", ["ein titel", "der hund"]),
        ('!!! note "das haus"\n    der hund\n', ["das haus", "der hund"]),
        ("??? warning\n    der hund\n", ["der hund"]),
        ('=== "der reiter"\n\ntext\n', ["der reiter", "text"]),
        (
            '=== "a"\n\n    der hund\n\n    ??? tip\n\n        die katze\n\n    x\n\ny\n',
            ["a", "der hund", "die katze", "x", "y"],
        ),
        ('=== "a"\n\n        so.bleibt()\n\n    b\n', ["a", "b"]),
        ("!!! note\n\n    ```\n    so\n    ```\n\n    | a |\n    |---|\n    | b |\n", ["a", "b"]),
        ("## das haus {#haus .x}\n", ["das haus"]),
        ("{{< note >}}\nder hund\n{{< /note >}}\n", ["der hund"]),
        ("{% hint %}\nder hund\n{% endhint %}\n", ["der hund"]),
        ("das haus\n:   der hund\n    bellt\n", ["das haus", "der hund bellt"]),
        ("das haus\n: der hund\n\n    die katze\n", ["das haus", "der hund", "die katze"]),
        (
            "x[^1] y\n\n[^1]: der hund\n    bellt\n[^b]: die katze schläft\n\n    noch ein satz\n\n        code\n",
            ['x<img id="o1"> y', "der hund bellt", "die katze schläft", "noch ein satz"],
        ),
        ("(das-haus)=\n# der hund\n", ["der hund"]),
        (
            "das ![[haus.png]] [[haus#garten|hier]] da^[eine notiz].\n",
            ['das <code id="o1">![[haus.png]]</code> <img id="o3"> da<code id="o5">^[eine notiz]</code>.'],
        ),
        ("*[html]: eine sprache\n*[w3c e]:  ein *gremium*\n", ["eine sprache", 'ein <span id="s1">gremium</span>']),
        ("~~alt~~ **neu**\n", ['<span id="s0">alt</span> <span id="s4">neu</span>']),
        (r"die formel \(a_1*b\) in \ref{fig:a}, \*so\*" + "\n", ['die formel <img id="o1"> in <img id="o3">, *so*']),
        (
            "drück <kbd>strg</kbd> + <KBD class=x>c</KBD>\n",
            ['drück <code id="o1">strg</code> + <code id="o3">c</code>'],
        ),
        ("drück ++strg+c++\n", ['drück <code id="o1">++strg+c++</code>']),
        ("**das haus  \nder hund** x\n", ['<span id="s0">das haus  <img id="o3">der hund</span> x']),
        ("<details>\n<summary>mehr</summary>\n\nder hund\n\n</details>\n", ["mehr", "der hund"]),
        ('<h1 align="center">das <b>haus</b></h1>\n\n<!-- so -->\n', ["das <b>haus</b>"]),
        ("<pre>\nder hund\n</pre>\n\n- <div>katze</div>\n", []),
        ("das ![alte haus](a.png 'x') hier\n", ['das <img id="o1"> hier', "alte haus"]),
        ("![ein bild][a] ![a] ![*so*](b)\n\n[a]: a.png\n", ["ein bild"]),
        ("| ![a b](c.png) |\n|-|\n", ["a b"]),
        ("siehe [das *haus*]  \n[a]: x\n\n[das *haus*]: y\n", None),
    ],
)
def test_texts_and_what_stands_between_them(tmp_path: Path, page: str, texts: list[str] | None) -> None:
    found = [one.text for one in segments(tmp_path, "md", page.encode())]
    assert texts is None or found == texts
    assert translated(tmp_path, "md", page.encode()) == page.encode()
    new = in_capitals(tmp_path, "md", page.encode()).decode()
    joined = page.lower().replace("hund\n> bellt", "hund bellt").replace("hund\n    bellt", "hund bellt")
    assert new.lower() == joined or texts is None


def test_links_within_a_page_follow_its_headings(tmp_path: Path) -> None:
    page = "- [a](#das-haus) [b](#das-haus-1) [c](#uber-uns) [d](#über-uns) [e](#%C3%BCber-uns) [f](#anderswo)\n"
    page += "\n# Das Haus\n\n## Über *uns*!\n\n## Das Haus\n\n<a href='#das-haus'>x</a> [g](b.md#das-haus)\n"
    texts = [
        one.text.replace("Das Haus", "The House").replace("Über", "About")
        for one in segments(tmp_path, "md", page.encode())
    ]
    new = translated(tmp_path, "md", page.encode(), texts).decode()
    assert new.splitlines()[0] == (
        "- [a](#the-house) [b](#the-house-1) [c](#about-uns) [d](#about-uns) [e](#about-uns) [f](#anderswo)"
    )
    assert "href='#the-house'" in new and "b.md#das-haus" in new
    assert translated(tmp_path, "md", page.encode()).decode() == page


def test_signs_of_dialects_stay_as_they_are(tmp_path: Path) -> None:
    page = '!!! note "das haus"\n    wort\n\n> [!NOTE]\n> h~2~o und x^2^\n'
    expected = '!!! note "DAS HAUS"\n    WORT\n\n> [!NOTE]\n> H~2~O UND X^2^\n'
    assert in_capitals(tmp_path, "md", page.encode()).decode() == expected


def test_what_stands_for_a_picture_ends_where_it_ended(tmp_path: Path) -> None:
    page = b"| ![rot](a.png) |\n|-|\n"
    assert translated(tmp_path, "md", page, ["red [or] a | b"]) == b"| ![red \\[or\\] a \\| b](a.png) |\n|-|\n"
