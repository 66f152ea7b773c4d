"""Text that a translation has as its source has it: numbers, identifiers, placeholders of programs, emoji.

A model copies what it has seen copied. Real text has few order numbers, hashes and ``{count}``, so some are made up
here and put into training pairs (``substitution``, ``borders``). Every maker takes a random generator and nothing else,
so a run is the same when it is resumed, and a test can draw what no training has.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

Maker = Callable[[Random], str]

_WORDS_TEXT = """
account admin alpha api app archive auth backup base beta block blue build cache cart chat check client cloud code
config core count data demo dev disk docs draft edge event export field file filter flag form gamma grid group home
host image import index info item job key lab label link list local log login mail main map media menu meta mode
model module name net node note offer order page path pay plan play plugin point port post price pro proxy query
queue rate record red region report role root rule scan score seed send server shop site size sort stage start state
status store stream sync system table tag task team temp test text theme time title token tool total tree type unit
update upload user value version video view volume web widget wiki window work zone
"""
_WORDS = tuple(_WORDS_TEXT.split())
_ENDINGS_TEXT = """
com org net de fr io example co.uk eu dev test
"""
_ENDINGS = tuple(_ENDINGS_TEXT.split())
_FILES_TEXT = """
txt json py yml conf html pdf csv log md xml docx png tar.gz sql
"""
_FILES = tuple(_FILES_TEXT.split())
_CONSONANTS_TEXT = """
b br c ch d f fl g h j k kl l m n p r s st t tr v w x z
"""
_CONSONANTS = tuple(_CONSONANTS_TEXT.split())
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou", "y")


def digits(random: Random, count: int) -> str:
    return "".join(random.choices(string.digits, k=count))


def hexadecimal(random: Random, count: int) -> str:
    letters = "0123456789abcdef" if random.random() < 0.8 else "0123456789ABCDEF"
    return "".join(random.choices(letters, k=count))


def invented_word(random: Random) -> str:
    """A word of no language, that only letter by letter can be copied."""
    syllables = random.choices(_CONSONANTS, k=random.choice((2, 2, 3)))
    return "".join(f"{consonant}{random.choice(_VOWELS)}" for consonant in syllables) + random.choice(
        ("", "", "n", "r")
    )


def word(random: Random) -> str:
    """What parts of identifiers are: an English word, mostly."""
    return random.choice(_WORDS) if random.random() < 0.65 else invented_word(random)


def capitals(random: Random, count: int) -> str:
    return "".join(random.choices(string.ascii_uppercase, k=count))


def _date(random: Random) -> str:
    year, month, day = random.randint(1900, 2049), random.randint(1, 12), random.randint(1, 28)
    clock = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}"
    return f"{year}-{month:02}-{day:02}" + random.choice(
        ("", "", "", f" {clock}", f"T{clock}:{random.randint(0, 59):02}Z", f"T{clock}:00+0{random.randint(0, 9)}:00")
    )


def _phone(random: Random) -> str:
    first = random.choice((f"+{digits(random, 2)} ", f"+{digits(random, 2)} (0)", f"00{digits(random, 2)} ", "0"))
    parts = (
        digits(random, random.randint(2, 4)),
        digits(random, random.randint(3, 8)),
        digits(random, random.randint(2, 4)),
    )
    return first + random.choice((" ", "-", "/", " ")).join(parts[: random.choice((2, 3))])


def _grouped(random: Random, groups: tuple[int, ...], between: str) -> str:
    return between.join(digits(random, count) for count in groups)


_SUFFIXES = ("", "", "", "-rc1", "-beta", "b2", "-SNAPSHOT", "+build5", "-alpha.1")
_NUMBERS: tuple[tuple[float, Maker], ...] = (
    (6.0, lambda r: digits(r, r.choice((1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 12, 14, 16, 20)))),
    (0.5, lambda r: str(r.randint(1800, 2060))),
    (1.0, _date),
    (0.5, _phone),
    (0.5, lambda r: f"{r.randint(0, 23)}:{r.randint(0, 59):02}"),
    (0.4, lambda r: ".".join(str(r.randint(0, 255)) for _ in range(4)) + r.choice(("", "", f":{digits(r, 4)}", "/24"))),
    (0.3, lambda r: _grouped(r, (4, 4, 4, 4), r.choice((" ", "-")))),
    (0.3, lambda r: _grouped(r, r.choice(((3, 4), (3, 3, 4), (2, 2, 2, 2, 2))), r.choice((" ", "-", ".")))),
    (0.3, lambda r: f"{capitals(r, 2)}{digits(r, 2)} " + _grouped(r, (4, 4, 4, 4, 2), " ")),  # IBAN
    (0.3, lambda r: f"{capitals(r, 2)}{digits(r, 20)}"),
    (0.8, lambda r: ".".join(str(r.randint(0, 30)) for _ in range(r.choice((2, 3, 3, 4)))) + r.choice(_SUFFIXES)),
    (0.3, lambda r: f"{r.randint(1, 99)}/{r.randint(1, 99)}"),
    (0.2, lambda r: f"{r.randint(1, 30)}x{r.randint(1, 30)}"),
    (0.2, lambda r: f"-{r.randint(1, 90)}"),
    (0.2, lambda r: f"{r.randint(1, 9)}e{r.randint(-12, 12)}"),
)

_IDENTIFIERS: tuple[tuple[float, Maker], ...] = (
    (1.0, lambda r: hexadecimal(r, r.choice((6, 7, 8, 10, 12, 16, 32, 40)))),
    (0.8, lambda r: "-".join(hexadecimal(r, count) for count in (8, 4, 4, 4, 12))),
    (1.0, lambda r: "_".join(word(r) for _ in range(r.choice((2, 2, 3))))),
    (0.7, lambda r: word(r) + word(r).title()),
    (0.5, lambda r: word(r).title() + word(r).title()),
    (0.7, lambda r: "-".join(word(r) for _ in range(r.choice((2, 2, 3))))),
    (0.6, lambda r: f"{word(r)}.{word(r)}" + r.choice(("", f".{word(r)}"))),
    (0.8, lambda r: f"{word(r)}.{r.choice(_FILES)}"),
    (
        0.8,
        lambda r: (
            "/" + "/".join(word(r) for _ in range(r.choice((1, 2, 3)))) + r.choice(("", "/", f".{r.choice(_FILES)}"))
        ),
    ),
    (0.4, lambda r: rf"C:\{word(r).title()}\{word(r)}" + r.choice(("", f".{r.choice(_FILES)}"))),
    (1.2, lambda r: r.choice(("https://", "https://", "http://", "https://www.", "www.")) + f"{word(r)}.{_ending(r)}"),
    (
        1.0,
        lambda r: (
            f"https://{word(r)}.{_ending(r)}/{word(r)}"
            + r.choice(("", f"/{word(r)}", f"?{word(r)}={digits(r, 2)}", f"#{word(r)}"))
        ),
    ),
    (1.0, lambda r: f"{word(r)}{r.choice(('', '.', '_'))}{word(r)}@{word(r)}.{_ending(r)}"),
    (1.0, lambda r: f"@{word(r)}" + r.choice(("", f"_{word(r)}", digits(r, 2)))),
    (1.0, lambda r: f"#{r.choice((str, str.title))(word(r))}" + r.choice(("", word(r), word(r).title()))),
    (0.6, lambda r: f":{word(r)}" + r.choice((":", f"_{word(r)}:"))),
    (0.5, lambda r: f"--{word(r)}" + r.choice(("", f"-{word(r)}", f"={digits(r, 2)}"))),
    (0.3, lambda r: f"-{r.choice(string.ascii_letters)}"),
    (0.4, lambda r: f"__{word(r)}__"),
    (0.5, lambda r: f"{word(r)}_{word(r)}".upper()),
    (
        0.4,
        lambda r: (
            f"{word(r)}" + r.choice(("()", f"({word(r)})", f"[{r.randint(0, 9)}]", f".{word(r)}()", "::" + word(r)))
        ),
    ),
    (
        0.8,
        lambda r: f"`{word(r)}" + r.choice(("`", f" {word(r)}`", f"_{word(r)}`", f" --{word(r)}`", f".{word(r)}()`")),
    ),
    (0.8, lambda r: f"{capitals(r, r.choice((1, 1, 2, 3)))}{r.choice(('', '-', ' '))}{digits(r, r.randint(1, 5))}"),
    (0.6, lambda r: f"{capitals(r, 2)}-{digits(r, 4)}-{capitals(r, 1)}{digits(r, 2)}"),
    (0.4, lambda r: "-".join(f"{capitals(r, 1)}{digits(r, 1)}{capitals(r, 1)}{digits(r, 1)}" for _ in range(3))),
    (0.3, lambda r: ":".join(hexadecimal(r, 2) for _ in range(6))),
    (0.3, lambda r: ":".join(hexadecimal(r, 4) for _ in range(r.choice((4, 8))))),
    (0.4, lambda r: f"{capitals(r, 1)}&{capitals(r, 1)}" if r.random() < 0.5 else f"{capitals(r, 2)}&{capitals(r, 1)}"),
    (0.3, lambda r: f"{capitals(r, 1)}{r.choice(('++', '#', '*', '+'))}"),
    (0.3, lambda r: f"{word(r)}{r.randint(2, 99)}"),
    (0.3, lambda r: f"<{word(r)}@{word(r)}.{_ending(r)}>"),
)

_SLOTS: tuple[tuple[float, Maker], ...] = (
    (2.0, lambda r: f"{{{word(r)}}}"),
    (1.0, lambda r: f"{{{r.randint(0, 5)}}}"),
    (1.0, lambda r: "%s" if r.random() < 0.6 else "%d"),
    (0.6, lambda r: r.choice(("%i", "%f", "%.2f", "%5d", "%@", "%ld", "%c", "%x"))),
    (0.8, lambda r: f"%{r.randint(1, 4)}${r.choice('sd')}"),
    (0.4, lambda r: "%d%%"),
    (0.4, lambda r: f"%{r.randint(1, 5)}"),
    (0.5, lambda r: f"%({word(r)})s"),
    (0.6, lambda r: f"%{{{word(r)}}}"),
    (0.6, lambda r: f"${{{word(r)}}}"),
    (0.4, lambda r: f"${word(r).upper()}"),
    (0.8, lambda r: f"{{{{{word(r)}}}}}" if r.random() < 0.5 else f"{{{{ {word(r)} }}}}"),
    (0.4, lambda r: f"{{{{{word(r)}|{word(r)}}}}}"),
    (0.4, lambda r: f"{{{{ {word(r)}.{word(r)} }}}}"),
    (0.3, lambda r: f"{{{word(r)}, number}}" if r.random() < 0.5 else f"{{{word(r)}, date, short}}"),
    (0.5, lambda r: f"<%= {word(r)} %>"),
    (0.5, lambda r: f"*|{word(r).upper()}|*"),
    (0.5, lambda r: f"[{word(r)}]" if r.random() < 0.6 else f"[[{word(r)}]]"),
    (0.5, lambda r: f"%{word(r).upper()}%"),
    (0.4, lambda r: f"<{r.randint(0, 3)}/>"),
    (0.4, lambda r: f'<x id="{r.randint(1, 9)}"/>'),
    (0.4, lambda r: f"#{word(r)}#" if r.random() < 0.5 else f"##{word(r).upper()}##"),
    (0.3, lambda r: f"~{word(r)}~"),
    (0.3, lambda r: f":{word(r)}"),
    (0.3, lambda r: f"!{word(r)}"),
    (0.3, lambda r: f"$t({word(r)}.{word(r)})"),
    (0.4, lambda r: r.choice((r"\n", r"\t", r"\"", "&nbsp;", "&amp;", "&lt;", "&gt;", "&quot;"))),
    (0.3, lambda r: f"''{{{r.randint(0, 3)}}}''"),
)


def _ending(random: Random) -> str:
    return random.choice(_ENDINGS)


def _drawn(makers: tuple[tuple[float, Maker], ...], random: Random) -> str:
    (chosen,) = random.choices([make for _, make in makers], [weight for weight, _ in makers])
    return chosen(random)


def number(random: Random) -> str:
    """Digits as they are written in orders, calendars, telephones, networks and accounts."""
    return _drawn(_NUMBERS, random)


def identifier(random: Random) -> str:
    """What names something for a machine: hashes, paths, addresses, mentions, options, codes."""
    return _drawn(_IDENTIFIERS, random)


def slot(random: Random) -> str:
    """A placeholder of the kinds that programs put values into."""
    return _drawn(_SLOTS, random)


_EMOJI_RANGES = (
    *((0x1F300, 0x1F320), (0x1F32D, 0x1F393), (0x1F3A0, 0x1F3F0), (0x1F400, 0x1F53D), (0x1F5FB, 0x1F64F)),
    *((0x1F680, 0x1F6C5), (0x1F6D0, 0x1F6D2), (0x1F6DC, 0x1F6DF), (0x1F6F0, 0x1F6FC), (0x1F90C, 0x1F9FF)),
    *((0x1FA70, 0x1FAFF), (0x2600, 0x2606), (0x2708, 0x270D), (0x2753, 0x2755)),
)
_EMOJI = tuple(chr(code) for first, last in _EMOJI_RANGES for code in range(first, last + 1))
_JOINED_TEXT = """
👨‍👩‍👧 👩‍💻 🏳️‍🌈 ❤️‍🔥 🧑‍🤝‍🧑 👍🏽 👋🏻 🙏🏿 ❤️ ⚠️ ☀️ ✈️ ✉️ ▶️ ℹ️ ‼️ ⁉️ 〰️
"""
_JOINED = tuple(_JOINED_TEXT.split())


def emoji(random: Random) -> str:
    """A sign of Unicode's emoji, also of those that are newer than the interpreter; some are sequences."""
    kind = random.random()
    if kind < 0.1:
        return random.choice(_JOINED)
    if kind < 0.15:
        return "".join(chr(0x1F1E6 + random.randrange(26)) for _ in range(2))  # flags
    if kind < 0.2:
        return f"{random.choice('0123456789#*')}\ufe0f\u20e3"  # keycaps
    return random.choice(_EMOJI)
