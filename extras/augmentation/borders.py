"""What stands around words without being translated: quotation marks, brackets, tags, emphasis, numbers of sections and
bullets in front, references and emoji behind, signs between the entries of menus and tables.

Each function gives both sides of a pair the same surroundings, as the target's language writes them, so that a model
keeps them as they are. Quotation marks alone are the language's own (CLDR, "delimiters"); straight ones stay straight.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tandem.extras.augmentation import copyables

Texts = tuple[str, str]  # a source and its target
Marks = tuple[str, str]  # opening and closing

QUOTATION: dict[str, tuple[Marks, ...]] = {
    "de": (("„", "“"), ("»", "«"), ("‚", "‘")),
    "en": (("“", "”"), ("‘", "’")),
    "fr": (("«\u00a0", "\u00a0»"), ("“", "”")),
    "es": (("«", "»"), ("“", "”")),
    "it": (("«", "»"), ("“", "”")),
    "nl": (("“", "”"), ("‘", "’")),
    "pl": (("„", "”"), ("«", "»")),
    "pt": (("“", "”"), ("‘", "’")),
}
"""The outer quotation marks of a language, its first choice first."""
_STRAIGHT: Marks = ('"', '"')
_BRACKETS: tuple[Marks, ...] = (("(", ")"), ("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"))
_EMPHASIS: tuple[Marks, ...] = (
    ("*", "*"),
    ("**", "**"),
    ("_", "_"),
    ("__", "__"),
    ("~~", "~~"),
    ("==", "=="),
    ("'", "'"),
)
_EMPHASIS += (("`", "`"), ("♪ ", " ♪"), ("-- ", " --"), ("=== ", " ==="), ("... ", " ..."))
_TAGS = ("b", "i", "u", "em", "strong", "p", "li", "h2", "td", "small", "code", "1", "0", "2", "bold", "link", "g", "x")
_BULLETS = "•·–*+-→✓✗►▪■☐☑➔"
_BETWEEN = (
    " | ",
    " | ",
    " » ",
    " · ",
    " > ",
    " > ",
    " / ",
    " • ",
    " – ",
    " → ",
    " + ",
    " & ",
    " = ",
    "; ",
    ", ",
    " < ",
    " ~ ",
    " :: ",
)
_ENDS = (".", ".", "!", "?", ":", "…", "...", ";", "?!", "!!", ".", "")


def quoted(texts: Texts, random: Random, languages: tuple[Sequence[str], str]) -> Texts:
    """A pair in quotation marks: the target in its language's own, the source in those of one of its languages.

    Args:
        texts: source and target.
        random: decides on the marks.
        languages: those that the source may be in, and the target's.
    """
    of_source, of_target = languages
    known = [QUOTATION[code] for code in (random.choice(of_source), of_target) if code in QUOTATION]
    if len(known) < 2 or random.random() < 0.35:
        return _between(texts, _STRAIGHT, _STRAIGHT)
    opening, closing = random.choice(known[0])
    return _between(texts, (opening.replace("\u00a0", " "), closing.replace("\u00a0", " ")), known[1][0])


def wrapped(texts: Texts, random: Random) -> Texts:
    """A pair in brackets, tags or emphasis, the same on both sides."""
    kind = random.random()
    if kind < 0.35:
        marks = random.choice(_BRACKETS)
    elif kind < 0.65:
        marks = random.choice(_EMPHASIS)
    else:
        marks = _tag(random)
    return _between(texts, marks, marks)


def preceded(texts: Texts, random: Random) -> Texts:
    """A pair with a number, bullet, time, emoji or key in front of both sides."""
    kind = random.randrange(16)
    number = random.randint(1, 30)
    front = (
        lambda: f"{number} ",
        lambda: f"{random.randint(1, 12)}.{random.randint(1, 12)} ",
        lambda: f"{random.randint(1, 9)}.{random.randint(1, 9)}.{random.randint(1, 9)} ",
        lambda: f"[{number}] ",
        lambda: f"§ {random.randint(1, 900)} ",
        lambda: f"({random.choice('abcdefghi')}) ",
        lambda: f"{random.choice('abcdefghi')}) ",
        lambda: f"{number}. ",
        lambda: f"{number}) ",
        lambda: f"{random.choice(_BULLETS)} ",
        lambda: random.choice(("> ", "# ", "## ", "### ", "- [ ] ", "* ", "// ", "-> ", "=> ", "| ", "™ ", "© ")),
        lambda: f"{copyables.emoji(random)} ",
        lambda: f"{random.randint(0, 23):02}:{random.randint(0, 59):02} ",
        lambda: f"{copyables.identifier(random)}: ",
        lambda: f"{copyables.identifier(random)} ",
        lambda: f"[{copyables.number(random)}] ",
    )[kind]()
    return front + texts[0], front + texts[1]


def followed(texts: Texts, random: Random) -> Texts:
    """A pair with an emoji, a reference, a number or a sign behind both sides."""
    kind = random.randrange(16)
    back = (
        lambda: f" {copyables.emoji(random)}",
        lambda: f" {copyables.emoji(random)}{copyables.emoji(random)}",
        lambda: copyables.emoji(random),
        lambda: random.choice(("*", "†", "‡", "¹", "²", "**", "™", "®")),
        lambda: f" [{random.randint(1, 40)}]",
        lambda: f" ({copyables.number(random)})",
        lambda: random.choice((" →", " …", " >", " »", " ✓", " |", " ↩", " ¶", " •", " //")),
        lambda: f" {copyables.identifier(random)}",
        lambda: f" ({copyables.identifier(random)})",
        lambda: random.choice((" :)", " ;-)", " :-(", " <3", " xD", " ^^", " :D")),
        lambda: f" #{copyables.word(random)}",
        lambda: f" {random.choice('=+<>≤≥≈×±')} {copyables.number(random)}",
        lambda: f": {copyables.number(random)}",
        lambda: f": {copyables.slot(random)}",
        lambda: f" {copyables.slot(random)}",
        lambda: f" @{copyables.word(random)}",
    )[kind]()
    return texts[0] + back, texts[1] + back


def joined(pairs: Sequence[Texts], random: Random) -> Texts:
    """Several short pairs as the entries of a menu, a path or a table's row."""
    between = random.choice(_BETWEEN)
    source, target = (between.join(side) for side in zip(*pairs, strict=True))
    if between == " | " and random.random() < 0.4:
        source, target = f"| {source} |", f"| {target} |"
    return source, target


def ended(texts: Texts, random: Random) -> Texts:
    """A pair that ends otherwise, in the same way on both sides; unchanged where one of them does not end in a mark."""
    if not all(text[-1:] in ".!?" and text[-2:-1].isalnum() for text in texts):
        return texts
    end = random.choice(_ENDS) if random.random() < 0.4 else ""
    return texts[0][:-1] + end, texts[1][:-1] + end


def _tag(random: Random) -> Marks:
    kind = random.random()
    if kind < 0.7:
        name = random.choice(_TAGS)
        return f"<{name}>", f"</{name}>"
    if kind < 0.85:
        return f'<a href="https://{copyables.word(random)}.example/{copyables.word(random)}">', "</a>"
    return f'<span class="{copyables.word(random)}">', "</span>"


def _between(texts: Texts, of_source: Marks, of_target: Marks) -> Texts:
    return f"{of_source[0]}{texts[0]}{of_source[1]}", f"{of_target[0]}{texts[1]}{of_target[1]}"
