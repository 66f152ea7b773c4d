"""Which language a text is in: ``Detector`` and ``POST /detect``."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tandem.service.text.detection import Detector, Guess
from tests.service.support import Served, assert_error, served

SENTENCES = {
    "de": "Wo ist bitte der Bahnhof?",
    "en": "Could you tell me where the station is?",
    "fr": "Pourriez-vous me dire où se trouve la gare ?",
    "es": "¿Podría decirme dónde está la estación?",
    "it": "Mi può dire dov'è la stazione?",
    "nl": "Kunt u mij zeggen waar het station is?",
    "cs": "Můžete mi říct, kde je tady nádraží?",
    "pl": "Czy może mi pan powiedzieć, gdzie jest dworzec?",
    "ru": "Скажите, пожалуйста, где находится вокзал?",
    "el": "Μπορείτε να μου πείτε πού είναι ο σταθμός;",
    "ja": "駅はどこにあるか教えていただけますか。",
    "ar": "هل يمكنك أن تخبرني أين تقع المحطة؟",
}
SURE = 60.0


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(lambda: ("de", "en"))


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_named_whatever_is_served(detector: Detector, language: str) -> None:
    for text in (
        SENTENCES[language],
        SENTENCES[language].upper(),
        f"https://example.com/en/the/one {{name}} {SENTENCES[language]}",
    ):
        best = detector.detect(text)[0]
        assert best.language == language
        assert best.confidence > SURE


def test_what_is_served_is_preferred_where_the_text_leaves_it_open(detector: Detector) -> None:
    for code in ("da", "no"):
        text = "Han er her"  # both languages
        assert detector.detect(text, preferred=[code])[0].language == code
    assert detector.detect("xqz", preferred=["cs"])[0].language == "cs"
    assert detector.detect(SENTENCES["fr"], preferred=["de"])[0].language == "fr"


def test_guesses_are_shares_best_first_and_say_how_sure_they_are(detector: Detector) -> None:
    guesses = detector.detect("Haus")
    assert guesses == sorted(guesses, key=lambda guess: -guess.confidence)
    assert sum(guess.confidence for guess in guesses) <= 100.5
    assert guesses[0].confidence < detector.detect("Das Haus ist schön und alt.")[0].confidence <= 100


@pytest.mark.parametrize("text", ["", " \n", "😀👨‍👩‍👧", "12:30 + 4", "?!", "\0\u202e", "1️⃣", "\ud800"])
def test_without_letters_there_is_nothing_to_tell(text: str) -> None:
    assert Detector(lambda: ("nl", "de")).detect(text) == [Guess("nl", 0.0)]
    assert Detector(lambda: ()).detect(text) == [Guess("en", 0.0)]


@pytest.mark.parametrize(
    ("served_codes", "text", "expected"),
    [
        (("pt-BR",), "Onde fica a estação de trem, por favor?", "pt-BR"),
        (("pb",), "Onde fica a estação de trem, por favor?", "pb"),
        (("nb",), "Hvor er jernbanestasjonen, og når går toget?", "nb"),
        (("iw",), "איפה תחנת הרכבת?", "iw"),
        (("zh-Hans", "zt"), "這是一個測試，請問車站在哪裡？", "zt"),
        (("zh-Hans", "zt"), "这是一个测试，请问车站在哪里？", "zh-Hans"),
        (("zh",), "這是一個測試，請問車站在哪裡？", "zh"),
    ],
)
def test_the_code_is_the_one_that_is_served(
    detector: Detector, served_codes: tuple[str, ...], text: str, expected: str
) -> None:
    assert detector.detect(text, preferred=served_codes)[0].language == expected


@given(text=st.text(st.characters(exclude_categories=[]), max_size=300))
def test_any_text_gets_a_guess(detector: Detector, text: str) -> None:
    guesses = detector.detect(text)
    assert 1 <= len(guesses) <= 5
    assert all(0 <= guess.confidence <= 100 for guess in guesses)
    assert len({guess.language for guess in guesses}) == len(guesses)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "e" + "\u0301" * 10_000,
        "e" + "\u0327\u0301" * 200_000,
        "a\0" * 500_000,
        "\u202e" * 500_000 + "a",
        "😀" * 250_000,
        "@" * 1_000_000,
        "a@" * 500_000,
        "http://" * 100_000,
        "{a" * 300_000,
        "\u200da" * 300_000,
    ],
)
def test_hostile_text_costs_no_more_than_its_beginning(text: str) -> None:
    seen: list[int] = []

    class Watched(Detector):
        def _shares(self, sample: str, codes: object) -> tuple[dict[str, float], dict[str, float]]:
            seen.append(len(sample))
            return {"de": 1.0}, {"de": 1.0}

    Watched(lambda: ("de",)).detect(text)
    assert all(length <= 4_000 for length in seen)


def test_letters_after_a_long_beginning_without_any_are_found(detector: Detector) -> None:
    assert detector.detect("1 " * 100_000 + SENTENCES["fr"])[0].language == "fr"
    assert detector.detect("\u202e" + SENTENCES["de"] + "\u202c")[0].language == "de"


def test_the_model_is_loaded_once_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from tandem.service.text import detection

    loaded: list[object] = []
    real = detection._Model

    def counting() -> object:
        loaded.append(None)
        return real()

    monkeypatch.setattr(detection, "_Model", counting)
    shared = Detector(lambda: ("de",))
    assert not loaded
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda text=text: found.append(shared.detect(text)[0].language))
        for text in SENTENCES.values()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(SENTENCES)
    assert len(loaded) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["json", "text", "form", "query"])
async def test_detect_answers_best_first(service: Served, way: str) -> None:
    fields = {"q": SENTENCES["de"]}
    if way == "form":
        response = await service.client.post("/detect", data=fields | {"api_key": "", "extra": "1"})
    elif way == "query":
        response = await service.client.post("/detect", params=fields)
    else:
        response = await service.client.post("/detect", json=fields if way == "json" else {"text": fields["q"]})
    assert response.status_code == 200, response.text
    body = response.json()
    assert set(body[0]) == {"language", "confidence"}
    assert (body[0]["language"], body[0]["confidence"] > SURE) == ("de", True)
    assert body == sorted(body, key=lambda guess: -guess["confidence"])


@pytest.mark.anyio
async def test_detect_refuses_what_it_cannot_read(service: Served, bundles: dict[str, Bundle]) -> None:
    assert_error(await service.client.post("/detect", json={}), 422, "invalid_field")
    assert_error(await service.client.post("/detect", json={"q": ["a", "b"]}), 422, "invalid_field")
    assert_error(await service.client.post("/detect", json={"q": "a", "x": 1}), 422, "invalid_field")
    assert_error(await service.client.post("/detect", data={"q": ["a", "b"]}), 422, "invalid_field")
    async with served(bundles, Settings(max_characters=10, shutdown_timeout=5)) as small:
        refused = assert_error(await small.client.post("/detect", json={"q": "a" * 11}), 413, "too_large")
        assert refused["detail"] == {"bound": 10, "value": 11}


@pytest.mark.parametrize(
    ("text", "language"), [("Tag", "de"), ("Yes", "en"), ("hello handsome", "en"), ("Bonjour", "fr")]
)
def test_a_word_or_two_are_in_a_served_language(text: str, language: str) -> None:
    first, *others = Detector(lambda: ("de", "fr", "en")).detect(text)
    assert first.language == language
    assert all(one.confidence <= first.confidence for one in others)
