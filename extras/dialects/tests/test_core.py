"""What the core does for every request, it does for those of dialects: bounds, objectives, pivots, reranking."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tandem.extras.dialects.deepl.schemas import DeepLTranslateRequest, GlossaryChange, MultilingualGlossaryRequest
from tandem.extras.dialects.openai.schemas import ChatRequest
from tandem.extras.reranking.tests import test_requests as reranking
from tandem.extras.reranking.tests.test_requests import Both, both
from tandem.service.http.error_replies import InvalidFields, invalid_fields
from tandem.service.http.intake import validate
from tests.service.http.test_operations import metrics
from tests.service.support import Served
from tests.service.telemetry.test_objectives import outcomes
from tests.service.translation import test_pivot as pivot
from tests.service.translation.test_pivot import Chain, chain, said

__all__ = ["both", "chain"]


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (ChatRequest, {"model": "m", "messages": [{"role": "user", "content": [{}] * 900}] * 900}),
        (DeepLTranslateRequest, {"text": [1] * 900, "target_lang": "en"}),
        (MultilingualGlossaryRequest, {"name": "n", "dictionaries": [1] * 900}),
        (GlossaryChange, {"dictionaries": [1] * 900}),
    ],
)
def test_a_list_is_checked_up_to_its_first_fault(model: type[BaseModel], fields: dict[str, Any]) -> None:
    """A megabyte of them would hold up the event loop for seconds."""
    with pytest.raises(InvalidFields) as refused:
        validate(model, fields, strict=False)
    assert len(refused.value.detail) <= 2  # what may be a text or a list is refused as either


def test_bound_and_value_are_named_in_our_words() -> None:
    with pytest.raises(ValidationError) as raised:
        DeepLTranslateRequest.model_validate({"text": ["a"], "target_lang": "EN", "tag_handling": "md"})
    assert "must be 'xml' or 'html'" in str(invalid_fields(raised.value))


@pytest.mark.anyio
async def test_deepls_route_counts_too(service: Served) -> None:
    for text in ("guten morgen", "das haus. " * 250):
        body = {"text": [text], "source_lang": "DE", "target_lang": "EN"}
        assert (await service.client.post("/v2/translate", json=body)).status_code == 200
    found = await metrics(service.client)
    assert outcomes(found, "/v2/translate") == {"answered": 2}
    assert found["tandem_text_request_seconds_count{priority=interactive,route=/v2/translate}"] == 1
    assert found["tandem_text_request_seconds_count{priority=bulk,route=/v2/translate}"] == 1


@pytest.mark.anyio
async def test_deepls_route_goes_through_a_third_language(chain: Chain) -> None:
    deepl = await chain.client.post(
        "/v2/translate", json={"text": [pivot.TEXT], "source_lang": "FR", "target_lang": "DE"}
    )
    (translation,) = deepl.json()["translations"]
    assert (translation["text"], translation["billed_characters"]) == (said(pivot.TEXT), len(pivot.TEXT))
    pairs = (await chain.client.get("/v2/glossary-language-pairs")).json()["supported_languages"]
    assert {"source_lang": "fr", "target_lang": "de"} in pairs


@pytest.mark.anyio
async def test_deepl_s_model_types_choose(both: Both) -> None:
    body = {"text": [reranking.TEXT], "source_lang": "DE", "target_lang": "EN"}
    for name, text in (
        ("quality_optimized", reranking.TEXT),
        ("prefer_quality_optimized", reranking.TEXT),
        ("latency_optimized", reranking.WRONG),
    ):
        reply = await both.client.post("/v2/translate", json={**body, "model_type": name})
        (found,) = reply.json()["translations"]
        assert (found["text"], found["model_type_used"]) == (text, name.removeprefix("prefer_"))
    both.engine.remove("en-de")
    reply = await both.client.post("/v2/translate", json={**body, "model_type": "quality_optimized"})
    assert reply.json()["translations"][0]["text"] == reranking.WRONG, "DeepL has no pair without it"
