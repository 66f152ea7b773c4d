"""What a request costs besides decoding: changes of thread, tokenising, and what is worked out once per bundle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandem.models.bundle import Bundle
from tandem.models.vocabulary import SentencePieceVocabulary
from tandem.service import errors
from tandem.service.bundles.catalog import Catalog
from tandem.service.bundles.served import ServedModel, Tokeniser
from tandem.service.engine import Engine
from tandem.service.errors import InvalidOption, ServiceError, TooLarge
from tandem.service.http.error_replies import reply_for
from tandem.service.settings import Settings
from tandem.service.translation.requests import TranslateTask, check_size
from tests.service.support import Served, copying, served, tiny_bundle

TEXT = " - Wo ist der Bahnhof heute? Guten Morgen.\n\nDas Haus ist gross"


@pytest.fixture
def submissions(monkeypatch: pytest.MonkeyPatch) -> Callable[[Served], list[Any]]:
    """Notes what an app's text threads are given from here on."""

    def of(service: Served) -> list[Any]:
        threads, noted = service.app.state.parts.texts._threads._threads, []
        submit = threads.submit

        def noting(work: Any, *args: Any) -> Any:
            noted.append(work)
            return submit(work, *args)

        monkeypatch.setattr(threads, "submit", noting)
        return noted

    return of


@pytest.mark.anyio
@pytest.mark.parametrize("fields", [{}, {"source": "auto"}, {"details": True}])
async def test_a_request_is_read_in_one_turn_and_written_in_another(
    service: Served, submissions: Callable[[Served], list[Any]], fields: dict[str, Any]
) -> None:
    noted = submissions(service)
    assert (await service.translate([TEXT * 10, "das haus"], **fields)).status_code == 200
    assert len(noted) == 2


@pytest.mark.anyio
@pytest.mark.parametrize(("fields", "turns"), [({}, 0), ({"details": True}, 0), ({"protect": ["x"]}, 2)])
async def test_a_sentence_wakes_no_text_thread(
    service: Served, submissions: Callable[[Served], list[Any]], fields: dict[str, Any], turns: int
) -> None:
    """Unless what it asks for may take long whatever its length."""
    noted = submissions(service)
    assert (await service.translate("das haus", **fields)).status_code == 200
    assert len(noted) == turns


@pytest.mark.anyio
async def test_a_sentence_is_tokenised_once(bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    encode = SentencePieceVocabulary.encode

    def counting(self: SentencePieceVocabulary, text: str, **options: Any) -> list[int]:
        seen[text] += 1
        return encode(self, text, **options)

    async with served(bundles) as service:
        await service.translate(" ".join(reversed(TEXT.split())))  # what is asked once of a character is asked now
        monkeypatch.setattr(SentencePieceVocabulary, "encode", counting)
        reply = await service.translate(TEXT)
        assert reply.json()["translatedText"] == TEXT
    assert seen == Counter(["Wo ist der Bahnhof heute?", "Guten Morgen.", "Das Haus ist gross"])


def test_the_catalog_works_a_bundle_out_when_it_is_loaded(tmp_path: Path) -> None:
    engine, bundle = Engine(), tiny_bundle(tmp_path)
    catalog = Catalog(engine)
    engine.add(bundle, copying(bundle))
    first = catalog.translator("de", "en", None).model
    assert catalog.translator("de", "en", None).model is first
    other = replace(bundle, manifest=replace(bundle.manifest, name="de-en@2"))
    engine.add(other, copying(other))
    engine.point("de-en", "de-en@2")
    assert catalog.translator("de", "en", None).model.bundle is other
    engine.remove("de-en@2")
    engine.point("de-en", "de-en")
    assert catalog.translator("de", "en", None).model.bundle is bundle


def test_what_was_counted_is_what_is_encoded(tmp_path: Path) -> None:
    model = ServedModel.of(tiny_bundle(tmp_path))
    tokens = Tokeniser(model)
    for text in ("wo ist  der\nbahnhof", "", "⟨ph0⟩ ⟨de⟩", " a "):
        assert (tokens.ids(text),) == model.encode((text,))
        assert tokens.measure(text) == len(model.encode((text,))[0]) - 1


def test_limits_are_the_settings() -> None:
    limits = Settings(max_texts=2, max_characters=5)
    assert check_size(TranslateTask(q=["ab", "cde"], target="en"), limits) == 5
    with pytest.raises(TooLarge) as large:
        check_size(TranslateTask(q=["ab", "cdef"], target="en"), limits)
    assert large.value.detail == {"bound": 5, "value": 6}
    with pytest.raises(InvalidOption) as many:
        check_size(TranslateTask(q=["a", "b", "c"], target="en"), limits)
    assert (many.value.field, many.value.bound, many.value.value) == ("q", "may hold at most 2 texts", 3)
    with pytest.raises(InvalidOption) as uneven:
        check_size(TranslateTask(q=["a"], target="en", others={"fr": ["b", "c"]}), limits)
    assert (uneven.value.field, uneven.value.value) == ("others.fr", 2)


REPLIES = [
    (InvalidOption("q", "must be shorter", 9, "cut it"), 422, "invalid_field"),
    (errors.TooLarge("characters", 5, 6, "send less"), 413, "too_large"),
    (errors.LanguageNotServed("no"), 404, "language_not_served"),
    (errors.PairNotServed("no"), 404, "pair_not_served"),
    (errors.ModelNotFound("no"), 404, "model_not_found"),
    (errors.GlossaryNotFound("no"), 404, "glossary_not_found"),
    (errors.KeyMissing(), 401, "key_missing"),
    (errors.KeyInvalid(), 403, "key_invalid"),
    (errors.AdminRequired("no"), 403, "admin_required"),
]


def test_every_error_of_the_domain_has_a_reply() -> None:
    leaves = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ServiceError)}
    assert {type(error) for error, _, _ in REPLIES} == leaves - {ServiceError}
    for error, status, code in REPLIES:
        reply = reply_for(error)
        assert (reply.status, reply.code) == (status, code), error
    fault = reply_for(REPLIES[0][0])
    assert fault.message == "q: must be shorter, but is 9; cut it"
    assert fault.detail == [{"field": "q", "message": "must be shorter; cut it", "value": 9}]


@pytest.mark.anyio
async def test_what_is_decoded_again_is_counted(service: Served) -> None:
    """The copying model never writes the term, so that its sentence is tried as long as there are ways."""
    counted = service.app.state.parts.texts.decoded_tokens
    await service.translate("guten morgen")
    assert counted["first"] > 0 and not counted["again"]
    await service.translate("das haus ist alt", glossary={"haus": "home"})
    assert counted["again"] > 0
    assert 'tandem_decoded_tokens_total{attempt="again"} ' in (await service.client.get("/metrics")).text
