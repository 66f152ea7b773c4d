"""The language that a document says its texts are in: spelling checkers, browsers and screen readers go by it."""

from __future__ import annotations

import re

from babel.core import get_global

from tandem.service.text.languages import base_code

_SCRIPTS = {  # of office programs, which keep three languages of a text: of the others' letters, and of these two
    **dict.fromkeys(("ja", "ko", "zh"), ("w:eastAsia", "style:language-asian", "style:country-asian")),
    **dict.fromkeys(("ar", "fa", "he", "ur"), ("w:bidi", "style:language-complex", "style:country-complex")),
}
_OTHERS = ("w:val", "fo:language", "fo:country")
_HTML = re.compile(r"<html\b[^>]*>", re.IGNORECASE)
_HTML_LANGUAGE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*["']?)([A-Za-z0-9-]+)""", re.IGNORECASE)
_NONE = ("zxx", "none", "")


def in_word(raw: bytes, target: str) -> bytes:
    """A part of a Word document with its texts marked as the target language's."""
    name, _, _ = _names(target)
    return _replaced(raw, rb"(<w:lang\b[^>]*?\s" + name.encode() + rb'=")([^"]*)', target)


def in_slides(raw: bytes, target: str) -> bytes:
    """A part of a presentation, likewise."""
    return _replaced(raw, rb'(<a:(?:rPr|endParaRPr|defRPr)\b[^>]*?\slang=")([^"]*)', target)


def in_open_document(characters: str, target: str) -> str:
    """A member of an OpenDocument file, likewise."""
    _, language, country = _names(target)
    code, _, region = with_region(target).rpartition("-")
    code = base_code(code or region)

    def renamed(tag: re.Match[str]) -> str:
        given = re.search(rf'\s{language}="([^"]*)"', tag[0])
        if given is None or given[1] in (*_NONE, code):
            return tag[0]
        new = re.sub(rf'(\s{language}=")[^"]*', rf"\g<1>{code}", tag[0])
        return re.sub(rf'(\s{country}=")[^"]*', rf"\g<1>{region}", new)

    return re.sub(r"<style:text-properties\b[^>]*>", renamed, characters)


def in_page(characters: str, target: str) -> str:
    """A web page that says which language it is in, likewise."""

    def renamed(tag: re.Match[str]) -> str:
        return _HTML_LANGUAGE.sub(lambda given: given[1] + _kept_or(given[2], target), tag[0])

    return _HTML.sub(renamed, characters, count=1)


def with_region(code: str) -> str:
    """A language code with the region where most of its speakers live, if it has none: ``en`` is ``en-US``."""
    if "-" in code:
        return code
    likely = get_global("likely_subtags").get(code)
    return f"{code}-{likely.rpartition('_')[2]}" if likely else code


def _names(target: str) -> tuple[str, str, str]:
    return _SCRIPTS.get(base_code(target), _OTHERS)


def _replaced(raw: bytes, pattern: bytes, target: str) -> bytes:
    code = with_region(target)
    return re.sub(pattern, lambda given: given[1] + _kept_or(given[2].decode(), code).encode(), raw)


def _kept_or(given: str, code: str) -> str:
    """A language as it is, where it is the target's or none; else the target."""
    return given if given in _NONE or base_code(given) == base_code(code) else code
