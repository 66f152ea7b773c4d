"""DeepL's routes for glossaries: version 2, of one language pair each, and version 3, of several."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Response

from tandem.extras.accounts.glossaries import (
    MAX_DICTIONARIES,
    DictionarySize,
    Glossaries,
    GlossaryDictionary,
    StoredGlossary,
)
from tandem.extras.dialects.deepl.document import deepl_body, deepl_errors
from tandem.extras.dialects.deepl.routes import CallerDep, keyed, served_pairs, traced
from tandem.extras.dialects.deepl.schemas import (
    DeepLGlossaries,
    DeepLGlossary,
    DictionaryEntries,
    DictionaryFields,
    DictionaryInfo,
    GlossaryChange,
    GlossaryEntries,
    GlossaryRequest,
    MultilingualGlossaries,
    MultilingualGlossary,
    MultilingualGlossaryRequest,
)
from tandem.service.callers import Caller
from tandem.service.errors import GlossaryNotFound
from tandem.service.http.dependencies import Parts, PartsDep, RequestId
from tandem.service.http.error_replies import InvalidFields
from tandem.service.http.parts import BodyBounds, HttpPart
from tandem.service.settings import Settings
from tandem.service.text.glossary import MAX_STORED_GLOSSARY
from tandem.service.text.languages import base_language

EntriesFormat = Literal["tsv", "csv"]
_PATHS = re.compile(r"/v[23]/glossaries(/[^/]*(/dictionaries)?)?")
_MAX_BYTES = 32 << 20  # DeepL's bound is 10 MB of terms, of which JSON may write two bytes as six
_TSV = "text/tab-separated-values"
_NEW = deepl_errors(400, 403, 408, 413, 429, 503)
_CHANGED = deepl_errors(400, 403, 404, 408, 413, 429, 503)
_LISTED, _KEPT = deepl_errors(400, 403, 429, 503), deepl_errors(400, 403, 404, 429, 503)

router = APIRouter(tags=["DeepL glossaries"], dependencies=[Depends(traced)])
Identifier = Annotated[str, Path(alias="glossary_id", max_length=200)]
Code = Annotated[str, Query(max_length=35)]
Create = Annotated[tuple[Caller, GlossaryRequest], keyed(GlossaryRequest)]
CreateMultilingual = Annotated[tuple[Caller, MultilingualGlossaryRequest], keyed(MultilingualGlossaryRequest)]
Change = Annotated[tuple[Caller, GlossaryChange], keyed(GlossaryChange)]
Replace = Annotated[tuple[Caller, DictionaryFields], keyed(DictionaryFields)]

# No route is a coroutine: the store blocks, and FastAPI calls such functions in threads.


@router.post("/v2/glossaries", status_code=201, responses=_NEW, openapi_extra=deepl_body(GlossaryRequest))
def create(given: Create, parts: PartsDep) -> DeepLGlossary:
    """Store a glossary of one language pair."""
    caller, fields = given
    return _of_one_pair(parts.resource(Glossaries).create(caller.name, fields.name, _dictionaries(parts, [fields])))


@router.get("/v2/glossaries", responses=_LISTED)
def listing(parts: PartsDep, caller: CallerDep) -> DeepLGlossaries:
    """The caller's glossaries of one language pair; those of several are listed by version 3."""
    stored = parts.resource(Glossaries).of_owner(caller.name)
    return DeepLGlossaries(glossaries=[_of_one_pair(one) for one in stored if len(one.dictionaries) == 1])


@router.get("/v2/glossaries/{glossary_id}", responses=_KEPT)
def get(identifier: Identifier, parts: PartsDep, caller: CallerDep) -> DeepLGlossary:
    """One glossary of one language pair."""
    return _of_one_pair(parts.resource(Glossaries).get(caller.name, identifier))


@router.get(
    "/v2/glossaries/{glossary_id}/entries",
    response_class=Response,
    responses={200: {"content": {_TSV: {"example": "Gleis\ttrack"}}}, **_KEPT},
)
def entries(identifier: Identifier, parts: PartsDep, caller: CallerDep, request_id: RequestId) -> Response:
    """The terms of a glossary of one language pair, tab-separated."""
    found = _of_one_pair(parts.resource(Glossaries).get(caller.name, identifier))
    terms = parts.resource(Glossaries).entries(caller.name, identifier, found.source_lang, found.target_lang)
    return Response(format_tsv(terms), media_type=_TSV, headers={"X-Trace-ID": request_id})


@router.delete("/v2/glossaries/{glossary_id}", status_code=204, responses=_KEPT)
@router.delete("/v3/glossaries/{glossary_id}", status_code=204, responses=_KEPT)
def delete(identifier: Identifier, parts: PartsDep, caller: CallerDep) -> None:
    """Delete a glossary."""
    parts.resource(Glossaries).delete(caller.name, identifier)


@router.post(
    "/v3/glossaries",
    status_code=201,
    responses=_NEW,
    openapi_extra=deepl_body(MultilingualGlossaryRequest, forms=False),
)
def create_multilingual(given: CreateMultilingual, parts: PartsDep) -> MultilingualGlossary:
    """Store a glossary of several language pairs."""
    caller, fields = given
    dictionaries = _dictionaries(parts, fields.dictionaries)
    return _of_any_pairs(parts.resource(Glossaries).create(caller.name, fields.name, dictionaries))


@router.get("/v3/glossaries", responses=_LISTED)
def list_multilingual(parts: PartsDep, caller: CallerDep) -> MultilingualGlossaries:
    """All of the caller's glossaries."""
    return MultilingualGlossaries(
        glossaries=[_of_any_pairs(one) for one in parts.resource(Glossaries).of_owner(caller.name)]
    )


@router.get("/v3/glossaries/{glossary_id}", responses=_KEPT)
def get_multilingual(identifier: Identifier, parts: PartsDep, caller: CallerDep) -> MultilingualGlossary:
    """One glossary."""
    return _of_any_pairs(parts.resource(Glossaries).get(caller.name, identifier))


@router.patch("/v3/glossaries/{glossary_id}", responses=_CHANGED, openapi_extra=deepl_body(GlossaryChange, forms=False))
def change(given: Change, identifier: Identifier, parts: PartsDep) -> MultilingualGlossary:
    """Rename a glossary, or add terms to its dictionaries, which are made where there is none of that pair."""
    caller, fields = given
    if fields.name is None and not fields.dictionaries:
        raise InvalidFields.of("name", "must be given, or dictionaries", None)
    dictionaries = _dictionaries(parts, fields.dictionaries)
    return _of_any_pairs(parts.resource(Glossaries).change(caller.name, identifier, fields.name, dictionaries))


@router.put("/v3/glossaries/{glossary_id}/dictionaries", responses=_CHANGED, openapi_extra=deepl_body(DictionaryFields))
def replace_dictionary(given: Replace, identifier: Identifier, parts: PartsDep) -> DictionaryInfo:
    """Store a dictionary in the place of the one of its language pair."""
    caller, fields = given
    (dictionary,) = _dictionaries(parts, [fields])
    return _size(parts.resource(Glossaries).replace(caller.name, identifier, dictionary))


@router.delete("/v3/glossaries/{glossary_id}/dictionaries", status_code=204, responses=_KEPT)
def delete_dictionary(
    identifier: Identifier, parts: PartsDep, caller: CallerDep, source_lang: Code, target_lang: Code
) -> None:
    """Delete the dictionary of a language pair."""
    parts.resource(Glossaries).delete_dictionary(caller.name, identifier, source_lang, target_lang)


@router.get("/v3/glossaries/{glossary_id}/entries", responses=_KEPT)
def multilingual_entries(
    identifier: Identifier, parts: PartsDep, caller: CallerDep, source_lang: Code, target_lang: Code
) -> GlossaryEntries:
    """The terms of a language pair, tab-separated."""
    found = parts.resource(Glossaries).entries(caller.name, identifier, source_lang, target_lang)
    source, target = base_language(source_lang), base_language(target_lang)
    only = DictionaryEntries(source_lang=source, target_lang=target, entries=format_tsv(found))
    return GlossaryEntries(dictionaries=[only])


def _dictionaries(parts: Parts, given: Sequence[DictionaryFields]) -> list[GlossaryDictionary]:
    """Dictionaries as they are stored. Raises InvalidFields: their terms or bounds, or a pair that is not served."""
    if len(given) > MAX_DICTIONARIES:
        raise InvalidFields.of("dictionaries", f"must be 1 to {MAX_DICTIONARIES}", len(given))
    served = served_pairs(parts)
    found = []
    for one in given:
        terms = parse_entries(one.entries, one.entries_format, one.source_lang, one.target_lang)
        dictionary = GlossaryDictionary.of(one.source_lang, one.target_lang, terms)
        if (dictionary.source, dictionary.target) not in served:
            names = ", ".join(f"{source}-{target}" for source, target in sorted(served)) or "none"
            message = f"must be a pair that is translated here ({names})"
            raise InvalidFields.of("target_lang", message, f"{dictionary.source}-{dictionary.target}")
        found.append(dictionary)
    return found


def _of_one_pair(stored: StoredGlossary) -> DeepLGlossary:
    """As version 2 shows it. Raises GlossaryNotFound for one of none or several language pairs."""
    if len(stored.dictionaries) != 1:
        raise GlossaryNotFound("this glossary is not of one language pair; version 3 of the API shows it")
    (only,) = stored.dictionaries
    return DeepLGlossary(
        glossary_id=stored.id,
        name=stored.name,
        ready=True,
        source_lang=only.source,
        target_lang=only.target,
        creation_time=_time(stored.created),
        entry_count=only.count,
    )


def _of_any_pairs(stored: StoredGlossary) -> MultilingualGlossary:
    return MultilingualGlossary(
        glossary_id=stored.id,
        name=stored.name,
        dictionaries=[_size(one) for one in stored.dictionaries],
        creation_time=_time(stored.created),
    )


def _size(one: DictionarySize) -> DictionaryInfo:
    return DictionaryInfo(source_lang=one.source, target_lang=one.target, entry_count=one.count)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def parse_entries(text: str, kind: EntriesFormat, source: str, target: str) -> dict[str, str]:
    """Source term -> target term; space around terms is no part of them, and empty lines count for nothing.

    A line of CSV may name the two languages behind the terms, as in files that DeepL writes.

    Raises:
        InvalidFields: a line has no two terms or names other languages, a term stands twice, or there are too many.
    """
    entries: dict[str, str] = {}
    for number, row in _rows(text, kind):
        place = f"entries, line {number}"
        if len(row) not in ((2, 4) if kind == "csv" else (2,)):
            name, separator = ("comma", ",") if kind == "csv" else ("tab", "\t")
            bound = f"must be a source and a target term with one {name} between"
            raise InvalidFields.of(place, bound, separator.join(row))
        for given, wanted in zip(row[2:], (source, target), strict=False):
            if base_language(given) != base_language(wanted):
                raise InvalidFields.of(place, f"must be of the dictionary's language {wanted}", given)
        term = row[0]
        if term in entries:
            raise InvalidFields.of(place, "must not name a source term that another line has", term)
        entries[term] = row[1]
        if len(entries) > MAX_STORED_GLOSSARY:
            bound = f"may hold at most {MAX_STORED_GLOSSARY} terms"
            raise InvalidFields.of("entries", bound, f"more than {MAX_STORED_GLOSSARY}")
    return entries


def format_tsv(entries: Mapping[str, str]) -> str:
    """Entries as tab-separated values."""
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())


def _rows(text: str, kind: EntriesFormat) -> Iterator[tuple[int, list[str]]]:
    """Number (from 1) and fields of each line that is not empty."""
    if kind == "tsv":
        rows: Iterator[list[str]] = (line.removesuffix("\r").split("\t") for line in text.split("\n"))
    else:
        rows = iter(csv.reader(io.StringIO(text, newline=""), strict=True))
    number = 0
    try:
        for number, row in enumerate(rows, 1):
            if any(value.strip() for value in row):
                yield number, [value.strip() for value in row]
    except csv.Error as error:
        raise InvalidFields.of("entries", "must be comma-separated values", f"line {number + 1}: {error}") from error


def _bounds(settings: Settings) -> BodyBounds:
    return BodyBounds(large=(_PATHS, max(_MAX_BYTES, settings.max_body_bytes)))


_ABOUT = "Glossaries that the server keeps, as DeepL's clients store them."
HTTP = HttpPart(
    routes=router.routes,
    bodies=_bounds,
    tags=({"name": "DeepL glossaries", "description": _ABOUT},),
    models=(GlossaryRequest, MultilingualGlossaryRequest, GlossaryChange, DictionaryFields),
)
