"""Validation by decoded text: which sentences, which search, which score."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandem.models.errors import DeviceLost
from tandem.models.search import OfflineDecoder, SearchOptions
from tandem.models.steps.device_search import DeviceSearch, SearchRoom
from tandem.models.steps.torch_graphs import AnyModel
from tandem.training.data.dataset import text_path
from tandem.training.loop import validation
from tandem.training.loop.validation import TextValidator
from tests.training.toy import DATA, LEARNING, toy_recipe, toy_trainer


def valid_lines(prepared: Path, side: str) -> list[str]:
    return text_path(prepared, "toy", "valid", side).read_text(encoding="utf-8").splitlines()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was asked of the decoder, which answers with the words of a perfect translation."""
    calls: list[dict[str, Any]] = []

    def perfect(
        decoder: OfflineDecoder,
        vocabularies: Any,
        lines: Sequence[Sequence[str]],
        *,
        max_source_tokens: int,
        renderer: Any,
    ) -> list[str]:
        limit = max_source_tokens
        calls.append({"lines": lines, "options": decoder.options, "limit": limit, "vocabularies": vocabularies})
        return [" ".join(f"the-{word}" for word in line.split()) for line in lines[0]]

    monkeypatch.setattr(validation, "translate_lines", perfect)
    return calls


@pytest.mark.parametrize("wanted", [1, 5, 12, 500])
def test_sentences_of_the_whole_set_are_decoded_greedily(
    wanted: int, prepared: Path, decoded: list[dict[str, Any]]
) -> None:
    recipe = replace(
        toy_recipe(validation_sentences=wanted), decoding=SearchOptions(beam_size=4, n_best=2, max_length=9)
    )
    model = toy_trainer(recipe, prepared, prepared).model.eval()
    scores = TextValidator(recipe, prepared)(model).scores
    (call,) = decoded
    lines = valid_lines(prepared, "source0")
    assert call["lines"] == [lines[:: max(1, len(lines) // wanted)][:wanted]]
    assert call["options"] == SearchOptions(beam_size=1, n_best=1, max_length=9)
    assert call["limit"] == DATA.max_source_tokens
    assert scores["chrf"] == 100.0
    assert set(scores) == {"bleu", "chrf"}


def test_summaries_are_scored_by_rouge(prepared: Path, decoded: list[dict[str, Any]]) -> None:
    recipe = replace(toy_recipe(validation_sentences=3), task="summarize")
    scores = TextValidator(recipe, prepared)(toy_trainer(toy_recipe(), prepared, prepared).model.eval()).scores
    assert scores == {"rouge-1": 100.0, "rouge-2": 100.0, "rouge-l": 100.0, "rouge": 100.0}


def test_corpora_share_the_sentences_and_may_lack_a_validation_set(
    prepared: Path, decoded: list[dict[str, Any]]
) -> None:
    """Even where there are fewer sentences wanted than corpora."""
    corpora = (*DATA.corpora, replace(DATA.corpora[0], name="other", splits=("train",)))
    model = toy_trainer(toy_recipe(), prepared, prepared).model.eval()
    for wanted, shown in ((6, 3), (1, 1)):
        recipe = toy_recipe(validation_sentences=wanted, data=replace(DATA, corpora=corpora))
        assert set(TextValidator(recipe, prepared)(model).scores) == {"bleu", "chrf"}
        assert len(decoded[-1]["lines"][0]) == shown


def test_each_corpus_has_its_score(prepared: Path, decoded: list[dict[str, Any]], tmp_path: Path) -> None:
    """Of its own lines in their order: "other" has other references."""
    data = tmp_path / "data"
    shutil.copytree(prepared, data)
    shutil.copytree(data / "text" / "toy", data / "text" / "other")
    wrong = text_path(data, "other", "valid", "target")
    wrong.write_text("".join("x\n" for _ in valid_lines(data, "target")), encoding="utf-8")
    recipe = toy_recipe(
        validation_sentences=6, data=replace(DATA, corpora=(*DATA.corpora, replace(DATA.corpora[0], name="other")))
    )
    scores = TextValidator(recipe, data)(toy_trainer(toy_recipe(), prepared, prepared).model.eval()).scores
    assert scores["chrf/toy"] == 100.0 and scores["chrf/other"] < 20
    assert scores["chrf/other"] < scores["chrf"] < 100.0


@pytest.mark.slow
def test_a_trained_model_translates(prepared: Path, tmp_path: Path) -> None:
    """The whole of it: train by the metric, decode with the real search, and score what comes out."""
    recipe = toy_recipe(updates=140, validate_every=70, validation_sentences=12, metric="bleu", **LEARNING)
    trainer = toy_trainer(recipe, prepared, tmp_path, validator=TextValidator(recipe, prepared))
    progress = trainer.train()
    assert progress.best is not None
    assert progress.best > 80


def test_a_gpu_is_searched_by_what_is_given_for_it(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for whatever the recipe lets validation decode; a CPU by the general search."""
    asked: list[SearchRoom] = []

    def search(model: AnyModel, room: SearchRoom) -> DeviceSearch:
        asked.append(room)
        raise DeviceLost("cuda:0 does not work any more")

    recipe = replace(toy_recipe(validation_sentences=20), decoding=SearchOptions(beam_size=4, max_length=12))
    model, validator = toy_trainer(recipe, prepared, prepared).model.eval(), TextValidator(recipe, prepared, search)
    assert validator(model).scores["chrf"] > 0 and not asked
    monkeypatch.setattr(validation, "_on_gpu", lambda model: True)
    with pytest.raises(DeviceLost):
        validator(model)
    assert asked == [SearchRoom(sentences=64, source=recipe.data.max_source_tokens, target=13)]
    assert TextValidator(recipe, prepared)(model).scores["chrf"] > 0  # where nothing is given


def test_bleu_is_counted_by_the_language_of_the_references(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven characters, the last of which is wrong; as one word they would score 0."""
    recipe = replace(toy_recipe(validation_sentences=3), target_language="zh")
    model = toy_trainer(toy_recipe(), prepared, prepared).model.eval()
    validator = TextValidator(recipe, prepared)
    validator._columns[""]["toy"][-1][:] = ["今天天气很好吧"] * 3
    monkeypatch.setattr(validation, "translate_lines", lambda *_, **__: ["今天天气很好吗"] * 3)
    assert validator(model).scores["bleu"] == pytest.approx(100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25, abs=0.01)


def test_five_sentences_are_shown_the_same_each_time(prepared: Path, decoded: list[dict[str, Any]]) -> None:
    model = toy_trainer(toy_recipe(), prepared, prepared).model.eval()
    validator = TextValidator(toy_recipe(validation_sentences=12), prepared)
    first = validator(model).examples
    lines, references = valid_lines(prepared, "source0"), valid_lines(prepared, "target")
    assert [(one.source, one.reference) for one in first] == [(lines[n], references[n]) for n in (0, 2, 4, 7, 9)]
    assert [one.translation for one in first] == [one.reference for one in first]
    assert validator(model).examples == first
    few = TextValidator(toy_recipe(validation_sentences=2), prepared)(model).examples
    assert [one.source for one in few] == [lines[0], lines[6]]


def test_a_package_that_scores_need_is_missed_at_once(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(ModuleNotFoundError, match="sacrebleu"):
        TextValidator(toy_recipe(validation_sentences=2), prepared)
