"""Numbers, measures and sums of money in a sentence, as a translation writes them: "1.250,5 km" is "1,250.5 km".

Small models copy a number as it stands, and "5.000 €" in an English sentence are five euros. Signs and their places are
CLDR's, by Babel (BSD). A decimal point of an English sentence may be a version's ("Python 3.8"): there it counts before
a unit only. Numbers without signs are left to the models, which keep them as often as human translators do, and so are
those that both languages write alike; not sums and measures, of which models lose the currency and the unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from babel import Locale
from babel.numbers import get_decimal_symbol, get_group_symbol

from tandem.extras.rewriting.conventions.dates import LANGUAGES
from tandem.service.text.masking import HiddenPlace, merge, rewritten
from tandem.service.text.spans import Span

_SPACES = "[ \u00a0\u202f]"
_SYMBOLS = "$€£"
_CURRENCIES = "edy"  # first letters
_NAMES = {
    "de": ("Euro", "Dollar", "Yen"),
    "en": ("euros", "dollars", "yen"),
    "fr": ("euros", "dollars", "yens"),
}
# A million, a thousand and a million times as much: as they are read, and as they are written of one. "2,5 Mrd. Euro"
# are 2.5 billion.
_SCALES = {
    "de": (r"Million(?:en)?|Mio\.?", r"Milliarden?|Mrd\.?", "Billion(?:en)?"),
    "en": ("million", "billion|bn", "trillion"),
    "fr": ("millions?", "milliards?", "billions?"),
}
_ONE = {
    "de": ("Million", "Milliarde", "Billion"),
    "en": ("million", "billion", "trillion"),
    "fr": ("million", "milliard", "billion"),
}
_OF_SYMBOLS = {"de": ("Dollar", "Euro", "Pfund"), "fr": ("dollars", "euros", "livres")}
# Symbols of units, the same in each language but for French bytes. "A", "h" and "s" may be something else.
_MEASURES = (
    "[kcmnµ]?m[²³]?|km/h|[kmµ]?g|[mcd]?l|[mc]?L|[kKMGT](?:i?B|o)|[kMG]?Hz|[kM]?[WV]|m[AW]|kWh|[kh]Pa|°[CF]|px|dpi|ms"
)
_BYTES = re.compile("([kKMGT])[Bo]")
# "$1" is a program's placeholder, as few as have more than four, and "$2 million" half a sum.
_PLACEHOLDER = re.compile(r"\$[0-4]")
_SCALE = re.compile(rf"{_SPACES}?(?:thousand|[mb]illion|trillion|Mio|Mrd|Milli|Tausend|mille)\w*")
# Before and behind these a number is none, or stands for nothing that is counted: "[0,1]", "+1 206 555", "1:2,5".
_LEFT, _RIGHT = r"(?<![\w.,:/+%\[{-])", r"(?!\w|[.,:]\w|/\d|-\d|[\]}])"
_UNIT = re.compile(
    rf"{_SPACES}?(?:%|°|per ?cent|[mb]illion|trillion|times|x\b|points?\b|[$€£]|EUR|USD"
    r"|(?:nano|micro|milli|centi|kilo)?(?:seconds?|met(?:er|re)s?|grams?|lit(?:er|re)s?)\b|minutes?|hours?|days?|weeks?"
    r"|months?|years?|degrees|inch|feet|miles?|pounds|acres|hectares|cubic|square"
    r"|(?:[mckn]m|m|k?g|mg|m?[lL]|[kMGT]i?B|[kMG]?Hz|[kMm]?[WVA]|kWh|kPa|ms|s|h)\b)"
)


@dataclass(frozen=True, slots=True)
class _Signs:
    """How a language writes amounts.

    Attributes:
        group, decimal: the signs between thousands and before decimals.
        symbol: how a sum is written, with "¤" for the currency and "#" for the number.
        large: matches a sum of millions, with the groups of ``number`` and ``scale0`` to ``scale2``.
        number: matches a number; groups ``left``, ``whole``, ``decimals`` or ``none`` (the dash of "5,–"), ``right``,
            ``name`` and ``unit``. Thousands may be apart as in Switzerland, with a decimal point: "1'250.50".
    """

    group: str
    decimal: str
    symbol: str
    large: re.Pattern[str]
    number: re.Pattern[str]

    def written(self, match: re.Match[str]) -> str:
        """A number as this language writes it, with signs between thousands where the one that was found has them."""
        whole, decimals = re.sub(r"\D", "", match["whole"]), match["decimals"]
        if whole != match["whole"]:
            first = len(whole) % 3 or 3
            whole = self.group.join([whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))])
        return whole + (self.decimal + decimals if decimals else "")


def find_amounts(text: str, source: str, target: str) -> list[HiddenPlace]:
    """The numbers of a normalised sentence that its translation writes otherwise, and sums, in order.

    Args:
        text: the sentence.
        source, target: the languages of it and of its translation, as ISO 639 has them; nothing is found for those
            whose signs are not known.
    """
    if source not in LANGUAGES or target not in LANGUAGES:
        return []
    return merge([*_large(text, source, target)], [*_found(text, source, target)])


def _large(text: str, source: str, target: str) -> Iterator[HiddenPlace]:
    """Sums of millions and more, in languages whose names for those are known."""
    if source not in _SCALES or target not in _SCALES:
        return
    for match in _signs(source).large.finditer(text):
        if bool(match["left"] or match["right"]) != bool(match["name"]):
            yield rewritten(text, Span(*match.span()), _large_written(match, target))


def _large_written(match: re.Match[str], target: str) -> str:
    written = _signs(target).written(match)
    scale = _ONE[target][next(number for number in range(3) if match[f"scale{number}"])]
    if target == "de" and written != "1":
        scale += "n" if scale.endswith("e") else "en"
    elif target == "fr" and int(re.sub(r"\D", "", match["whole"])) > 1:  # "1,5 million d'euros"
        scale += "s"
    symbol = match["left"] or match["right"]
    if symbol and target == "en":
        return f"{symbol}{written} {scale}"
    names = _OF_SYMBOLS if symbol else _NAMES
    currency = names[target][_SYMBOLS.index(symbol) if symbol else _CURRENCIES.index(match["name"][0].casefold())]
    of = "" if target != "fr" else "d'" if currency[0] == "e" else "de "
    return f"{written} {scale} {of}{currency}"


def _found(text: str, source: str, target: str) -> Iterator[HiddenPlace]:
    reading, writing = _signs(source), _signs(target)
    for match in reading.number.finditer(text):
        if not _is_amount(match, source):
            continue
        written = writing.written(match)
        span = number = Span(match.start("whole"), max(map(match.end, ("whole", "decimals", "none"))))
        if match["name"] and target in _NAMES:
            span = Span(number.start, match.end())
            name = _NAMES[target][_CURRENCIES.index(match["name"][0].casefold())]
            written += f" {name.removesuffix('s') if written == '1' else name}"
        elif unit := match["unit"]:
            span = Span(number.start, match.end("unit"))
            written += text[number.end : match.start("unit")] + _unit_written(unit, target)
        elif currency := match["left"] or match["right"]:
            span = Span(*match.span())
            written = writing.symbol.replace("¤", currency).replace("#", written)
        elif match["none"]:
            written = text[span.start : span.end]
        part = text[span.start : span.end]
        if span != number or match["none"] or re.sub(_SPACES, " ", written) != re.sub(_SPACES, " ", part):
            yield rewritten(text, span, written)


def _is_amount(match: re.Match[str], source: str) -> bool:
    """Whether a number is one that languages write in different ways, and not something else that looks like it."""
    whole, decimals = match["whole"], match["decimals"]
    symbol = match["left"] or match["right"] or match["unit"]
    if whole[0] == "0" != whole or (
        symbol and (_PLACEHOLDER.fullmatch(match[0]) or _SCALE.match(match.string, match.end()))
    ):
        return False
    if not (match["left"] or match["right"]) and match.string.startswith("/", match.end()):  # "$12/month" alone
        return False
    if decimals and source == "en" and whole.isdigit():  # or else it may be a version
        return bool(symbol or match["name"] or _UNIT.match(match.string, match.end("decimals")))
    if decimals and len(decimals) == 3 and source != "fr" and whole != "0":  # thousands as English has them?
        return False
    return bool(decimals or symbol or match["name"] or match["none"] or not whole.isdigit())


def _unit_written(unit: str, target: str) -> str:
    """A unit's symbol as a language writes it: a byte is French's octet."""
    if match := _BYTES.fullmatch(unit):
        return f"{match[1].replace('K', 'k')}o" if target == "fr" else f"{match[1]}B"
    return unit


@cache
def _signs(language: str) -> _Signs:
    locale = Locale.parse(language)
    group, decimal = get_group_symbol(locale), get_decimal_symbol(locale)
    sum_ = re.sub("#[#,.0]*", "#", locale.currency_formats["standard"].pattern.partition(";")[0])
    sign = _SPACES if group.isspace() else re.escape(group)
    names = "|".join(name.removesuffix("s") + "s?" for name in _NAMES.get(language, ())) or "(?!)"
    digits = (
        rf"{_LEFT}(?:(?P<left>[{_SYMBOLS}]){_SPACES}?)?(?P<whole>\d{{1,3}}(?:(?:{sign}\d{{3}})+|(?:['’]\d{{3}})+)|\d+)"
        rf"(?:(?:{re.escape(decimal)}|(?<=['’]\d{{3}})\.)(?P<decimals>\d+)|[.,](?P<none>[-–—]{{1,2}}))?"
    )
    scale = "|".join(f"(?P<scale{number}>{words})" for number, words in enumerate(_SCALES.get(language, ["(?!)"] * 3)))
    large = re.compile(
        rf"{digits}{_SPACES}?(?:{scale})"
        rf"(?:{_SPACES}(?:de |d['’])?(?P<name>{names})|{_SPACES}?(?P<right>[{_SYMBOLS}]))?(?!\w)"
    )
    number = re.compile(
        rf"{digits}{_RIGHT}"
        rf"(?:{_SPACES}?(?P<right>[{_SYMBOLS}])(?!\w)|{_SPACES}(?P<name>{names})\b|{_SPACES}?(?P<unit>{_MEASURES})(?![\w²³/-]))?"
    )
    return _Signs(group, decimal, sum_, large, number)
