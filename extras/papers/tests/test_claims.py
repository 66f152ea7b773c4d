"""`tandem bench claims`: the variants are what the papers' tables compare, and train, export and are scored."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.evaluation.decoding import Decoding
from tandem.extras.evaluation.describe import bundle_parameters
from tandem.extras.papers.claims import table as claims
from tandem.extras.papers.claims.compared import RECIPES, Family, families
from tandem.extras.papers.claims.learning import learning
from tandem.extras.papers.claims.options import ClaimsOptions
from tandem.extras.papers.claims.printing import markdown
from tandem.extras.papers.claims.table import measure
from tandem.models.bundle import Bundle
from tandem.models.config import to_mapping
from tandem.models.errors import ConfigError
from tandem.training.data.corpus import read_lines
from tandem.training.data.dataset import text_path
from tandem.training.export.bundle import Shipping
from tandem.training.loop.commands import train
from tandem.training.recipe import load_recipe
from tests.determinism import one_thread, seeded
from tests.shipped import ROOT
from tests.training.toy import described_graphs, write_lines

__all__ = ["one_thread", "seeded"]
_STRATEGIES = ("flat", "flat-share", "hierarchical", "concatenation", "flat-sentinel", "hierarchical-share")
_SENTINELS = ("flat-share-sentinel", "hierarchical-sentinel", "hierarchical-share-sentinel")
_PARTS = ("mixed", "sharing", "positions", "side-embeddings")
_ATTENTION = (1, 2, 3, 4, 5, 12, 123, 135, 1234)
_ENCODERS = ("2e1d", "3e1d", "3e3d", "4layers", "6layers", "gru-cnn", "rnnsearch")
ROWS = {
    "dpn-paths": [f"dpn-m{number}" for number in range(1, 10)],
    "layerwise-parts": ["layerwise", *(f"layerwise-no-{part}" for part in _PARTS)],
    "layerwise-depth": [f"layerwise-layers{layers}" for layers in (10, 14, 18, 22)],
    "transformer-depth": [*(f"transformer-layers{layers}" for layers in (4, 6, 8, 10)), "transformer-context-gate"],
    "convs2s-positions": ["convs2s-ablation", *(f"convs2s-no-{side}positions" for side in ("", "source-", "target-"))],
    "convs2s-attention": ["convs2s-ablation", *(f"convs2s-attention{layers}" for layers in _ATTENTION)],
    "multisource-strategies": [*_STRATEGIES, *_SENTINELS],
    "postediting-strategies": [*_STRATEGIES, *_SENTINELS],
    "memd-encoders": [f"memd-{name}" for name in _ENCODERS],
    "convs2s-encoder-kernels": [
        f"convs2s-encoder-kernel{kernel}-layers{layers}" for kernel in (3, 5, 7) for layers in (5, 9, 13)
    ],
    "convs2s-decoder-kernels": [
        f"convs2s-decoder-kernel{kernel}-layers{layers}" for kernel in (3, 5, 7) for layers in (3, 5, 7)
    ],
    "convs2s-encoder-depth": [f"convs2s-encoder-kernel3-layers{layers}" for layers in (1, 3, 5, 9, 13, 17, 21, 25)],
    "convs2s-decoder-depth": [
        f"convs2s-decoder-kernel5-layers{layers}" for layers in (1, 2, 3, 5, 7, 9, 13, 17, 21, 25)
    ],
    "multisource-decoders": [
        *("concatenation", "flat", "hierarchical"),
        *("cgru-concatenation", "gru-flat", "gru-hierarchical"),
    ],
    "memd-widths": ["memd-rnnsearch", "memd-d1024", "memd-d2048"],
    "claims-dpn-paths": ["dpn-m1", "dpn-m4", "dpn-m9"],
    "claims-layerwise-parts": ["layerwise", "layerwise-no-mixed", "layerwise-no-sharing"],
    "claims-memd-encoders": ["memd-2e1d", "memd-rnnsearch"],
}
"""By family its rows, as the papers' tables have them."""
each_family = pytest.mark.parametrize("name", ROWS)


def variants(name: str, family: Family, folder: Path) -> dict[str, Any]:
    """By row the recipe of a variant, as a run reads it."""
    made = {}
    for row, published in family.rows().items():
        file = folder / f"{row}.toml"
        file.write_text(family.text(f"{name}-{row}", published, {"seed": 7}), encoding="utf-8")
        made[row] = load_recipe(file)
    return made


def quartered(size: Any) -> Any:
    """Published models of width 512 are 128 wide here."""
    return [quartered(one) for one in size] if isinstance(size, list) else size // 4


def test_every_family_is_tested() -> None:
    assert list(families()) == list(ROWS)


@each_family
def test_variants_differ_in_what_a_table_compares_and_in_nothing_else(name: str, tmp_path: Path) -> None:
    family = families()[name]
    small, made, published = load_recipe(RECIPES / family.small), variants(name, family, tmp_path), family.rows()
    assert set(made) == set(ROWS[name])
    for row, recipe in made.items():
        assert (recipe.data, recipe.optimiser, recipe.decoding) == (small.data, small.optimiser, small.decoding)
        assert recipe.training == replace(small.training, seed=7, **family.training)
        theirs, ours = to_mapping(published[row].model_config()), to_mapping(recipe.model_config())
        switches = {key: ours[key] for key in family.keys}
        assert switches == {key: theirs[key] for key in family.keys}
        sizes = {key: ours[key] for key in family.scaled}
        assert sizes == {key: quartered(theirs[key]) for key in family.scaled}
        assert set(family.scaled.values()) <= {0.25}
        assert ours == to_mapping(replace(small, model=small.model | family.model | switches | sizes).model_config())
    assert len({json.dumps(to_mapping(recipe.model_config())) for recipe in made.values()}) == len(made)


def test_a_table_has_means_deviations_and_how_many_pairs_are_in_order(tmp_path: Path) -> None:
    """Rows of 32.0, 31.0 and 30.0 in the paper: of three pairs, ours turn one round."""
    options = ClaimsOptions(families="convs2s-positions", runs=tmp_path, seeds=2)
    found = {"convs2s-ablation": [30.0, 32.0], "convs2s-no-positions": [28.0], "convs2s-no-source-positions": [27.0]}
    for row, values in found.items():
        for seed, value in enumerate(values, 1):
            written = {"scores": {"BLEU": value}, "parameters": 1234, "seconds": 5}
            claims._keep(f"convs2s-positions-{row}-{seed}", written, options)
    table = claims._table("convs2s-positions", families()["convs2s-positions"], options)
    by_row = {row["name"]: (row["paper"], row["ours"], row["deviation"]) for row in table["rows"]}
    assert by_row == {
        "convs2s-ablation": (21.63, 31.0, pytest.approx(2**0.5)),
        "convs2s-no-positions": (21.2, 28.0, None),
        "convs2s-no-source-positions": (21.3, 27.0, None),
        "convs2s-no-target-positions": (21.5, None, None),
    }
    assert table["order"] == {"alike": 2, "pairs": 3, "tau": pytest.approx(1 / 3), "p_value": pytest.approx(0.5)}
    assert [row["paper_interval"] for row in table["rows"]] == [None] * 4
    shown = "\n".join(markdown("convs2s-positions", table))
    assert " | Gehring et al. 2017, tables 4, 5, 7 and 8 | 21.63 | 31.00 ± 1.41 | 2 | 1,234 |" in shown
    assert "| convs2s-no-target-positions | Gehring et al. 2017, table 4 | 21.50 | – | 0 | – |" in shown
    assert "2 of 3 pairs of rows are in the paper's order: Kendall's tau +0.33, p = 0.50 (one-sided" in shown
    assert "perplexity" not in shown


def test_runs_of_another_recipe_and_unknown_families_are_refused(tmp_path: Path) -> None:
    family = families()["dpn-paths"]
    next(claims._runs(family, "dpn-paths", ClaimsOptions(runs=tmp_path)))
    with pytest.raises(ConfigError, match="dpn-paths-dpn-m1-1 was made with another recipe"):
        next(claims._runs(family, "dpn-paths", ClaimsOptions(runs=tmp_path, updates=3)))
    with pytest.raises(ConfigError, match="--families must be of dpn-paths,"):
        measure(ClaimsOptions(families="dpn", runs=tmp_path))


def test_the_committed_scores_are_those_of_docs() -> None:
    """Each table with a row is there, as the command prints it."""
    docs = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    options = ClaimsOptions(scores=ROOT / "extras" / "papers" / "claims" / "claims.json")
    runs = {claims._run_name(name, row, seed) for name, rows in ROWS.items() for row in rows for seed in (1, 2, 3)}
    assert set(claims._scores(options)) <= runs
    for name, family in families().items():
        table = claims._table(name, family, options)
        if any(row["values"] for row in table["rows"]):
            assert "\n".join(markdown(name, table)) in docs


def test_single_rows_can_be_asked_for(tmp_path: Path) -> None:
    """Of every family that has one; what has none of them is left out, and nothing is trained without a wish to."""
    options = ClaimsOptions(rows="dpn-m9,dpn-m1", families="dpn-paths,claims-dpn-paths,memd-encoders", runs=tmp_path)
    result = measure(replace(options, no_train=True))
    rows = {name: [row["name"] for row in family["rows"]] for name, family in result["families"].items()}
    assert rows == {"dpn-paths": ["dpn-m1", "dpn-m9"], "claims-dpn-paths": ["dpn-m1", "dpn-m9"]}
    assert not result["complete"]
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match=r"--rows must be of dpn-m1, .*, but has memd-2e1d"):
        measure(replace(options, families="dpn-paths", rows="memd-2e1d", no_train=True))


def test_what_is_there_is_printed_without_training(tmp_path: Path) -> None:
    options = ClaimsOptions(families="claims-memd-encoders", runs=tmp_path, seeds=1, no_train=True)
    for row, value in (("memd-2e1d", 21.0), ("memd-rnnsearch", 20.0)):
        written = {
            "scores": {"BLEU": value},
            "intervals": {"BLEU": 1.5},
            "perplexity": 12.5,
            "tokens_per_second": 3000.0,
            "parameters": 1234,
            "seconds": 5,
        }
        claims._keep(f"claims-memd-encoders-{row}-1", written, options)
    result = measure(options)
    assert result["complete"]
    (first, second) = result["families"]["claims-memd-encoders"]["rows"]
    assert (first["ours"], second["ours"]) == (21.0, 20.0)
    assert (first["interval"], first["perplexity"], first["tokens_per_second"]) == (1.5, 12.5, 3000.0)
    shown = markdown("claims-memd-encoders", result["families"]["claims-memd-encoders"])
    assert shown[0].endswith("| paper's BLEU | ours | interval | perplexity | training tokens/s | runs | parameters |")
    assert shown[2].endswith("| 37.24 | 21.00 | ± 1.50 | 12.50 | 3,000 | 1 | 1,234 |")


def test_perplexities_stand_beside_the_papers(tmp_path: Path) -> None:
    """Printed as 6.65, 6.68, 6.69 and 6.63: ours is the exact reverse."""
    options = ClaimsOptions(families="convs2s-positions", runs=tmp_path, seeds=1, no_train=True)
    ours = {"ablation": 7.2, "no-positions": 7.1, "no-source-positions": 7.0, "no-target-positions": 7.3}
    for row, value in ours.items():
        written = {"scores": {"BLEU": 30.0}, "perplexity": value, "parameters": 1, "seconds": 5}
        claims._keep(f"convs2s-positions-convs2s-{row}-1", written, options)
    table = measure(options)["families"]["convs2s-positions"]
    assert table["perplexity_order"] == {"alike": 0, "pairs": 6, "tau": -1.0, "p_value": 1.0}
    assert table["order"]["tau"] is None
    shown = markdown("convs2s-positions", table)
    assert shown[2].endswith("| 21.63 | 30.00 | 6.65 | 7.20 | 1 | 1 |")
    assert "Perplexity: 0 of 6 pairs of rows are in the paper's order: Kendall's tau -1.00, p = 1.00" in shown[-1]


def test_runs_are_scored_on_the_test_sets_of_all_corpora(tmp_path: Path) -> None:
    recipe = load_recipe(RECIPES / "open-de-en-small" / "dpn.toml")
    for corpus in recipe.data.corpora:
        for side in ("source0", "target"):
            write_lines(text_path(tmp_path, corpus.name, "test", side), [f"{side} of {corpus.name}"])
    assert claims._test_text(recipe, tmp_path) == [
        ["source0 of tatoeba-de-en", "source0 of open-de-en"],
        ["target of tatoeba-de-en", "target of open-de-en"],
    ]


def validated(folder: Path, *lines: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    write_lines(folder / "metrics.jsonl", [json.dumps({"group": "valid"} | line) for line in lines])


def test_how_rows_learnt_is_drawn(tmp_path: Path) -> None:
    """BLEU where all validations have it, means over seeds; runs that have gone are left out."""
    runs = tmp_path / "runs"
    for seed, values in ((1, (10.0, 20.0)), (2, (14.0,))):
        lines = [{"update": 100 * n, "bleu": value, "perplexity": 50.0} for n, value in enumerate(values, 1)]
        validated(runs / f"multisource-decoders-flat-{seed}", *lines, {"group": "train", "update": 50, "loss": 1.0})
    validated(runs / "dpn-paths-dpn-m1-1", {"update": 500, "perplexity": 9.0, "loss": 2.2})
    found = {"flat": [runs / f"multisource-decoders-flat-{seed}" for seed in (1, 2, 3)], "gone": [runs / "none"]}
    assert learning(found) == ("bleu", {"flat": [(100, 12.0), (200, 20.0)]})
    assert learning({"dpn-m1": [runs / "dpn-paths-dpn-m1-1"], **found})[0] == "perplexity"
    chosen = "multisource-decoders,dpn-paths,memd-widths"
    options = ClaimsOptions(families=chosen, runs=runs, no_train=True, curves=tmp_path / "drawn")
    drawn = [Path(file) for file in measure(options)["drawn"]]
    names = [f"{name}.{form}" for name in ("dpn-paths", "multisource-decoders") for form in ("png", "svg")]
    assert sorted(file.name for file in drawn) == names
    assert all(file.stat().st_size > 1000 for file in drawn)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("BLEU 31", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.json is not JSON"):
        claims._scores(ClaimsOptions(scores=tmp_path / "mine.json"))


def test_scores_after_fewer_updates_are_not_taken_for_others(tmp_path: Path) -> None:
    options = ClaimsOptions(families="dpn-paths", runs=tmp_path, updates=3)
    claims._keep("dpn-paths-dpn-m1-1", {"scores": {"BLEU": 1.0}, "parameters": 1, "seconds": 1}, options)
    with pytest.raises(ConfigError, match="has dpn-paths-dpn-m1-1 after 3 updates, not after all"):
        measure(replace(options, updates=None))
    with pytest.raises(ConfigError, match="has dpn-paths-dpn-m1-1 after 3 updates, not after all"):
        measure(replace(options, updates=None, no_train=True))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Multi30k's files, with a few sentences of our own in them."""
    root, shipped = tmp_path_factory.mktemp("corpora"), ROOT / "extras" / "shared"
    for language, text in (("de", "de"), ("en", "en"), ("fr", "de"), ("cs", "en")):
        lines = list(read_lines(shipped / f"sentences.{text}.txt"))
        for split, part in (("train", lines[:28]), ("valid", lines[28:36]), ("test_2016_flickr", lines[36:])):
            write_lines(root / f"multi30k/{split}.{language}", part)
    return root


def of_ours(name: str, family: Family, folder: Path) -> dict[str, Family]:
    """A family whose small recipe reads ``corpora``, by its name."""
    small = folder / "small" / "recipe.toml"
    small.parent.mkdir()
    source = [f"multi30k/{{split}}.{language}" for language in load_recipe(RECIPES / family.small).source_languages]
    small.write_text(
        f"base = {json.dumps(str(RECIPES / family.small))}\nname = 'small'\n[data.vocabulary]\nsize = 380\n"
        f"[[data.corpora]]\nname = 'multi30k'\nsource = {json.dumps(source)}\ntarget = 'multi30k/{{split}}.en'\n"
        "licence = 'own'\nattribution = 'own'\ntest_split = 'test_2016_flickr'\n[decoding]\nmax_length = 8\n",
        encoding="utf-8",
    )
    return {name: replace(family, small=str(small))}


def asked(name: str, corpora: Path, folder: Path) -> ClaimsOptions:
    """Two updates of each variant."""
    return ClaimsOptions(families=name, seeds=1, updates=2, precision="float32", corpora=corpora, runs=folder / "runs")


@pytest.mark.slow
@each_family
def test_every_variant_trains_and_is_scored(
    name: str, corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was stopped after one update goes on, and what has its score is not made again.

    Graphs would take most of the time: PyTorch decodes.
    """
    known = of_ours(name, families()[name], tmp_path)
    monkeypatch.setattr(claims, "families", lambda: known)
    monkeypatch.setattr("tandem.training.export.bundle.export_graphs", described_graphs)
    monkeypatch.setattr("tandem.training.export.bundle.Shipping", partial(Shipping, precisions=()))
    monkeypatch.setattr(claims, "Decoding", partial(Decoding, runtime="torch"))
    options = asked(name, corpora, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(claims, "train", lambda options: train(replace(options, updates=1)))
        stopped = measure(options)
    assert not stopped["complete"]
    assert all(row["ours"] is None for row in stopped["families"][name]["rows"])
    result = measure(options)
    assert result["complete"]
    rows = result["families"][name]["rows"]
    assert [len(row["values"]) for row in rows] == [1] * len(ROWS[name])
    # Two updates from the start: about as many as there are pieces, and more where DPN-S2S begins worse than even.
    perplexities = [row["perplexity"] for row in rows]
    assert 100 < min(perplexities) < 1000 and all(map(isfinite, perplexities))
    assert all(row["tokens_per_second"] > 0 for row in rows)
    assert all(row["interval"] >= 0 for row in rows)
    monkeypatch.setattr(claims, "_run", None)
    shutil.rmtree(options.runs / f"{name}-{ROWS[name][0]}-1")
    assert measure(options)["families"] == result["families"]


@pytest.mark.slow
def test_a_run_leaves_a_bundle_that_others_can_use(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = replace(families()["convs2s-positions"], published=("wmt14-en-de/convs2s-no-positions.toml",))
    known = of_ours("convs2s-positions", family, tmp_path)
    monkeypatch.setattr(claims, "families", lambda: known)
    ((row,),) = (one["rows"] for one in measure(asked("convs2s-positions", corpora, tmp_path))["families"].values())
    bundle = Bundle.load(tmp_path / "runs" / "convs2s-positions-convs2s-no-positions-1" / "bundle")
    assert row["parameters"] == bundle_parameters(bundle.manifest)
    assert bundle.manifest.config["source_positions"] is bundle.manifest.config["target_positions"] is False
    assert bundle.graph_specs("int8")
