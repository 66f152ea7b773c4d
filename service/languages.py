"""Language codes as clients write them, and the languages' English names."""

from __future__ import annotations

import re
from collections.abc import Collection

_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian",
    "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian",
    "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kab": "Kabyle", "ko": "Korean",
    "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay", "nb": "Norwegian Bokmål",
    "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


def is_language_code(code: str) -> bool:
    """Whether a string has the form of a code: ``de``, ``pt-BR``, ``zh_Hans``."""
    return _CODE.fullmatch(code) is not None


def bare_code(code: str) -> str:
    """A code as codes are compared: in lower case, with hyphens."""
    return code.replace("_", "-").lower()


def match_language(code: str, known: Collection[str]) -> str | None:
    """The known code that a client means: whatever the case, and ``de`` for ``de-AT`` where that is all there is."""
    wanted = bare_code(code)
    by_lower = {item.lower(): item for item in known}
    return by_lower.get(wanted) or by_lower.get(wanted.split("-")[0])


def language_name(code: str) -> str:
    """The English name, or the code itself."""
    return NAMES.get(code) or NAMES.get(code.split("-")[0], code)
