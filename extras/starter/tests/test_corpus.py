"""Two files become a corpus and a recipe that `tandem prepare` takes as they are; what stands there is not lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.starter.corpus import ORIGIN, make_corpus
from tandem.extras.starter.recipes import StarterRequest
from tandem.extras.starter.tests.test_recipes import BASE, SMALL
from tandem.models.bundle import Training
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.search import SearchOptions
from tandem.training.data.corpus import read_parallel
from tandem.training.data.prepare import prepare
from tandem.training.recipe import Recipe, load_recipe
from tests.service.support import tiny_bundle
from tests.training.toy import write_lines

WORDS = ["".join(word) for word in np.random.default_rng(4).choice(list("abcdefghijklmnoprstuvwz"), (400, 6))]


@pytest.fixture
def job(tmp_path: Path) -> StarterRequest:
    """Some 1,500 pairs, a few of them twice."""
    rng = np.random.default_rng(3)
    lines = [" ".join(rng.choice(WORDS, size=rng.integers(4, 12))) for _ in range(1500)]
    lines += lines[:20]
    write_lines(tmp_path / "mine.de", lines)
    write_lines(tmp_path / "mine.en", [line.upper() for line in lines])
    files = tmp_path / "mine.de", tmp_path / "mine.en"
    return StarterRequest(
        "mine", *files, corpora=tmp_path / "corpora", recipe=tmp_path / "mine.toml", languages=("de", "en")
    )


def prepared(recipe: Recipe, job: StarterRequest, out: Path) -> dict[str, dict[str, int]]:
    languages = recipe.languages
    summary = prepare(recipe.data, languages=languages, root=job.corpora, out=out, seed=recipe.training.seed)
    return {name: dict(split.dropped) for name, split in summary.splits.items()}


def test_a_corpus_and_a_recipe_for_it(job: StarterRequest, tmp_path: Path) -> None:
    made = make_corpus(job)
    assert made.pairs == {"train": 1200, "valid": 150, "test": 150}
    assert made.screened.dropped == {"duplicate": 20}
    assert any("1,200 pairs are few" in warning and "--from" in warning for warning in made.warnings)
    recipe = load_recipe(job.recipe_file)
    assert recipe == made.draft.recipe
    assert (recipe.name, recipe.licence, recipe.data.corpora[0].attribution) == ("mine", "not stated", "not stated")
    held = read_parallel([made.folder / "test.de", made.folder / "test.en"])
    assert len(held[0]) == 150 and held[0][0].upper() == held[1][0]
    assert json.loads((made.folder / ORIGIN).read_text())["pairs"] == made.pairs
    assert prepared(recipe, job, tmp_path / "data") == {"train": {}, "valid": {}, "test": {}}, "nothing is left to drop"


def test_the_same_job_makes_the_same_files(job: StarterRequest, tmp_path: Path) -> None:
    make_corpus(job)
    again = replace(job, corpora=tmp_path / "again", recipe=tmp_path / "again.toml")
    make_corpus(again)
    assert again.recipe_file.read_bytes() == job.recipe_file.read_bytes()
    for path in (job.corpora / "mine").iterdir():
        assert path.read_bytes() == (again.corpora / "mine" / path.name).read_bytes()


def test_what_stands_there_is_replaced_only_where_asked(job: StarterRequest) -> None:
    make_corpus(job)
    with pytest.raises(ConfigError, match=r"origin\.json is there already: add --force"):
        make_corpus(job)
    made = make_corpus(replace(job, force=True, valid=10, test=20))
    assert made.pairs == {"train": 1470, "valid": 10, "test": 20}
    job.recipe_file.write_text("# much work\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"is there already"):
        make_corpus(replace(job, name="other"))
    assert job.recipe_file.read_text(encoding="utf-8") == "# much work\n"
    assert not (job.corpora / "other").exists()


def test_a_folder_of_somebody_else_is_left_alone(job: StarterRequest) -> None:
    (job.corpora / "mine").mkdir(parents=True)
    (job.corpora / "mine" / "thesis.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="was not made by this command"):
        make_corpus(replace(job, force=True))
    assert (job.corpora / "mine" / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "a/b"}, "NAME must be letters"),
        ({"name": "a@1"}, "NAME must be letters"),
        ({"name": ".a"}, "NAME must be letters"),
        ({"languages": ("de", "de"), "task": "translate"}, "source and target are both 'de': --task must be summarize"),
        ({"valid": 700, "test": 60}, "at least half of the 1,500 pairs to train on, but are 700 and 60"),
        ({"architecture": "memd"}, "architecture must be one of"),
    ],
)
def test_what_cannot_be_made_is_refused(job: StarterRequest, changes: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        make_corpus(replace(job, **changes))  # type: ignore[arg-type]
    assert not job.corpora.exists() and not job.recipe_file.exists()


def test_too_little_text_is_refused(job: StarterRequest, tmp_path: Path) -> None:
    for path in job.texts:
        write_lines(path, path.read_text(encoding="utf-8").splitlines()[:400])
    with pytest.raises(CorpusError, match=r"from scratch needs at least 1,000 pairs, but .* hold 400.*--from BUNDLE"):
        make_corpus(job)
    for path in job.texts:
        write_lines(path, path.read_text(encoding="utf-8").splitlines()[:90])
    with pytest.raises(CorpusError, match="fine-tuning needs at least 100 pairs"):
        make_corpus(tuning(job, tmp_path))


def tuning(job: StarterRequest, folder: Path) -> StarterRequest:
    config = {**SMALL, "source_vocabularies": [330], "target_vocabulary": 330}
    options = SearchOptions(max_length=40)
    changes = {"architecture": "dpn", "config": config, "training": Training((), BASE, 10, 100), "decoding": options}
    return replace(job, bundle=tiny_bundle(folder, "old", **changes))


def test_a_bundle_is_tuned_with_its_own_vocabularies(job: StarterRequest, tmp_path: Path) -> None:
    job = tuning(job, tmp_path)
    made = make_corpus(replace(job, recipe=tmp_path / "recipes" / "mine.toml"))
    assert not any("few" in warning for warning in made.warnings)
    assert job.bundle is not None
    recipe = load_recipe(tmp_path / "recipes" / "mine.toml")
    own = (*job.bundle.source_vocabularies, job.bundle.target_vocabulary)
    summary = prepare(
        recipe.data, languages=recipe.languages, root=job.corpora, out=tmp_path / "data", seed=1, vocabularies=own
    )
    assert recipe.prepared_config(summary).target_vocabulary == 330
