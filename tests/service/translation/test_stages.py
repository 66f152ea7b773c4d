"""Stages one after another, whatever they do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import pytest

from tandem.models.bundle import Bundle
from tandem.service.bundles.catalog import Route
from tandem.service.bundles.served import ServedModel
from tandem.service.settings import Settings
from tandem.service.text.masking import Masked
from tandem.service.translation.plans import make_stages
from tandem.service.translation.requests import TranslateTask
from tandem.service.translation.stages import (
    LONGEST_KNOWN,
    Recalled,
    StagedSentence,
    Way,
    finished,
    prepared,
    program_strings,
    recalled,
)
from tests.service.support import served

HELLO = StagedSentence(Masked("hello"), Masked("hello"))


@dataclass
class Signed:
    """Leaves its name wherever it is asked."""

    name: str
    knows: Recalled | None = None
    asked: list[str] = field(default_factory=list)

    def prepare(self, sentence: Masked) -> Masked:
        return replace(sentence, text=sentence.text + self.name)

    def known(self, sentence: StagedSentence) -> Recalled | None:
        self.asked.append(sentence.sent.text)
        return self.knows

    def finish(self, text: str, sentence: StagedSentence) -> str:
        return text + self.name


def test_the_last_to_prepare_is_the_first_to_finish() -> None:
    stages = [Signed("a"), Signed("b")]
    assert prepared(stages, HELLO.sent).text == "helloab"
    assert finished(stages, "hallo", HELLO) == "halloba"


def test_the_first_that_knows_something_is_heard() -> None:
    knows = Recalled(("hallo",))
    stages = [Signed("a"), Signed("b", knows), Signed("c", Recalled(("hi",)))]
    assert recalled(stages, HELLO) is knows
    assert stages[2].asked == []


def test_without_stages_a_sentence_is_as_it_was() -> None:
    assert prepared([], HELLO.sent) is HELLO.sent
    assert recalled([], HELLO) is None
    assert finished([], "hallo", HELLO) == "hallo"


def test_of_long_sentences_nobody_is_asked() -> None:
    stage = Signed("a", Recalled(("hallo",)))
    longest, longer = (Masked("a" * (LONGEST_KNOWN + more)) for more in (0, 1))
    assert (
        recalled([stage], StagedSentence(longest, longest))
        and recalled([stage], StagedSentence(longer, longer)) is None
    )
    assert stage.asked == [longest.text]


# --- which ones a text goes through ---------------------------------------------------------------------------------


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has one stage, whatever extras there are."""
    monkeypatch.setattr(
        "tandem.service.translation.plans.stage_makers", lambda: {"rewriting": lambda way: Signed(" haus")}
    )


@pytest.mark.anyio
@pytest.mark.usefixtures("signing")
@pytest.mark.parametrize(
    ("stages", "setting", "asked"),
    [
        (("rewriting",), "bundle", True),
        (("rewriting",), "off", False),
        ((), "bundle", False),
        (("new",), "bundle", False),
    ],
)
async def test_a_bundle_asks_and_a_server_may_refuse(
    bundles: dict[str, Bundle], stages: tuple[str, ...], setting: Literal["bundle", "off"], asked: bool
) -> None:
    bundle = bundles["de-en"]
    asking = replace(bundle, manifest=replace(bundle.manifest, stages=stages))
    async with served({"de-en": asking}, Settings(stages=setting)) as running:
        answer = (await running.translate("das")).json()["translatedText"]
    assert answer == ("das haus haus" if asked else "das")  # it is read with one, and written with another


@pytest.mark.parametrize("fields", [{}, {"lexicon": True}, {"lexicon": False}])
@pytest.mark.anyio
async def test_stages_are_told_what_a_request_refuses(
    bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch, fields: dict[str, bool]
) -> None:
    told = set[frozenset[str]]()

    def make(way: Way) -> Signed:
        told.add(way.refused)
        return Signed("")

    monkeypatch.setattr("tandem.service.translation.plans.stage_makers", lambda: {"rewriting": make})
    async with served({"de-en": bundles["de-en"]}) as running:
        assert (await running.translate("das", **fields)).status_code == 200
    assert told == {frozenset(name for name, wanted in fields.items() if not wanted)}


@pytest.mark.usefixtures("signing")
def test_of_several_bundles_all_must_ask(bundles: dict[str, Bundle]) -> None:
    asks = ServedModel.of(bundles["de-en"])
    silent = ServedModel.of(replace(asks.bundle, manifest=replace(asks.bundle.manifest, stages=())))
    task, settings = TranslateTask(q=[], target="en"), Settings()
    for onward, count in ((asks, 1), (silent, 0)):  # the first ones are for all
        route = Route(asks, ("de",), onward=Route(onward, ("en",)))
        assert len(make_stages(task, route, settings)) == len(program_strings().stages) + count
