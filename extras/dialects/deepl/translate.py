"""``POST /v2/translate``: DeepL's request as one of the text service's, and the result as one of DeepL's replies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

from tandem.extras.dialects.deepl.schemas import (
    DeepLTranslateReply,
    DeepLTranslateRequest,
    DeepLTranslation,
    DocumentRequest,
    SplitSentences,
    StyleFields,
)
from tandem.extras.dialects.settings import DialectSettings
from tandem.service.errors import GlossaryNotFound, LanguageNotServed, PairNotServed
from tandem.service.http.dependencies import Parts, Sender, context_of, memory_of
from tandem.service.http.error_replies import HttpError, InvalidFields, not_offered
from tandem.service.text.blocks import MarkupOptions
from tandem.service.text.glossary import Glossary
from tandem.service.text.languages import base_language, match_language
from tandem.service.text.layout import Splitting
from tandem.service.translation.requests import AUTO, TranslateTask
from tandem.service.translation.results import DecodeResult

_SPLITTING: dict[SplitSentences, Splitting] = {"0": "whole", "1": "lines", "nonewlines": "sentences"}
_END = re.compile(r"[.!?…。！？．:：;；,，、\s]*\Z")
_SAME = str.maketrans("。．！？：；，、", "..!?:;,,")
NOTICE = "X-Tandem-Notice"
"""A header: what of a request has no effect here, and which language a text was taken to be in."""
_WITHOUT_EFFECT = {
    "formality": "no model here has formality",
    "context": "no model here reads text beside the text",
    "style_id": "there are no style rules here",
    "style": "there are no styles here",
    "custom_instructions": "no model here follows instructions",
    "translation_memory_id": "a key has one memory, which is always looked at",
}
_NAMED = ("formality",)  # whose values are a few words


async def translate(
    fields: DeepLTranslateRequest, parts: Parts, owner: str, sender: Sender
) -> tuple[DeepLTranslateReply, list[str]]:
    """Translate a request's texts; ``owner`` is the caller whose glossaries and memory count.

    Returns:
        The reply, and what the client should know besides.

    Raises:
        HttpError: languages, a pair or a glossary that are not here.
        InvalidFields and what ``TextService.translate`` raises.
    """
    if _is_same_language(fields, parts):
        reply = DeepLTranslateReply(translations=[_translation(fields, text, text, "") for text in fields.text])
        return reply, [*without_effect(fields), "source_lang: is the language of target_lang, so nothing was changed"]
    glossary = await _glossary(fields, parts, owner)
    task = TranslateTask(
        q=fields.text,
        source=fields.source_lang or AUTO,
        target=fields.target_lang,
        rerank=False if fields.model_type == "latency_optimized" else None,
        timeout=min(parts.settings.part(DialectSettings).deepl_timeout, parts.settings.request_timeout),
    )
    context = context_of(
        sender,
        recall=memory_of(parts, owner),
        glossary=glossary,
        markup=_markup(fields),
        splitting=_splitting(fields),
        postprocess=preserve if fields.preserve_formatting else None,
        likeliest=True,
        rerank=fields.model_type is not None,  # quality, where it can be had: no client expects a type to be refused
    )
    try:
        result = await parts.texts.translate(task, context)
    except (LanguageNotServed, PairNotServed) as error:
        raise not_supported(error, fields.target_lang) from error
    reply = DeepLTranslateReply(translations=list(_translations(fields, result)))
    return reply, [*without_effect(fields), *_taken(fields, result)]


def not_supported(error: LanguageNotServed | PairNotServed, target: str) -> HttpError:
    """A pair that is not served, in the words that DeepL's clients know."""
    into = [pair["target"] for pair in error.detail["pairs"]]
    name = "source_lang" if match_language(target, into) else "target_lang"
    return not_offered(f"Value for '{name}' not supported: {error}")


def _is_same_language(fields: DeepLTranslateRequest, parts: Parts) -> bool:
    """Whether the texts are said to be in the language asked for, one that is served: DeepL leaves them as they are."""
    if fields.source_lang is None or base_language(fields.source_lang) != base_language(fields.target_lang):
        return False
    return any(match_language(fields.target_lang, language.targets) for language in parts.texts.catalog.languages())


def without_effect(fields: StyleFields) -> Iterator[str]:
    """What is asked for and changes nothing, each with the reason."""
    for name, reason in _WITHOUT_EFFECT.items():
        value = getattr(fields, name, None)
        if value not in (None, [], "default"):
            yield f"{name}={value}: {reason}" if name in _NAMED else f"{name}: {reason}"
    if isinstance(fields, DeepLTranslateRequest) and fields.tag_handling is None:
        names = ("ignore_tags", "splitting_tags", "non_splitting_tags")
        yield from (f"{name}: has an effect with tag_handling only" for name in names if getattr(fields, name))


def _taken(fields: DeepLTranslateRequest, result: DecodeResult) -> Iterator[str]:
    for number, guess in enumerate(result.guesses):
        if guess.instead_of:
            yield (
                f"text.{number}: seems to be in {guess.instead_of}, which is not translated into {fields.target_lang} "
                f"here, and was taken to be in {guess.language}"
            )


def _splitting(fields: DeepLTranslateRequest) -> Splitting:
    """Where texts are split; in HTML line breaks are spaces unless the request says otherwise."""
    if fields.split_sentences is None:
        return "sentences" if fields.tag_handling == "html" else "lines"
    return _SPLITTING[fields.split_sentences]


def _markup(fields: DeepLTranslateRequest) -> MarkupOptions | None:
    """How markup is read; None where there is none."""
    if fields.tag_handling is None:
        return None
    return MarkupOptions(
        xml=fields.tag_handling == "xml",
        ignore_tags=_tags(fields, fields.ignore_tags),
        splitting_tags=_tags(fields, fields.splitting_tags),
        non_splitting_tags=_tags(fields, fields.non_splitting_tags),
        outline_detection=fields.outline_detection is not False,
    )


def _tags(fields: DeepLTranslateRequest, names: Sequence[str]) -> frozenset[str]:
    """Names of elements; in HTML their case does not matter."""
    return frozenset(name.lower() if fields.tag_handling == "html" else name for name in names)


async def _glossary(fields: DeepLTranslateRequest, parts: Parts, owner: str) -> Glossary | None:
    named = named_glossaries(fields)
    if not named:
        return None
    try:
        source, target = fields.source_lang or "", fields.target_lang
        return await asyncio.to_thread(parts.glossaries.terms, owner, named, source, target)
    except GlossaryNotFound as error:
        raise no_glossary(error, named) from error


def named_glossaries(fields: DeepLTranslateRequest | DocumentRequest) -> tuple[str, ...]:
    """The glossaries that a request names. Raises InvalidFields where it does so twice, or names no source language."""
    named = fields.glossary_ids
    if fields.glossary_id is not None:
        if named:
            raise InvalidFields.of("glossary_id", "must not be given with glossary_ids", fields.glossary_id)
        named = (fields.glossary_id,)
    if named and fields.source_lang is None:
        raise InvalidFields.missing("source_lang", "is required where a glossary is given")
    return named


def no_glossary(error: GlossaryNotFound, named: Sequence[str]) -> HttpError:
    """One that is not there is a bad request, where no route of the glossary was asked for."""
    return not_offered(f"glossary_id: {error}; got {', '.join(name[:80] for name in named)!r}")


def _translations(fields: DeepLTranslateRequest, result: DecodeResult) -> Iterator[DeepLTranslation]:
    detected = [guess.language for guess in result.guesses] or [""] * len(fields.text)
    for text, written, language in zip(fields.text, result.texts, detected, strict=True):
        yield _translation(fields, text, written.text, language)


def _translation(fields: DeepLTranslateRequest, text: str, written: str, detected: str) -> DeepLTranslation:
    return DeepLTranslation(
        detected_source_language=base_language(fields.source_lang or detected).upper(),
        text=written,
        billed_characters=len(text),
        model_type_used=fields.model_type.removeprefix("prefer_") if fields.model_type else None,
    )


def preserve(source: str, translation: str) -> str:
    """``preserve_formatting``: a translation that begins in its source's case, and ends in the same punctuation.

    Punctuation that is the same in another script stays as the translation has it. By rules of our own: it is three of
    them, and libraries that restore case or punctuation guess both from words, whereas here the source says them.
    """
    if not translation.strip():
        return translation
    return _same_case(source, _same_end(source, translation))


def _same_end(source: str, translation: str) -> str:
    wanted, written = _end(source), _end(translation)
    if wanted.translate(_SAME) == written.translate(_SAME):
        return translation
    bare = translation.rstrip()
    return bare[: len(bare) - len(written)] + wanted


def _end(text: str) -> str:
    """The punctuation at the end, nothing where there is nothing else."""
    found = _END.search(text.rstrip())
    end = found[0].strip() if found else ""
    return end if end != text.strip() else ""


def _same_case(source: str, translation: str) -> str:
    first = source[_start(source) :][:1]
    place = _start(translation)
    char = translation[place : place + 1]
    if first.islower() and char.isupper() and not _is_abbreviation(translation[place:]):
        char = char.lower()
    elif first.isupper() and char.islower():
        char = char.upper()
    return translation[:place] + char + translation[place + 1 :]


def _start(text: str) -> int:
    """Where the first letter or digit is; behind the end where there is none."""
    return next((number for number, char in enumerate(text) if char.isalnum()), len(text))


def _is_abbreviation(text: str) -> bool:
    """Whether the first word is written in capitals wherever it stands: `NATO`, and English `I`."""
    word = re.match(r"\w+", text)
    return word is not None and (word[0] == "I" or any(char.isupper() for char in word[0][1:]))
