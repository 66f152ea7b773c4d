"""`tandem shortlist`, and what an ensemble has of its members' lists."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.refining.ensemble import Assembly, ensemble_bundle
from tandem.extras.refining.shortlists import shortlist as shortlist_command
from tandem.extras.shared.runtime import check_shortlist
from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError, ConfigError, CorpusError
from tandem.service.runtimes import open_graphs
from tandem.training.export import bundle as exports
from tandem.training.export.bundle import add_shortlist
from tests.command import needs, succeeds
from tests.training.export.conftest import Exported
from tests.training.export.test_shortlist import everything
from tests.training.toy import LETTERS


@pytest.fixture
def text(tmp_path: Path) -> tuple[Path, Path]:
    """Words of the toy corpus and their translations, both sides in a file."""
    lines = np.random.default_rng(4).choice(list(LETTERS), size=(60, 4)).tolist()
    (tmp_path / "text.de").write_text("".join(f"{' '.join(line)}\n" for line in lines), encoding="utf-8")
    translated = [[f"the-{word}" for word in line] for line in lines]
    (tmp_path / "text.en").write_text("".join(f"{' '.join(line)}\n" for line in translated), encoding="utf-8")
    return tmp_path / "text.de", tmp_path / "text.en"


def test_the_command_builds_a_list(
    one: Exported, tmp_path: Path, text: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = text
    path = tmp_path / "listed"
    shortlist_command(one.bundle.path, [source] * 2, [target] * 2, 1, 0, path)
    assert capsys.readouterr().out == f"{path}\n"
    bundle = Bundle.load(path)
    assert bundle.manifest.shortlist in bundle.manifest.files
    assert bundle.shortlist is not None
    for letter in LETTERS:
        chosen = bundle.shortlist.select((np.array(bundle.source_vocabularies[0].encode(letter)),))
        assert bundle.target_vocabulary.id_of(f"the-{letter}") in chosen
        assert len(chosen) == len(bundle.shortlist.always) + 1


@needs("evaluate")
def test_evaluation_measures_a_list(one: Exported, tmp_path: Path, text: tuple[Path, Path]) -> None:
    source, target = text
    path = tmp_path / "listed"
    shortlist_command(one.bundle.path, [source] * 2, [target] * 2, 1, 0, path)
    asked = ("--source", source, "--references", target, "--record", "toy", "--json", "--shortlist")
    printed = json.loads(succeeds("evaluate", path, *asked))
    assert list(printed["scores"]) == ["dpn", "dpn, with shortlist"]
    scores = {(one.test_set, one.metric): one.value for one in Bundle.load(path).manifest.scores}
    assert scores["toy, with shortlist", "% of reference tokens listed"] == 100
    for measured in printed["scores"]["dpn, with shortlist"][:2]:  # the task's own ones; the others are not stored
        assert scores["toy, with shortlist", measured["metric"]] == measured["value"]
    assert "| toy, with shortlist | BLEU |" in (path / "MODEL_CARD.md").read_text("utf-8")

    shortlist_command(path, [source], [target], 2, 1, in_place=True)
    assert {one.test_set for one in Bundle.load(path).manifest.scores} == {"toy"}


def test_the_command_says_what_is_wrong(one: Exported, tmp_path: Path, text: tuple[Path, Path]) -> None:
    source, target = text
    path = one.bundle.path
    for out, in_place in ((None, False), (tmp_path / "out", True)):
        with pytest.raises(ConfigError, match="either --out"):
            shortlist_command(path, [source], [target], 1, 0, out, in_place)
    with pytest.raises(BundleError, match="already something"):
        shortlist_command(path, [source], [target], 1, 0, tmp_path)
    with pytest.raises(CorpusError, match="needs 1 --source for each --target"):
        shortlist_command(path, [source, source], [target], 1, 0, tmp_path / "out")
    with pytest.raises(ConfigError, match="build one with `tandem shortlist`"):
        check_shortlist(one.bundle, open_graphs(one.bundle, "onnx", "int8"))


def test_an_ensemble_has_its_first_members_shortlist(
    one: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [tmp_path / "first", tmp_path / "second"]
    for member in members:
        shutil.copytree(one.bundle.path, member, ignore=shutil.ignore_patterns("torchscript"))
    shortlist = everything(one.bundle)
    add_shortlist(members[0], shortlist)
    monkeypatch.setattr(exports, "export_graphs", lambda model: ({}, one.bundle.graph_specs("int8")))
    bundle = ensemble_bundle(members, tmp_path / "both", Assembly(precisions=()))
    assert bundle.shortlist is not None
    assert bundle.shortlist.to_bytes() == shortlist.to_bytes()
