"""What load tests send: mixtures, requests that the service's schema takes, answers that are looked at."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import pytest

from tandem.extras.loadtest.scenarios import SCENARIOS, Call, Calls, Pair, Scenario, choose_pair, served_pairs
from tandem.extras.loadtest.tests.stand_in import StandIn, running
from tandem.models.errors import ConfigError
from tandem.service.api.schemas import TranslateRequest, read_object

DE_EN = Pair("de", "en")


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_scenarios_are_the_mixtures_that_they_say(name: Scenario) -> None:
    shares = SCENARIOS[name]
    assert sum(shares.values()) == pytest.approx(1)
    found = Counter(call.kind for call in itertools.islice(Calls.of(name, DE_EN, "1"), 500))
    assert found.keys() <= shares.keys()
    for kind, share in shares.items():
        assert found[kind] / 500 == pytest.approx(share, abs=0.12)


def test_the_service_takes_the_requests() -> None:
    for name in SCENARIOS:
        for call in itertools.islice(Calls.of(name, DE_EN, "1"), 30):
            request = read_object(TranslateRequest, json.loads(call.body), strict=False)
            assert (request.source, request.target) == ("de", "en")
            texts = request.q if isinstance(request.q, list) else [request.q]
            assert len(texts) == call.texts
            assert sum(map(len, texts)) == call.characters
            assert (request.format == "html") == (call.kind == "page")


def test_the_same_seed_sends_the_same() -> None:
    def first(seed: str) -> list[bytes]:
        return [call.body for call in itertools.islice(Calls.of("mixed", DE_EN, seed), 40)]

    assert first("1") == first("1") != first("2")


@pytest.mark.parametrize(
    ("kind", "texts", "reply", "fault"),
    [
        ("sentence", 1, {"translatedText": "A"}, ""),
        ("sentence", 1, {"translatedText": " "}, "1 of 1 translations are missing or empty"),
        ("sentence", 1, {"translatedText": ["A"]}, "1 of 1 translations are missing or empty"),
        ("sentence", 1, {"error": "no"}, "1 of 1 translations are missing or empty"),
        ("texts", 2, {"translatedText": ["A", "B"]}, ""),
        ("texts", 2, {"translatedText": ["A", ""]}, "1 of 2 translations are missing or empty"),
        ("texts", 2, {"translatedText": ["A"]}, "the answer must have 2 translations"),
        ("texts", 2, {"translatedText": "AB"}, "the answer must have 2 translations"),
        ("page", 1, [], "1 of 1 translations are missing or empty"),
    ],
)
def test_answers_are_looked_at(kind: Any, texts: int, reply: Any, fault: str) -> None:
    assert Call(kind, b"", texts, 1).fault(json.dumps(reply).encode()) == fault


def test_answers_that_are_no_json_are_looked_at() -> None:
    assert Call("sentence", b"", 1, 1).fault(b"<html>") == "the answer is not JSON"


def test_pairs_are_asked_of_the_service() -> None:
    languages = [
        {"code": "xx", "name": "X", "targets": ["en", "xx"]},
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]
    with running(StandIn(languages)) as service:
        pairs = served_pairs(service.url)
    assert pairs == [Pair("xx", "en"), DE_EN]
    assert choose_pair(pairs, "", ("de", "en")) == DE_EN
    assert choose_pair(pairs, "", ("fr",)) == pairs[0]
    assert choose_pair(pairs, "XX-en", ("de",)) == pairs[0]
    with pytest.raises(ConfigError, match="one of xx-en, de-en, but is en-de"):
        choose_pair(pairs, "en-de", ("de",))


@pytest.mark.parametrize("languages", [{}, [1], [{"code": "de"}], "no", [], [{"code": "de", "targets": ["de"]}]])
def test_a_service_that_translates_nothing_is_refused(languages: Any) -> None:
    with running(StandIn(languages)) as service, pytest.raises(ConfigError, match="must"):
        served_pairs(service.url)
