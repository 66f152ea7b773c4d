"""Families of what comes back as it is though nobody asked, by name: placeholders of programs, and what else is copied.

Each family is an expression, and whether models read it as it is first: they write what is around it better so, but
only of some families do they copy it often enough. What is missing then is hidden in a second decoding. ``NUMBERS`` are
what small models garble: the table goes once models are trained to copy them.

The expressions run in Python's ``re``, and each looks at a bounded stretch, or goes on without coming back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from tandem.service.text.spans import Span


class CopiedForm(NamedTuple):
    """An expression, in verbose syntax, and whether what it matches is read first."""

    pattern: str
    read_first: bool = False


_PRINTF = r"""%(?:\d{1,2}\$|\([\w.]{1,100}\)|<\w{1,100}>)?[-+\#0]*(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?
    (?:hh?|ll?|[Lzjt])?[diouxXeEfFgGaAcsSpn@](?!\w)"""
_INNER = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,200}\}){0,400}+\}){0,1000}+"

PLACEHOLDERS: Mapping[str, CopiedForm] = {
    "ICU message": CopiedForm(rf"\{{\s*[\w.]{{1,100}}\s*,\s*(?:plural|select|selectordinal|choice)\s*,{_INNER}\}}"),
    "quoted braces": CopiedForm(r"''\{\w{1,100}\}''|(?<!')'(?:\{+|\}+)'(?!')"),
    "double braces": CopiedForm(r"\{\{[^{}\n]{0,200}\}\}", read_first=True),
    "braces": CopiedForm(r"[$%\#]?\{[^{}\n]{0,200}\}", read_first=True),
    "printf with a percent sign": CopiedForm(rf"(?:{_PRINTF}|\d{{1,9}})?%%(?:{_PRINTF}|%%)*"),
    "printf": CopiedForm(_PRINTF, read_first=True),
    "percent signs": CopiedForm(
        r"%[A-Z][A-Z0-9_]{1,100}%|(?<![\w%])%[A-Za-z][A-Za-z0-9_.-]{1,60}%(?![\w%])|%\d(?![\w%])"
    ),
    "formula": CopiedForm(
        r"(?<![\w$])\$(?=[^$\n]{0,200}[\\^_={}])[^$\s](?:[^$\n]{0,198}[^$\s])?\$(?![\w$])"  # of TeX
    ),
    # Of names only, of TeX; what others have in braces is text.
    "command": CopiedForm(
        r"\\(?:begin|end|label|(?:[cC]|page|eq|auto)?ref|cite\w*|url|input|include\w*|usepackage|documentclass)"
        r"\*?(?:\[[^\[\]\n]{0,100}\])?\{[^{}\n]{0,200}\}|(?<![\w\\:])\\(?![nrt][A-Z])[A-Za-z]{3,30}(?![\w\\])"
    ),
    "linked message": CopiedForm(r"(?<![\w@])@(?:\.\w{1,30})?:(?:\(\w[\w.]{0,100}\)|\w[\w.]{0,100}(?<=\w))"),  # of Vue
    "variable": CopiedForm(r"(?<![\w$])\$(?:t\([^()\n]{1,100}\)|[A-Za-z_]\w{1,100}+)"),
    "template": CopiedForm(r"<%[^\n]{0,200}?%>|<\?[^\n]{0,200}?\?>|<!--[^\n]{0,500}?-->"),
    "shortcode": CopiedForm(
        r"\[[a-z][\w-]{1,40}(?:[ ]+[\w-]{1,40}="
        r"(?:\"[^\"\]\n]{0,200}\"|'[^'\]\n]{0,200}'|[^\s\]\"']{1,200})){1,20}+[ ]*/?\]"
        r"|\[/[a-z][\w-]{1,40}\]"  # of WordPress and its like
    ),
    "code element": CopiedForm(
        r"<(?P<code>code|kbd|samp|tt|var)(?:\s[^<>\n]{0,200})?>[^\n]{0,300}?</(?P=code)>"  # no model reads code
    ),
    # A break of a line is one, wherever it stands (``layout``).
    "tag": CopiedForm(
        r"</?(?!(?<!/)[Bb][Rr]\s*/?>)(?:[A-Za-z][\w:.-]{0,100}(?:\s[^<>]{0,500})?|\d{1,3}\s?)/?>", read_first=True
    ),
    "merge tag": CopiedForm(r"\*\|[^|\n]{1,100}\|\*"),
    "double brackets": CopiedForm(r"\[\[[\w.| -]{1,100}\]\]"),
    "underscores": CopiedForm(r"(?<!\w)__\w{1,100}?__(?!\w)"),
    "number signs": CopiedForm(r"(?<![\w\#])(?P<number_sign>\#{1,3})\w{1,100}(?P=number_sign)(?![\w\#])"),
    "tildes": CopiedForm(r"(?<![\w~])~\w{1,100}~(?![\w~])"),
    "emoji": CopiedForm(r"(?<![\w:]):(?:[a-z][\w+-]{0,60}|[+-]1|100|1234):(?![\w:])"),
    "emoticon": CopiedForm(r"(?<=\S[ ])[:;=]['’]?-?(?:[()]{1,3}|[DPpOo/])(?=[\s.,!?]|\Z)"),
    "colon": CopiedForm(r"(?<![\w:]):[a-z]\w{1,60}+(?![\w:])"),
    "sign before a name": CopiedForm(r"(?<!\S)[!?][a-z]\w{1,60}+(?!\w|[!?])"),
    "escape": CopiedForm(
        r"""\\(?:"|t(?![a-z])|u[0-9A-Fa-f]{4})|(?<=[\w.,:;!?)])\\t|(?<![\w.,:;!?)\\])\\[nr](?![a-z])"""
    ),
    "entity": CopiedForm(r"&(?:[A-Za-z]{2,31}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});"),
}
"""What programs put values into."""

_ENDINGS = (
    r"(?i:7z|apk|avi|bak|bat|bmp|cfg|conf|csv|dat|deb|dll|dmg|docx?|eml|epub|exe|flac|gif|gz|heic|html?|ics|ini|iso|jar"
    r"|jpe?g|json|log|m4a|mkv|mov|mp[34]|msi|od[pst]|ogg|pdf|png|pptx?|ps1|psd|rar|rtf|sh|sql|srt|svg|tar|tiff?|toml|tsv"
    r"|txt|wav|webm|webp|xlsx?|xml|ya?ml|zip)"
)
COPIED: Mapping[str, CopiedForm] = {
    "backticks": CopiedForm(r"(?P<backtick>`{1,3})[^`\n]{1,200}(?P=backtick)"),
    "name of a comment for programmers": CopiedForm(
        r"(?<![\w@/.])@(?:(?:param|arg|property|typeparam)\s+(?:\{[^{}\n]{1,100}\}\s+)?[\w.$]{1,100}"
        r"|(?:throws|exception)\s+[A-Z][\w.]{1,100})"
    ),
    "blank to be filled in": CopiedForm(
        r"(?<![\w|])(?:\|(?:_{1,20}\|){1,40}+|_{2,20}+(?:[./:-]_{1,20}){1,6}+)(?!\w)"  # |_|_|, __.__.____
    ),
    "mention": CopiedForm(r"(?<![\w@/.])@\w(?:[\w.-]{0,100}\w)?"),
    "ampersands": CopiedForm(r"(?<!&)&&(?!&)"),  # of labels: "Help && Support"
    "picture": CopiedForm(r"!\[[^\]\n]{0,200}\]\([^()\s]{1,500}\)"),  # of Markdown
    # Expressions for computers, as far as they name classes of characters: \\d{3}-\\w+, ^\\s*$.
    "regular expression": CopiedForm(
        r"(?<!\S)[^\s\\]{0,100}\\(?:[.]|[dDwWsSbB+*?()\[\]^$|](?![A-Za-z]))"
        r"\S{0,200}(?<![.,;:])"
    ),
    "call": CopiedForm(r"(?<![\w.$])[A-Za-z_$][\w.$]{0,100}\((?:'[^'\n]{0,100}'|\"[^\"\n]{0,100}\")[^()\n]{0,100}\)"),
    "media type": CopiedForm(
        r"(?<![\w/.-])(?:application|audio|font|image|message|multipart|text|video)/"
        r"(?:[xX]-[\w.+-]{1,60}|[a-z]{1,40}[.+-][\w.+-]{1,60}|html|plain|css|csv|xml|json|pdf|zip|png|jpe?g|gif|webp|mpeg|mp4"
        r"|markdown|javascript)(?![\w/])"
    ),
    "name with an apostrophe": CopiedForm(r"(?<![\w'’])O['’][A-Z][a-z]{2,20}(?!\w)", read_first=True),
    "hashtag": CopiedForm(r"(?<![\w\#&/])\#\w[\w-]{0,100}+"),
    "address in angle brackets": CopiedForm(r"<[\w.+%-]{1,64}@[\w.-]{1,200}>"),
    # Names of a program's parts, and of files: Body(), countryCode, max_filesize, TreeScope.Subtree, app.config. What
    # follows a full stop without its space begins with a capital, and abbreviations (z.B.) have parts of one letter.
    "identifier": CopiedForm(
        r"""(?<![\w@./\\-])
        (?: [^\W\d_][\w.]*+\(\)
          | [a-z]++[A-Z]\w*+(?:\.\w++)*+
          | (?![A-ZÄÖÜ][a-zäöüß]+_innen\b)[^\W\d_][^\W_]*+(?:_++[^\W_]++)++(?:\.\w++)*+
          | (?=[A-Z]\w{0,100}?[a-z][A-Z])\w++(?:\.\w++)++
          | [^\W\d_]\w++(?:\.[a-z]\w++)++(?:\.\w++)*+
          | (?:[a-z]\.){2,9}+[A-Z]\w*?[a-z][A-Z]\w*+
          | [A-Za-z_]\w*+(?:(?:->|::)[A-Za-z_]\w*+)++(?:\(\))?
          | (?!Ph\.)[^\W\d_]{2}[\w-]*+\.[chdmr](?=[\s,;:!?)]|\.?\Z)
        )(?![\w@/\\-]|\.\w)"""
    ),
    # Bericht_2026-01.pdf, "my file (1).txt": what "identifier" finds has neither hyphens nor spaces.
    "file name": CopiedForm(
        rf"(?<![\w@./\\-])[^\W_][\w.+-]{{0,120}}(?<=[\w+-])\.{_ENDINGS}(?![\w@/\\-]|\.\w)"
        rf"|(?:(?<=[\"„“»«'])|(?<=«[ \u00a0\u202f]))[^\W_][^\"„“”»«'\n]{{1,100}}\.{_ENDINGS}"
        rf"(?=[ \u00a0\u202f]?[\"“”»«'])"
    ),
    # Names with a digit in them, and what has two points between digits, but for those of millions: utf8mb4, F7, W3C,
    # 192.168.0.1, v1.2.3.
    "name with digits": CopiedForm(
        r"(?<![\w@./\\-])(?:[^\W\d_]++\d\w*+|(?!\d{1,3}(?:\.\d{3}){2,}(?![\d.]*\d))v?\d++(?:\.\d++){2,})(?![\w@/\\-]|\.\w)",
        read_first=True,
    ),
    # Paths and a command's options: /etc/fonts, ~/.profile, ../x, C:\Windows, \\server\share, --force, -v.
    "path": CopiedForm(
        r"""(?<![\w@./\\:<~-])
        (?: (?:~|\.{1,2})?(?:/[\w.+@%~-]*\w)++/?+
          | (?:[A-Za-z]:|\\(?=\\))\\(?:[^\s\\/:*?"<>|]++(?:[ ][^\s\\/:*?"<>|]++){0,3}+\\)*+
            (?:[^\s\\/:*?"<>|]*\w\\?+|(?<=\w\\))
          | (?<!\S)--?(?:[A-Za-z]|(?<=--)[a-z][\w-]*\w)(?:=[^\s,;]*\w)?
        )(?![\w@/\\-])"""
    ),
}
"""Names that people and machines are called by."""

_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"[0-2]?\d:[0-5]\d"
_SUM = r"(?!(?:[.,:]\d|\w)|[ \u00a0\u202f]?(?:[$€£]|Euro|euro|Dollar|dollar|EUR|USD))"
NUMBERS: Mapping[str, CopiedForm] = {
    "date": CopiedForm(
        rf"(?<![\w.-]){_DAY}(?:(?:T|[ ]){_CLOCK}(?::[0-5]\d(?:[.,]\d{{1,9}})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-]|[.,:]\d)"
    ),
    # 3.5. in the midst of a sentence; at its end it may be a number.
    "day and month": CopiedForm(
        r"(?<![\w.,])(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?=\s+[a-zäöü\d]|\s*[-–,;:)/])"
    ),
    "time with seconds": CopiedForm(rf"(?<![\w.:]){_CLOCK}:[0-5]\d(?:[.,]\d{{1,9}})?(?![\w:])"),
    "UUID": CopiedForm(r"(?<![\w-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![\w-])"),
    "IBAN": CopiedForm(r"(?<!\w)[A-Z]{2}\d\d(?:[ ]?[A-Z0-9]{4}){3,7}(?:[ ]?[A-Z0-9]{1,4})?(?!\w)"),
    "MAC or IP address": CopiedForm(
        r"""(?<![\w:.-])
        (?: [0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}
          | \d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5}|/\d{1,2})?
          | [0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){3,7}(?<=[0-9A-Fa-f:]{6})(?:/\d{1,3})?
        )(?![\w:-]|\.\w)"""
    ),
    "phone number": CopiedForm(
        r"""(?<![\w.,/+-])
        (?: \+\d(?:[ \u00a0./-]?\(?\d{1,12}\)?){1,6}
          | 00[1-9]\d(?:[ ./-]?\(?\d{1,12}\)?){1,5}
          | \(0\d{1,5}\)[ ]?\d{2,}(?:[ -]\d{2,}){0,4} | \(\d{3}\)[ ]?\d{3}-\d{4}
          | 0\d{1,5}[ /-]\d{3,}(?:[ -]\d{2,}){0,3}
          | 0\d(?:[ .-]\d\d){4}
          | \d{3}-\d{3}-\d{4} | \d{3}-\d{4}
        )(?!\w|[.,:/-]\d)"""
    ),
    # Of cards, French companies, books.
    "groups of digits": CopiedForm(
        r"(?<![\w.,-])"
        r"(?:\d{4}(?:(?:[ ]\d{4}){2,5}|(?:-\d{4}){2,5})|\d{3}(?:[ ]\d{3}){2}[ ]\d{5}|\d{1,7}(?:-\d{1,7}){3,8})"
        r"(?![\w-]|[.,]\d)"
    ),
    "token": CopiedForm(
        r"(?<![\w@./\\-])(?=[A-Za-z_-]{0,60}\d)(?=[a-z\d_-]{0,60}[A-Z])[\w-]{10,1000}(?:\.[\w-]{2,1000}){2}(?![\w.-])"
    ),
    "version": CopiedForm(r"(?<![\w@./\\-])v?\d{1,6}(?:\.\d{1,6})+(?:-[A-Za-z][\w.]*|\+\w+)(?![\w@/\\])"),
    "hexadecimal number": CopiedForm(r"(?<![\w@./\\-])0[xX][0-9A-Fa-f]{1,64}(?!\w)"),
    "hash": CopiedForm(
        r"(?<![\w@./\\-])(?=[0-9]{0,64}[a-f])(?=[a-f]{0,64}[0-9])[0-9a-f]{6,128}(?![\w@/\\-])"
        r"|(?<![\w@./\\-])(?=[0-9]{0,64}[A-F])(?=[A-F]{0,64}[0-9])[0-9A-F]{7,128}(?![\w@/\\-])"
    ),
    "code": CopiedForm(
        r"(?<![\w@./\\-])(?=[A-Z-]{0,40}\d)(?=[\d-]{0,40}[A-Z])[A-Z\d]{1,20}(?:-[A-Z\d]{1,20}){1,8}(?![\w@/\\-])",
        read_first=True,
    ),
    # 6'2", 5′ 9″, 48°51'24"N; 1'200 is a number.
    "feet and inches, or an angle": CopiedForm(
        r"""(?<![\w.,'′’])\d{1,3}(?:°[ ]?\d{1,2})?['′’][ ]?\d{1,2}(?:[.,]\d{1,4})?(?:["″”]|'')
        (?:[ ]?[NSEWO](?!\w))?(?!\w)"""
    ),
    "power of ten": CopiedForm(r"(?<![\w.,])\d{1,9}(?:[.,]\d{1,9})?[eE][+-]?\d{1,3}(?![\w.])"),
    "six digits and more": CopiedForm(rf"(?<![\w.,:$€£])(?<![$€£][ ])\d{{6,200}}{_SUM}"),
}
"""Numbers that small models change."""

# What any of them has; most texts have none, and looking closely takes many times as long.
_LIKELY = re.compile(
    r"[a-z][A-Z]|0[xX]|[^\W_][._]\w|[^\W\d_]\d|\w-\d|\d[.:-]\d|\d[a-fA-F]|\d{6}|\d{4} \d{4}|\d['′’]|\(\)|\(\d|://|[{%<@\#`~_]|[/\\:]\w"
    r"|\w=[\"'\w]|\w\([\"']|->\w|::|O['’]|\d{3} \d{3}|\\\S|\$[\w(]|'[{}]"
    r"|&[\w&]|[!?](?:[a-z]|\[)|[:;=][+'’()DPpOo/-]|\[\[|\*\||\+\d|0\d |(?<!\S)--?[A-Za-z]"
)


def find_families(text: str, table: Mapping[str, CopiedForm]) -> Iterator[tuple[Span, CopiedForm]]:
    """What of a text belongs to a family of a table, in order; of matches at one place that of the first family."""
    families = [*table.values()]
    for match in _compiled(tuple(family.pattern for family in families)).finditer(text):
        yield Span(*match.span()), families[int(str(match.lastgroup)[1:])]


def may_have_some(text: str) -> bool:
    """Whether it is worth while to look closely."""
    return _LIKELY.search(text) is not None


@lru_cache(16)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<f{number}>{one}\n)" for number, one in enumerate(patterns)), re.VERBOSE)
