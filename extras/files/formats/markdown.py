"""Markdown: paragraphs, headings, list items and table cells, with emphasis and links as marks of the text; blocks of
HTML, and what stands for pictures.

Line breaks, and lines that hold a dialect's signs, are borders of texts. Code, front matter, addresses, tags within a
text and references stay, and everything between the texts comes back byte for byte. ``markdown-it-py`` says which
lines hold text and what stands in them; where its pieces begin and end in the file, which it does not say, is noted as
its rules find them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it import rules_inline as rules
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from tandem.extras.files.bounds import SourceFile
from tandem.extras.files.formats.encoding import Text, read_text
from tandem.extras.files.formats.html import page_parts
from tandem.extras.files.formats.passages import (
    Part,
    Parts,
    Passage,
    PassagePiece,
    PieceRole,
    message,
    text_format,
)
from tandem.extras.files.formats.txt import one_line
from tandem.service.text.blocks import MarkupError

_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\n(?:.*\n)*?(?:\1|\.\.\.)[ \t]*(?:\n|\Z)")
_SIGNS = re.compile(
    r"^\[\^[^\]\n]+\]:|\[\^[^\]\n]+\]|\^\[[^\]\n]+\]|!?\[\[[^\[\]\n]+\]\]|^\[[ xX]\](?= )|^:{3,}.*"
    r"|\{[#.:][^{}\n]*\}|\$(?! )[^$\n]+(?<! )\$(?!\d)|(?<=\w)([~^])[^~^\s]{1,40}\1|\+\+[^+\s](?:[^\n]{0,40}[^+\s])?\+\+"
)
"""What dialects have: footnotes, links of wikis, tasks, containers, attributes, formulas, letters below and above the
line, keys."""
_LINE = re.compile(
    r"""\[![A-Za-z]+\][+-]?(?:[ ]+(?P<alert>.*\S))?[ ]*$
    | (?:\{\{[<%].*[>%]\}\}|\{%.*%\}|\([\w-]+\)=)[ ]*$
    | (?:!!!|\?\?\?\+?)[ ]+[\w-]+(?:[ ][\w -]+)?(?:[ ]+"(?P<note>[^"]*)")?[ ]*$
    | ===[!+]?[ ]+"(?P<tab>[^"]*)"[ ]*$
    | (?P<definition>:[ \t]+|(?:\*\[|\[\^)[^\]\n]{1,100}\]:[ \t]+)(?=\S)""",
    re.VERBOSE,
)
"""Lines of dialects: alerts, tags of site generators, labels of MyST, notes and tabs of MkDocs; what begins a
definition, also of an abbreviation, or a footnote."""
_TITLES = ("alert", "note", "tab")
_HOLDS = re.compile(r"(?:!!!|\?\?\?\+?)[ ]+[\w-]|===[!+]?[ ]+\"|\[\^[^\]\n]+\]:|:[ \t]{1,3}\S")
_INDENT = " " * 4
_FRAGMENT = re.compile(r"(\]\(#|\bhref=[\"']#)([^\s()\"'#]+)")
_ATTRIBUTES = re.compile(r"\{[^{}]*\}\s*$")
_LISTING = re.compile(r"<(code|kbd|samp|var)(?:\s[^<>]*)?>", re.IGNORECASE)
_SHOWN = ("text", "code_inline")  # of a heading, in its anchor
_BREAK = re.compile(r"\\?\n|<br\s*/?>", re.IGNORECASE)
_FORMULA = re.compile(r"\$\$[^$]*\$\$\s*")  # on lines of its own
_SPECIAL = r"[\\`*]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|\](?=[(\[:])|~(?=~)|&(?=#?\w+;)"
_WRITTEN = {
    "paragraph_open": re.compile(rf"{_SPECIAL}|^[#>+-](?=[\s#])|(?<=^\d)[.)](?=\s)|(?<=^\d\d)[.)](?=\s)"),
    "heading_open": re.compile(_SPECIAL),
    "th_open": re.compile(rf"{_SPECIAL}|\|"),
    "td_open": re.compile(rf"{_SPECIAL}|\|"),
}
"""What is escaped in a translation, by what it stands in."""
_MARKED = re.compile(rf"{_SPECIAL}|[\[\]|]")
"""What would be read as markup, or as an end, in what stands for a picture."""
_TEX = re.compile(r"\\\([^\n]{1,300}?\\\)|\\[A-Za-z]{2,40}(?:\[[^\]\n]{0,100}\])?(?:\{[^{}\n]{0,200}\})+")
"""Formulas and commands that dialects hand on to TeX, which escapes would make something else of."""
_AT = "tandem"

Rule = Callable[[StateInline, bool], bool]


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = read_text(source).unix()
    return text, tuple(_parts(text.characters))


def _follow_headings(old: str, new: str) -> str:
    """Links within a page go where its headings are now: their anchors are made of their texts."""
    before, after = _headings(old), _headings(new)
    pairs = chain.from_iterable(zip(_anchors(before, slug), _anchors(after, slug), strict=False) for slug in _SLUGS)
    moved = {was: now for was, now in pairs if was != now}
    return _FRAGMENT.sub(lambda match: f"{match[1]}{moved.get(unquote(match[2]), match[2])}", new)


read, write = text_format(_document, finish=_follow_headings)
"""The page with its texts translated, a paragraph on one line where it changed."""


def _headings(characters: str) -> list[str]:
    """The headings of a page as they are shown, in order."""
    tokens = MarkdownIt("commonmark").parse(_without_front(characters)[1])
    headings = [inline for one, inline in pairwise(tokens) if one.type == "heading_open"]
    shown = ("".join(part.content for part in one.children or () if part.type in _SHOWN) for one in headings)
    return [_ATTRIBUTES.sub("", text).strip() for text in shown]


def _anchors(headings: Sequence[str], slug: Callable[[str], str]) -> list[str]:
    """The anchor of each heading, in order."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for text in headings:
        anchor = slug(text)
        found.append(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def _github_slug(text: str) -> str:
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _ascii_slug(text: str) -> str:
    """Python-Markdown's, which MkDocs has."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


_SLUGS = (_ascii_slug, _github_slug)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    noted = {
        "newline": rules.newline, "escape": rules.escape, "backticks": rules.backtick, "link": rules.link,
        "image": rules.image, "autolink": rules.autolink, "html_inline": rules.html_inline, "entity": rules.entity,
    }  # fmt: skip
    parser.core.ruler.disable(["inline", "text_join"])  # its pieces are asked for block by block
    for name, rule in noted.items():
        parser.inline.ruler.at(name, _noting(rule))
    parser.inline.ruler.before("escape", "tex", _noting(_tex))
    return parser


def _tex(state: StateInline, silent: bool) -> bool:
    match = _TEX.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("tex", "", 0)
    state.pos = match.end()
    return True


def _noting(rule: Rule) -> Rule:
    """The rule, which also notes where in the text the tokens stand that it makes: start of the first, end of all."""

    def noted(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        found = rule(state, silent)
        made = [token for token in state.tokens[count:] if token.type != "text" or token.level > state.level]
        if found and made:
            made[0].meta[_AT] = (start, None)
            place, _ = made[-1].meta.get(_AT, (None, None))
            made[-1].meta[_AT] = (place, state.pos)
        return found

    return noted


def _without_front(characters: str) -> tuple[int, str]:
    """A page behind its front matter, and where that is."""
    front = _FRONT.match(characters)
    start = front.end() if front else 0
    return start, characters[start:]


def _flat(lines: Sequence[str]) -> Iterator[str]:
    """Lines without the indentation of what notes and tabs of MkDocs, footnotes and definitions hold: no code."""
    depth = 0
    for line in lines:
        while depth and line.strip() and not line.startswith(depth * _INDENT):
            depth -= 1
        flat = line[len(depth * _INDENT) :]
        yield flat
        depth += _HOLDS.match(flat) is not None


def _parts(characters: str) -> Iterator[Part]:
    parser, environment = _parser(), {}  # type: tuple[MarkdownIt, dict[str, object]]
    start, page = _without_front(characters)
    lines = page.split("\n")
    starts = [start]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    done, kind = 0, ""
    for token in parser.parse("\n".join(_flat(lines)), environment):
        if token.type == "html_block" and token.map:
            begin = starts[token.map[0]]
            behind = begin + len(token.content)
            if begin >= done and characters[begin:behind] == token.content:  # not in a list or a quotation
                yield characters[done:begin]
                yield from _html(token.content)
                done = behind
            continue
        kind = token.type if token.type in _WRITTEN else kind
        if token.type != "inline" or not token.map:
            continue
        places = _places(token, lines, starts, done if kind.startswith("t") else None)
        if places is None or places[0] < done or (kind == "paragraph_open" and _FORMULA.fullmatch(token.content)):
            continue
        content = "\n".join(line.lstrip(" \t") for line in token.content.split("\n"))
        for start, end in _stretches(content):
            tokens: list[Token] = []
            parser.inline.parse(content[start:end], parser, environment, tokens)
            found = _pieces(tokens, content[start:end], characters, places[start : end + 1])
            for pieces, first, last in _between_breaks(list(found)):
                begin, behind = places[start + first], places[start + last]
                yield characters[done:begin]
                yield Passage(pieces, partial(_escape, _WRITTEN[kind]), raw=characters[begin:behind])
                done = behind
    yield characters[done:]


def _html(block: str) -> Iterator[Part]:
    """The parts of a block of HTML; all of it where its markup is too much."""
    try:
        yield from page_parts(block)
    except MarkupError:
        yield block


def _stretches(content: str) -> Iterator[tuple[int, int]]:
    """Start and end of the texts of a block: lines of dialects' signs end one, and hold a title at most."""
    start = place = 0
    for line in content.split("\n"):
        sign = _LINE.match(line)
        if sign:
            if place > start:
                yield start, place - 1
            yield from ((place + sign.start(name), place + sign.end(name)) for name in _TITLES if sign[name])
            goes_on = sign["definition"] is not None
            start = place + (sign.end("definition") if goes_on else len(line) + 1)
        place += len(line) + 1
    if place - 1 > start:
        yield start, place - 1


def _between_breaks(found: Sequence[tuple[PassagePiece, int]]) -> Iterator[tuple[list[PassagePiece], int, int]]:
    """The pieces of a text without its line breaks, but for those within a mark; and where each text begins and ends.

    Args:
        found: pieces, and where each ends.
    """
    pieces: list[PassagePiece] = []
    depth = first = last = 0
    for piece, end in found:
        depth += (piece.role is PieceRole.OPEN) - (piece.role is PieceRole.CLOSE)
        if piece.role is PieceRole.KEPT and not depth and _BREAK.match(piece.raw):
            yield pieces, first, last
            pieces, first = [], end
        else:
            pieces.append(piece)
        last = end
    yield pieces, first, last


def _places(token: Token, lines: Sequence[str], starts: Sequence[int], done: int | None) -> list[int] | None:
    """Where each character of a token's text stands in the file, and its end; None = not as it is in the file.

    A line's text is the end of its line; of cells, the next one behind ``done``, where a backslash stands before ``|``.
    """
    found: list[int] = []
    first = (token.map or [0])[0]
    for number, line in enumerate(token.content.split("\n"), first):
        text = line.lstrip(" \t")
        begin = starts[number]
        row = lines[number]
        if done is None:
            widths, place = [1] * len(text), row.rfind(text)
        else:
            widths = [1 + (sign == "|") for sign in text]
            place = row.find(text.replace("|", r"\|"), max(0, done - begin))
        if place < 0:
            return None
        found += accumulate(widths, initial=begin + place)
    return found


def _pieces(
    tokens: Sequence[Token], content: str, characters: str, places: Sequence[int]
) -> Iterator[tuple[PassagePiece, int]]:
    """The tokens of a text with what they were written as, and where in it each ends.

    Markers, and text between noted tokens, are literal.
    """
    place = label = 0

    def written(start: int, end: int) -> str:
        return characters[places[start] : places[end]]

    number = 0
    while number < len(tokens):
        token = tokens[number]
        start, end = token.meta.get(_AT, (None, None))
        if start is not None and start > place:  # spaces in front of a line end
            yield PassagePiece(PieceRole.TEXT, written(place, start), content[place:start]), start
            place = start
        if token.type == "link_open" and token.markup == "autolink":
            number += 2
            end = tokens[number].meta[_AT][1]
            yield PassagePiece(PieceRole.KEPT, written(place, end), content[place + 1 : end - 1]), end
        elif last := _listing_end(tokens, number):
            number, (shown_end, end) = last, tokens[last].meta[_AT]
            shown = content[token.meta[_AT][1] : shown_end]
            yield PassagePiece(PieceRole.KEPT, written(place, end), shown), end
        elif token.type == "link_open":
            label = end = place + 1
            yield PassagePiece(PieceRole.OPEN, written(place, end)), end
        elif token.type.endswith(("_open", "_close")):
            end = end or place + len(token.markup)
            raw = written(place, end)
            if token.type == "link_close" and raw in ("]", "][]"):  # its text is also what it refers to
                raw = f"][{one_line(content[label:place])}]"
            yield PassagePiece(PieceRole.OPEN if token.nesting > 0 else PieceRole.CLOSE, raw), end
        elif token.type == "text":
            end = place + len(token.content)
            for piece in _text(content[place:end]):
                behind = place + len(piece.raw)
                yield piece._replace(raw=written(place, behind)), behind
                place = behind
        elif token.type in ("text_special", "softbreak"):
            yield PassagePiece(PieceRole.TEXT, written(place, end), token.content or " "), end
        elif token.type == "image":
            raw = written(place, end)
            yield PassagePiece(PieceRole.KEPT, raw, inner=tuple(_picture(raw, token.content))), end
        else:
            shown = token.content if token.type == "code_inline" else ""
            yield PassagePiece(PieceRole.KEPT, written(place, end), shown), end
        place, number = end, number + 1


def _picture(raw: str, shown: str) -> Iterator[Part]:
    """A picture, of which is translated what stands for it where it cannot be seen."""
    begin, end = len("!["), len("![") + len(shown)
    named_by_it = raw[end:] in ("]", "][]")
    if named_by_it or raw[begin:end] != shown or _MARKED.search(shown):
        yield raw
        return
    yield raw[:begin]
    yield Passage((PassagePiece(PieceRole.TEXT, shown, shown),), partial(_escape, _MARKED))
    yield raw[end:]


def _listing_end(tokens: Sequence[Token], number: int) -> int:
    """Where the element ends that begins at a token, and has nothing but code in it, such as a key's name; 0 = none."""
    begins = _LISTING.fullmatch(tokens[number].content) if tokens[number].type == "html_inline" else None
    for later in range(number + 1, len(tokens)) if begins else ():
        token = tokens[later]
        if token.type == "html_inline":
            return later if begins and token.content.lower() == f"</{begins[1].lower()}>" else 0
        if token.type not in ("text", "text_special"):
            return 0
    return 0


def _text(text: str) -> Iterator[PassagePiece]:
    """A text without Markdown in it: what programs fill in, addresses and dialects' signs are kept."""
    done = 0
    for sign in (*_SIGNS.finditer(text), None):
        yield from message(text[done : sign.start() if sign else None])
        if sign:
            yield PassagePiece(PieceRole.KEPT, sign[0], "" if sign[0].startswith(("[", ":", "{")) else sign[0])
            done = sign.end()


def _escape(special: re.Pattern[str], text: str) -> str:
    """A translation as Markdown: what would be read as markup is escaped."""
    return special.sub(r"\\\g<0>", one_line(text))
