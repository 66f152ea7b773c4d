"""``POST /v2/translate``: DeepL's request as one of the text service's, and the result as one of DeepL's replies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

from service.errors import GlossaryNotFound
from service.http.credentials import Sender
from service.http.dependencies import Parts
from service.http.dialects.deepl.schemas import (
    DeepLTranslateReply,
    DeepLTranslateRequest,
    DeepLTranslation,
    SplitSentences,
)
from service.http.errors import InvalidFields, not_offered
from service.storage.glossaries import base_language
from service.text.glossary import MAX_GLOSSARY
from service.text.layout import Splitting
from service.text.markup import MarkupOptions
from service.translation.requests import AUTO, TranslateTask
from service.translation.results import DecodeResult

_SPLITTING: dict[SplitSentences, Splitting] = {"0": "whole", "1": "lines", "nonewlines": "sentences"}
_END = re.compile(r"[.!?…。！？．:：;；,，、\s]*\Z")
_SAME = str.maketrans("。．！？：；，、", "..!?:;,,")
_QUICK = "latency_optimized"
"""DeepL's name for models that answer at once; ours are all of that kind."""


async def translate(fields: DeepLTranslateRequest, parts: Parts, owner: str, sender: Sender) -> DeepLTranslateReply:
    """Translate a request's texts; ``owner`` is the caller whose glossaries count.

    Raises:
        HttpError: the request asks for what this server does not do; the message names all of it.
        GlossaryNotFound, InvalidFields and what ``TextService.translate`` raises.
    """
    refuse_what_is_not_offered(fields)
    glossary = await _glossary(fields, parts, owner)
    task = TranslateTask(
        texts=fields.text,
        source=fields.source_lang or AUTO,
        target=fields.target_lang,
        markup=_markup(fields),
        glossary=glossary,
        splitting=_splitting(fields),
        postprocess=preserve if fields.preserve_formatting else None,
        timeout=min(parts.settings.deepl_timeout, parts.settings.request_timeout),
        tag=sender.tag,
        caller=sender.caller,
    )
    return DeepLTranslateReply(translations=list(_translations(fields, await parts.texts.translate(task))))


def refuse_what_is_not_offered(fields: DeepLTranslateRequest) -> None:
    """Raises HttpError where the request asks for something that no part of this server does, and names it."""
    faults = [
        *_refused(fields, "context", "no model here reads context beside the text"),
        *_refused(fields, "style_id", "there are no style rules here"),
        *_refused(fields, "custom_instructions", "no model here follows instructions"),
        *_refused(fields, "translation_memory_id", "there are no translation memories here"),
    ]
    if fields.formality in ("more", "less"):
        faults.append(f"formality={fields.formality}: no model here has formality; prefer_{fields.formality} is taken")
    if fields.model_type == "quality_optimized":
        faults.append("model_type=quality_optimized: there is one model per pair; prefer_quality_optimized is taken")
    if fields.tag_handling is None:
        names = ("ignore_tags", "splitting_tags", "non_splitting_tags")
        faults += [f"{name}: needs tag_handling" for name in names if getattr(fields, name)]
    if faults:
        raise not_offered("not offered by this server: " + "; ".join(faults))


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


def _refused(fields: DeepLTranslateRequest, name: str, reason: str) -> Iterator[str]:
    if getattr(fields, name) not in (None, "", []):
        yield f"{name}: {reason}"


async def _glossary(fields: DeepLTranslateRequest, parts: Parts, owner: str) -> dict[str, str]:
    """The terms of the glossaries that the request names; of a term in several, the first one's."""
    named: Sequence[str] = fields.glossary_ids
    if fields.glossary_id is not None:
        if named:
            raise InvalidFields.of("glossary_id", "must not be given with glossary_ids", fields.glossary_id)
        named = (fields.glossary_id,)
    if not named:
        return {}
    if fields.source_lang is None:
        fault = {"field": "source_lang", "message": "is required where a glossary is given"}
        raise InvalidFields("source_lang: is required where a glossary is given", [fault])
    terms: dict[str, str] = {}
    for identifier in named:
        terms = await _entries(fields, parts, owner, identifier) | terms
    if len(terms) > MAX_GLOSSARY:
        raise InvalidFields.of("glossary_ids", f"may name at most {MAX_GLOSSARY} terms in all", len(terms))
    return terms


async def _entries(fields: DeepLTranslateRequest, parts: Parts, owner: str, identifier: str) -> dict[str, str]:
    """A glossary's terms; one that is not there is a bad request here, since no route of the glossary was asked for."""
    pair = (base_language(fields.source_lang or ""), base_language(fields.target_lang))
    try:
        return await asyncio.to_thread(parts.glossaries.entries, owner, identifier, *pair)
    except GlossaryNotFound as error:
        raise not_offered(f"glossary_id: {error}; got {identifier[:80]!r}") from error


def _translations(fields: DeepLTranslateRequest, result: DecodeResult) -> Iterator[DeepLTranslation]:
    detected = [guess.language for guess in result.guesses] or [""] * len(fields.text)
    for text, written, language in zip(fields.text, result.texts, detected, strict=True):
        yield DeepLTranslation(
            detected_source_language=base_language(fields.source_lang or language).upper(),
            text=written.text,
            billed_characters=len(text),
            model_type_used=_QUICK if fields.model_type else None,
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
