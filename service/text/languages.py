"""Language codes as clients write them, and the languages' English names."""

from __future__ import annotations

import re
from collections.abc import Collection

MAX_CODE_LENGTH = 35
"""Characters of a code; RFC 5646 asks that at least so many are taken."""

_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")

# Codes that mean the same: LibreTranslate's short ones, regions that stand for a script, and withdrawn ISO 639 codes.
_SAME = (
    ("pt-br", "pb"),
    ("zh-hans", "zh", "zh-cn", "zh-sg", "zh-hans-cn", "cmn", "cmn-hans"),
    ("zh-hant", "zt", "zh-tw", "zh-hk", "zh-mo", "zh-hant-tw", "zh-hant-hk", "cmn-hant"),
    ("nb", "no", "nb-no", "no-no"),
    ("nn", "nn-no", "no-nyn"),
    ("he", "iw"),
    ("id", "in"),
    ("yi", "ji"),
    ("jv", "jw"),
    ("ro", "mo"),
    ("tl", "fil"),
    ("sr", "sr-cyrl", "scc"),
    ("hr", "scr"),
)
_CANONICAL = {code: codes[0] for codes in _SAME for code in codes}
# Varieties that are written otherwise than the bare code says: `zh` is no answer to `zh-Hant`.
_APART = frozenset(("zh-hant", "sr-latn", "nn"))

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian",
    "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian",
    "is": "Icelandic", "it": "Italian", "ja": "Japanese", "jv": "Javanese", "ka": "Georgian", "kab": "Kabyle",
    "ko": "Korean", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay",
    "nb": "Norwegian Bokmål", "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "pt-br": "Brazilian Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "th": "Thai",
    "tl": "Filipino", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "yi": "Yiddish",
    "zh": "Chinese", "zh-hans": "Chinese (simplified)", "zh-hant": "Chinese (traditional)",
}  # fmt: skip


def is_language_code(code: str) -> bool:
    """Whether a string has the form of a code: ``de``, ``pt-BR``, ``zh_Hans``, at most 35 characters."""
    return len(code) <= MAX_CODE_LENGTH and _CODE.fullmatch(code) is not None


def bare_code(code: str) -> str:
    """A code as codes are compared: in lower case, with hyphens, and one of those that mean the same."""
    lower = code.replace("_", "-").lower()
    return _CANONICAL.get(lower, lower)


def base_code(code: str) -> str:
    """The language of which a code names a variety: ``de`` for ``de-AT``, ``pt`` for ``pb``; else the code itself."""
    return _widened(code)[-1]


def base_language(code: str) -> str:
    """A language code without region or script, in lower case."""
    return bare_code(code).split("-")[0]


def match_language(code: str, known: Collection[str]) -> str | None:
    """The known code that a client means.

    Case and the way to write it do not matter, nor which of several codes of one language is used. Where a variety is
    not known, its language is taken (``de`` for ``de-AT``); where a language is asked for and only varieties of it are
    known, the first of them (``pt-BR`` for ``pt``). One variety never stands for another.
    """
    by_bare: dict[str, str] = {}
    for item in known:
        by_bare.setdefault(bare_code(item), item)
    wider = _widened(code)
    found = next((by_bare[one] for one in wider if one in by_bare), None)
    if found is not None or len(wider) > 1:
        return found
    return next((item for item in known if base_code(item) == wider[0]), None)


def _widened(code: str) -> list[str]:
    """A code, then without its last part, and so on to the language; not beyond what is written otherwise."""
    bare = bare_code(code)
    widened = [bare]
    while "-" in bare and bare not in _APART:
        bare = bare_code(bare.rpartition("-")[0])
        if bare in widened:
            break
        widened.append(bare)
    return widened


def language_name(code: str) -> str:
    """The English name, or the code itself."""
    lower = code.replace("_", "-").lower()
    for known in (lower, bare_code(code), base_code(code), lower.split("-")[0]):
        if known in NAMES:
            return NAMES[known]
    return code
