"""What comes back as it is though nobody asked: each family of each table, and what looks like one and is none."""

from __future__ import annotations

import pytest

from tandem.service.text.families import COPIED, NUMBERS, PLACEHOLDERS, find_families
from tandem.service.text.protect import always_kept

FOUND = {
    "ICU message": "Sie haben ‹{count, plural, =0 {keine} one {# Nachricht von {name}} other {#}}›.",
    "quoted braces": "Datei ‹''{0}''› fehlt, nimm ‹'{'›haus‹'}'›.",
    "double braces": "‹{{name}}› und ‹{{ preis | currency }}› und ‹{{x|y}}›",
    "braces": "‹{name}› ‹%{x}› ‹${y}› ‹#{z}› ‹{0}›",
    "printf with a percent sign": "‹%d%%› von %s, ‹50%%›",
    "printf": "‹%d› von ‹%1$s›, ‹%(foo)s› ‹%5.2f› ‹%@› ‹%<foo>d› 100 % der",
    "percent signs": "‹%NAME%› ist ‹%1› 50 %, ‹%first_name%›, 5%ige und 10%",
    "formula": r"es gilt ‹$x^2$› und ‹$\alpha_1 = 3$›, 5 $ und 6 $ = 11 $, $HOME=$PWD",
    "command": r"siehe ‹\ref{fig:1}› und ‹\cite[S. 5]{a,b}›, ‹\alpha› \nZwei C:\neu \\server",
    "linked message": "‹@:common.save› ‹@.lower:common.save› ‹@:(a.b)›. a@b.de @anna: so",
    "variable": "‹$HOME› ‹$t(key.name)› ‹$name› 5 $ US$",
    "shortcode": "‹[gallery ids=\"1,2\" columns=3]› ‹[caption id='a']›Haus‹[/caption]›, [so], [so ist=] und [1]",
    "code element": "Der Befehl ‹<code>git status</code>› und ‹<kbd class=x>Strg</kbd>›, <b>so</b> <code>nie",
    "template": "‹<%= name %>› ‹<% if x > 1 %>› ‹<?php echo 1 ?>› ‹<!-- so -->›",
    "tag": 'a ‹<x id="1"/>› b ‹<1>› c ‹</1>› ‹<0/>› 5 < 10 > 3',
    "merge tag": "Hallo ‹*|FNAME|*›, *so*",
    "double brackets": "‹[[name]]› [so]",
    "underscores": "‹__count__› Dateien, _so_ ____",
    "number signs": "‹#name#› ‹###T01###› und ‹##X##›, Nr. #5",
    "tildes": "‹~name~› ist ~5",
    "emoji": "Danke! ‹:tada:› ‹:+1:› ‹:100:› um 10:30:45",
    "emoticon": "so ‹:)› nein ‹;-)›, gut ‹:D› weh ‹:'(›. (so ‹:))› um 5:3 (a:) so: (b) x =5 z:D",
    "colon": "‹:name› war um 10:30 hier: so",
    "sign before a name": "Hallo ‹!name›, nimm ‹?param›. Was?so ¿que? !Nein !wie!",
    "escape": r"Zeile eins\nZeile zwei ‹\n› drei ‹\t› ‹\"›so‹\"› ‹\u00e4› \textbf",
    "entity": "fett ‹&lt;›b‹&gt;› ‹&nbsp;› ‹&#228;› ‹&#xE4;› AT&T; R & D;",
    "backticks": "Nimm ‹`npm run build`› und ‹``a`b``› oder `".replace("‹``a`b``›", "‹``ab``›"),
    "ampersands": "Hilfe ‹&&› Fragen, &&&",
    "picture": "so: ‹![Bild](a.png)›, [so](b.html)!",
    "name of a comment for programmers": "‹@param {string} name› der Name, ‹@throws IOException› wenn, @see die",
    "blank to be filled in": "Datum ‹__.__.____›, PLZ ‹|_|_|_|› Name: _______, a_b __init__ |a|",
    "mention": "Hallo ‹@anna_b›, ‹@schmidt›! a@b.de",
    "regular expression": r"‹\d{3}-\w+› ‹^\s*$›, ‹[a-z]+\.txt›. \*so\* \n C:\neu",
    "call": "‹t('key')› ‹_(\"so\")› und ‹print(\"x\", y)›, Hund(e) f(x) so (\"nie\")",
    "media type": "‹text/html› ‹application/vnd.ms-excel› ‹image/png›, Text/Bild text/so audio/video",
    "name with an apostrophe": "‹O'Reilly›'s und ‹O’Brien›, um 5 o'clock, l'Oréal, d'Or",
    "hashtag": "‹#Wochenende› ‹#a-b›, ‹#5› C#",
    "address in angle brackets": "Max ‹<info@example.org>› 5 < 6",
    "identifier": "‹max_filesize› ‹countryCode› ‹app.config› ‹main.c› ‹Body()› ‹a->b› ‹std::sort()› z.B. so",
    "file name": "‹Bericht_2026-01.pdf›, „‹my-photo.final.JPG›“, ‹a+b.tar.gz›: E-Mail.So x.pdfs -.pdf",
    "name with digits": "‹utf8mb4› ‹F7› ‹1.2.3› 3D 1.234.567 Einwohner ‹1.234.567.8›",
    "path": "‹/etc/fonts› ‹--force› und/oder",
    "date": "Frist: ‹2024-05-03 14:30›, ‹2048-09-18T21:11:00Z›, ‹2024-05-03T10:00:00+02:00›, ‹1999-12-31›. 1234-56-78",
    "day and month": "vom ‹1.2.› bis ‹30.12.› offen, am ‹3.5.› um 8 Uhr, ‹4.5.›–‹6.5.›, Nr. 3.5. Neu 1.13. so 3.5 m",
    "time with seconds": "‹21:11:00› und 14:30",
    "UUID": "‹123e4567-e89b-12d3-a456-426614174000›",
    "hexadecimal number": "‹0xdeadbeef› ‹0XFF› 0x x0xf",
    "IBAN": "‹DE89 3704 0044 0532 0130 00› ‹DE89370400440532013000›",
    "MAC or IP address": "‹00:1A:2B:3C:4D:5E› ‹192.168.0.1:8080› ‹10.0.0.0/24› ‹2001:db8:85a3:0:0:8a2e:370:7› 1:2",
    "phone number": "‹+1 (206) 555-0142›, ‹0456 5594870›, ‹(030) 1234567›, ‹01 42 68 53 00›, ‹+49 30 901820›, 10-20",
    "groups of digits": "‹1234 5678 9012 3456› ‹978-3-16-148410-0› ‹732 829 320 00074› 1990 2000 1-2-3 100 000 000",
    "token": "‹eyJhbGciOiJI1.eyJzdWIi.abc-DEF_123› ‹AbCdEfGhI9.x2.y3› Haus.Hund.Katze 1.2.3 www.example1.org",
    "version": "‹1.2.3-rc1› ‹v2.0+build5› 2.0",
    "hash": "‹9fceb02› ‹d41d8cd98f00b204e9800998ecf8427e› ‹DA39A3EE5E6B› facade 1980er",
    "code": "‹A1B2-C3D4-E5F6› ‹COVID-19› B2-Kurs US-Dollar 2024-25",
    "feet and inches, or an angle": "er ist ‹6'2\"›, sie ‹5′ 9½″›, ‹48°51'24\"N›, 1'200 Euro, 5' und \"so\"".replace(
        "‹5′ 9½″›", "5′ 9½″"
    ),
    "power of ten": "‹1e10› ‹2.5e-7› 10",
    "six digits and more": "‹783676843342›, ‹123456›. 12345 100000 € 1.000.000 $500000 200000 Euro",
}  # fmt: skip
TABLES = {name: table for table in (PLACEHOLDERS, COPIED, NUMBERS) for name in table}


def test_every_family_has_an_example() -> None:
    assert FOUND.keys() == {*PLACEHOLDERS, *COPIED, *NUMBERS}


@pytest.mark.parametrize("name", FOUND)
def test_a_family_finds_its_own_and_nothing_else(name: str) -> None:
    marked = FOUND[name]
    text = marked.replace("‹", "").replace("›", "")
    spans = [span for span, _ in find_families(text, {name: TABLES[name][name]})]
    for span in reversed(spans):
        text = f"{text[: span.start]}‹{text[span.start : span.end]}›{text[span.end :]}"
    assert text == marked


@pytest.mark.parametrize("name", FOUND)
def test_it_is_kept_unasked_and_whole(name: str) -> None:
    """Beside all other families, and in a text that has nothing else."""
    for part in FOUND[name].split("‹")[1:]:
        alone = part.split("›")[0]
        if alone.startswith("\\") or alone == "%1":
            continue
        assert [hidden.source for _, hidden in always_kept(f"Das ist {alone} so", names=True)] == [alone]


def test_a_quoted_name_of_a_file_may_have_spaces() -> None:
    text = 'Ist "mein Bild (1).png" da, »Bericht neu.pdf«, « le rapport.pdf », "so" oder „das Haus“? x.txt" und "y'
    kept = [hidden.source for _, hidden in always_kept(text, names=True)]
    assert kept == ["mein Bild (1).png", "Bericht neu.pdf", "le rapport.pdf", "x.txt"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("‹{0, choice, 0#keine|1<{0}}› Dateien", ["ICU message"]),
        ("‹o.a.k.c.NetworkClient› z.B.So d.h.Sie", ["identifier"]),
        ("Gäst_innen ‹Log_in› ‹max_innen›", ["identifier"]),
        (r"‹C:\Max Muster\a b.c\d.txt›, ‹D:\My Files\› und ‹C:\so› oder ‹D:\neu›, in \\", ["path"]),
    ],
)
def test_more_of_some_families(text: str, parts: list[str]) -> None:
    marked = text.replace("‹", "").replace("›", "")
    for span, _ in reversed([*find_families(marked, {name: TABLES[name][name] for name in parts})]):
        marked = f"{marked[: span.start]}‹{marked[span.start : span.end]}›{marked[span.end :]}"
    assert marked == text
