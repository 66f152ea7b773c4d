"""What a model reads and writes, and which tag of a vocabulary is a language's: public models write ISO 639-3 codes,
some with a script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tandem.extras.importing.model import Asked

_TAG = re.compile(r">>([^<>\s]+)<<")
_FOLDER = re.compile(r"opus-mt-(?:tc-)?(?:big-|base-|tiny-)?(?P<source>[a-z]{2,3})-(?P<target>[a-z]{2,3})")
_GROUPS = ("mul", "roa", "gem", "gmq", "gmw", "itc", "zle", "zls", "zlw", "sla", "cel", "afa", "fiu", "ine", "trk")

# ISO 639-3 of the two-letter codes that differ from it by more than a prefix rule could say; macrolanguages by the
# member that public models are trained on come second.
_THREE = {
    "af": "afr", "am": "amh", "ar": "ara arb", "ast": "ast", "az": "aze azj", "be": "bel", "bg": "bul", "bn": "ben",
    "br": "bre", "bs": "bos", "ca": "cat", "cs": "ces", "cy": "cym", "da": "dan", "de": "deu", "el": "ell",
    "en": "eng", "eo": "epo", "es": "spa", "et": "est ekk", "eu": "eus", "fa": "fas pes", "fi": "fin", "fo": "fao",
    "fr": "fra", "ga": "gle", "gd": "gla", "gl": "glg", "gu": "guj", "ha": "hau", "he": "heb", "hi": "hin",
    "hr": "hrv", "ht": "hat", "hu": "hun", "hy": "hye", "id": "ind", "ig": "ibo", "is": "isl", "it": "ita",
    "ja": "jpn", "jv": "jav", "ka": "kat", "kk": "kaz", "km": "khm", "kn": "kan", "ko": "kor", "ku": "kur kmr",
    "ky": "kir", "la": "lat", "lb": "ltz", "lo": "lao", "lt": "lit", "lv": "lav lvs", "mg": "mlg plt", "mk": "mkd",
    "ml": "mal", "mn": "mon khk", "mr": "mar", "ms": "msa zsm zlm", "mt": "mlt", "my": "mya", "nb": "nob",
    "ne": "nep npi", "nl": "nld", "nn": "nno", "no": "nor nob", "oc": "oci", "pa": "pan", "pl": "pol", "ps": "pus pbt",
    "pt": "por", "ro": "ron", "ru": "rus", "sd": "snd", "si": "sin", "sk": "slk", "sl": "slv", "so": "som",
    "sq": "sqi als", "sr": "srp", "su": "sun", "sv": "swe", "sw": "swa swh", "ta": "tam", "te": "tel", "tg": "tgk",
    "th": "tha", "tk": "tuk", "tl": "tgl", "tr": "tur", "tt": "tat", "ug": "uig", "uk": "ukr", "ur": "urd",
    "uz": "uzb uzn", "vi": "vie", "wo": "wol", "xh": "xho", "yi": "yid ydd", "yo": "yor", "zh": "zho cmn", "zu": "zul",
}  # fmt: skip
_SCRIPTS = {"zh": "Hans", "zh-hans": "Hans", "zh-hant": "Hant", "sr": "Cyrl", "sr-latn": "Latn"}


def find_tags(
    codes: Sequence[str], tags: Mapping[str, str], named: Mapping[str, str], faults: list[str]
) -> dict[str, str]:
    """The tag of each language.

    Args:
        codes: the languages', such as ``de`` or ``zh-Hans``.
        tags: those of the vocabulary: the piece by what it says of the language, ``{"deu": ">>deu<<"}``.
        named: tags that the user names, by code: a piece, or what it says.
        faults: added to where a language has none, or several.
    """
    found = {}
    for code in codes:
        if code in named:
            matching = [piece for inner, piece in tags.items() if named[code] in (inner, piece)]
        else:
            matching = _matching(code, tags)
        if len(matching) == 1:
            found[code] = matching[0]
            continue
        known = ", ".join(sorted(tags))
        reason = f"may have any of the tags {', '.join(matching)}" if matching else f"has no tag among {known}"
        faults.append(f"the language {code!r} {reason}: say which with --tag {code}=TAG")
    return found


def _matching(code: str, tags: Mapping[str, str]) -> list[str]:
    """The tags that a code may mean: one where it is clear."""
    lower = code.lower()
    language = lower.split("-")[0]
    names = [lower, lower.replace("-", "_"), language, *_THREE.get(language, "").split()]
    script = _SCRIPTS.get(lower) or (code.split("-")[1].title() if "-" in code and len(code.split("-")[1]) == 4 else "")
    for name in dict.fromkeys(names):
        plain = [piece for inner, piece in tags.items() if inner.lower() == name]
        scripted = [piece for inner, piece in tags.items() if inner.lower().split("_")[0] == name and "_" in inner]
        exact = [piece for piece in scripted if script and f"_{script}" in piece]
        for candidates in (exact, plain, scripted):
            if candidates:
                return candidates
    return []


def languages_of(
    folder: Path, tokenizer: Mapping[str, Any], asked: Asked, faults: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the user says, else what the tokenizer's configuration or the folder's name says."""
    match = _FOLDER.fullmatch(folder.resolve().name)
    found = []
    for side, given in (("source", asked.sources), ("target", asked.targets)):
        said = tokenizer.get(f"{side}_lang")
        guess = said if isinstance(said, str) else match[side] if match else ""
        plain = re.fullmatch(r"[a-z]{2,3}", guess) is not None and guess not in _GROUPS
        if not given and not plain:
            faults.append(f"the files do not say the {side} language: say --{side} CODE")
        found.append(given or ((guess,) if plain else ()))
    return found[0], found[1]


def tags_of(
    names: Sequence[str], targets: Sequence[str], asked: Asked, faults: list[str]
) -> tuple[list[str], dict[str, str]]:
    """The tags among a source's pieces, and that of each target language."""
    tags = {match[1]: name for name in names if (match := _TAG.fullmatch(name))}
    if not tags and len(targets) > 1:
        faults.append(f"the vocabulary has no tags of languages, but --target is given {len(targets)} times")
    return [*tags.values()], find_tags(targets, tags, asked.tags, faults) if tags else {}
