"""Codes of languages: as clients write them, and as bundles do."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.models.bundle import Bundle
from tandem.service.bundles.catalog import Catalog
from tandem.service.errors import InvalidOption
from tandem.service.text.languages import base_code, is_language_code, language_name, match_language
from tests.service.support import Served, assert_error, served, tiny_bundle


@pytest.mark.parametrize(
    ("code", "known", "expected"),
    [
        ("DE", ["de"], "de"),
        ("de_at", ["de"], "de"),
        ("de-AT-1996", ["de", "de-AT"], "de-AT"),
        ("pb", ["pt-BR"], "pt-BR"),
        ("PT-br", ["pb"], "pb"),
        ("pb", ["pt"], "pt"),
        ("pt", ["pt-BR"], "pt-BR"),
        ("pt-PT", ["pt-BR"], None),
        ("zh", ["zh-Hans"], "zh-Hans"),
        ("zh-Hans", ["zh"], "zh"),
        ("zh-CN", ["zh"], "zh"),
        ("zt", ["zh-Hant"], "zh-Hant"),
        ("zh-Hant", ["zt"], "zt"),
        ("zh-TW", ["zh", "zt"], "zt"),
        ("zh-Hant-SG", ["zh", "zh-Hant"], "zh-Hant"),
        ("zh-Hant", ["zh"], None),
        ("zh", ["zt"], None),
        ("no", ["nb"], "nb"),
        ("nb-NO", ["no"], "no"),
        ("nn", ["nb"], None),
        ("iw", ["he"], "he"),
        ("he", ["iw"], "iw"),
        ("in", ["id"], "id"),
        ("ji", ["yi"], "yi"),
        ("fil", ["tl"], "tl"),
        ("en-US", ["en-GB"], None),
        ("en", ["de"], None),
    ],
)
def test_a_known_code_is_found_however_it_is_written(code: str, known: list[str], expected: str | None) -> None:
    assert match_language(code, known) == expected


@given(st.from_regex(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}", fullmatch=True))
@example("PB_00")  # its language, pb, is another way to write pt-BR, a variety itself
def test_a_code_means_itself_in_any_case(code: str) -> None:
    assert is_language_code(code)
    assert match_language(code.swapcase(), [code]) == code
    assert base_code(base_code(code)) == base_code(code)


@pytest.mark.parametrize("code", ["", "d", "de-", "deutsch", "de;", "de-AT-x", "a" * 36, "de" + "-abcdefgh" * 4, "dé"])
def test_what_is_no_code(code: str) -> None:
    assert not is_language_code(code)


def test_names_are_those_of_the_variety_where_it_has_one() -> None:
    codes = ("de", "DE-at", "pb", "pt-BR", "zt", "zh", "no", "nb", "iw", "xx")
    assert [language_name(code) for code in codes] == [
        "German", "German", "Brazilian Portuguese", "Brazilian Portuguese", "Chinese (traditional)", "Chinese",
        "Norwegian", "Norwegian Bokmål", "Hebrew", "xx",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def varieties(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("varieties")
    return {
        "pt": tiny_bundle(folder, "pt", source_languages=("pt-BR",), target_language="nb"),
        "zh": tiny_bundle(folder, "zh", source_languages=("zh-Hans", "iw"), target_language="zt"),
    }


@pytest.mark.anyio
async def test_requests_may_use_either_code(varieties: dict[str, Bundle]) -> None:
    async with served(varieties, first="pt") as service:
        for source, target in (("pb", "no"), ("pt-br", "NB"), ("PT", "nb_NO"), ("zh", "zh-Hant"), ("he", "zh-TW")):
            response = await service.translate("um dois", source=source, target=target)
            assert response.status_code == 200, response.text
        assert_error(await service.translate("um", source="pt", target="nn"), 404, "language_not_served")


@pytest.mark.anyio
async def test_a_code_that_is_too_long_is_refused_without_being_quoted(service: Served) -> None:
    long = "Zq" * 40
    for fields in (
        {"source": long, "target": "en"},
        {"source": "de", "target": long},
        {"source": "de", "target": "en", "others": {long: "x"}},
        {"source": "de", "target": "en", long * 2: "x"},
    ):
        response = await service.client.post("/translate", json={"q": "x", **fields})
        assert_error(response, 422, "invalid_field")
        assert "ZqZq" not in response.text
    form = await service.client.post("/translate", data={"q": "x", "source": long, "target": "en"})
    assert "ZqZq" not in form.text
    detail = assert_error(form, 400, "invalid_field")["detail"]
    assert detail[0]["value"] == len(long)


@pytest.mark.anyio
@pytest.mark.parametrize("content", [b"api_key=&x=1", b"", b"\xff\xfe"])
async def test_languages_come_with_any_form_body(service: Served, content: bytes) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    response = await service.client.request("GET", "/languages", content=content, headers=headers)
    assert [language["code"] for language in response.json()] == ["de", "en"]


@pytest.mark.anyio
async def test_varieties_of_one_language_are_one(many_sources: dict[str, Bundle]) -> None:
    async with served(many_sources) as service:
        catalog = Catalog(service.engine)
        for source, others in (
            ("de-DE", ["de-AT"]),
            ("de", ["de-AT"]),
            ("de-AT", ["DE"]),
            ("fr", ["cs", "de", "cs_CZ"]),
        ):
            with pytest.raises(InvalidOption, match="another language"):
                catalog.translator(source, "en", None, others)
        assert catalog.translator("de-AT", "en", None, ["fr-CA", "cs"]).model.name == "together"
        assert catalog.source_languages() == ["de"]
        assert catalog.source_languages(target="fr") == []
