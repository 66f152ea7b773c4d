"""Language codes as DeepL writes them: in upper case, targets with the variety where its clients insist on one."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from service.storage.glossaries import base_language
from service.text.languages import language_name

# DeepL's clients refuse these two as targets and ask for a variety. A model of the language serves either.
_VARIETIES = {
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
}


class DeepLLanguage(BaseModel):
    """A language of GET /v2/languages."""

    language: str = Field(examples=["DE"])
    name: str = Field(examples=["German"])
    supports_formality: bool | None = Field(default=None, description="Of targets; no model here has it.")


def source_code(code: str) -> str:
    """A source language, which DeepL names without variety."""
    return base_language(code).upper()


def source_languages(codes: Iterable[str]) -> list[DeepLLanguage]:
    """Source languages, each once, in order of their codes."""
    bases = sorted({base_language(code) for code in codes})
    return [DeepLLanguage(language=base.upper(), name=language_name(base)) for base in bases]


def target_languages(codes: Iterable[str]) -> list[DeepLLanguage]:
    """Target languages, a language of which DeepL's clients want a variety by its varieties."""
    found: dict[str, str] = {}
    for code in sorted(set(codes)):
        for name, title in _VARIETIES.get(code.lower(), ((code.upper(), language_name(code)),)):
            found[name] = title
    return [DeepLLanguage(language=code, name=name, supports_formality=False) for code, name in sorted(found.items())]
