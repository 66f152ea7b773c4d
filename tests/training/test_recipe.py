"""Recipes: every fault is named with its place, and a recipe may start from another."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandem.models.errors import ConfigError
from tandem.training.data.summary import PreparedSummary
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.recipe import (
    Recipe,
    TrainingConfig,
    load_recipe,
    recipe_from_mapping,
    recipe_mapping,
)

TEXT = """
name = "r"
task = "translate"
source_languages = ["de"]
target_language = "en"
architecture = "dpn"

[[data.corpora]]
name = "c"
source = ["c/{split}.de"]
target = "c/{split}.en"
licence = "CC0"
attribution = "nobody"

[model]
width = 32
"""


def load(tmp_path: Path, text: str) -> Recipe:
    path = tmp_path / "r.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    message = str(raised.value)
    return message.replace(str(tmp_path / "r.toml"), "r.toml")


def test_defaults(tmp_path: Path) -> None:
    recipe = load(tmp_path, TEXT)
    assert recipe.training == TrainingConfig()
    assert recipe.optimiser == OptimiserConfig()
    assert recipe.data.corpora[0].source == ("c/{split}.de",)
    assert recipe.licence == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam = 1" + TEXT, "r.toml has no key 'nam': did you mean 'name'? known keys are about, architecture, data"),
        (
            TEXT + "[training]\nupdate = 3",
            "r.toml training has no key 'update': did you mean 'updates'? known keys are ",
        ),
        (
            TEXT + "[optimiser]\nlr = 3",
            "r.toml optimiser has no key 'lr': known keys are anneal, beta1, beta2, clip_norm",
        ),
        (TEXT + "[decoding]\nbeam = 3", "r.toml decoding has no key 'beam': did you mean 'beam_size'? known keys are "),
        (TEXT + "[data.filters]\nx = 3", "r.toml data filters has no key 'x': known keys are deduplicate"),
        (TEXT + "depth = 3", "r [model] has no key 'depth': "),
        (
            TEXT + "max_positions = 64\n[data]\nmax_target_tokens = 64\n[decoding]\nmax_length = 64",
            "r.toml: the model has max_positions = 64, but data max_source_tokens needs 256, decoding max_length"
            " needs 65: set these to fit",
        ),
        (TEXT + "heads = 5", "r [model]: heads must divide width, but 32 is not a multiple of 5"),
        (TEXT.replace("dpn", "rnn"), "r [model]: unknown architecture 'rnn': known are dpn"),
        (TEXT.replace("translate", "speak"), "r.toml task must be one of 'translate', 'summarize', 'postedit'"),
        (TEXT.replace('["de"]', '["de", "fr"]'), "r.toml source_languages must name one language per source"),
        (TEXT.replace('name = "r"\n', ""), "r.toml lacks the key 'name'"),
        (TEXT + "[training]\nupdates = 'x'", "r.toml training updates must be of type int, but is 'x'"),
        (TEXT + "[training]\nkeep = 2\naverage = 3", "r.toml training: average must be at most keep (2), but is 3"),
        (
            TEXT + "[training]\nmetric = 'bleu'\nvalidation_sentences = 0",
            "r.toml training: metric = 'bleu' needs valid",
        ),
        (
            TEXT + "[training]\nmetric = 'rouge'",
            "r.toml: training metric must be one of loss, bleu, chrf for the task 'trans",
        ),
        (
            TEXT + "[optimiser]\nlearning_rate = inf",
            "r.toml optimiser learning_rate must be a finite number, but is inf",
        ),
        (
            TEXT + "[optimiser]\nlearning_rate = 0.0",
            "r.toml optimiser: learning_rate must be a finite number above 0, but is 0.0",
        ),
        (TEXT + "[decoding]\nbeam_size = 0", "r.toml decoding: beam_size must be a whole number, at least 1, but is 0"),
        (TEXT + "[model]\nx = 1", "r.toml: not valid TOML: Cannot declare ('model',) twice (at line 17, column 7)"),
        ("a = 1\n\nb ==", "r.toml: not valid TOML: Invalid value (at line 3, column 4)"),
    ],
)
def test_each_fault_is_named(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(message)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    message = refused(tmp_path, TEXT + "[training]\nupdates = 0\nkeep = 0\nsed = 1\n[optimiser]\nname = 'sgd'")
    assert len(message.split("; ")) == 4


BOUNDS = [
    (table, field.name, bound, field.metadata[bound])
    for table, config in (("training", TrainingConfig), ("optimiser", OptimiserConfig))
    for field in dataclasses.fields(config)
    for bound in ("at_least", "at_most")
    if field.metadata.get(bound) is not None
]


@pytest.mark.parametrize(("table", "key", "bound", "value"), BOUNDS, ids=lambda value: str(value))
def test_every_bound_is_held(tmp_path: Path, table: str, key: str, bound: str, value: float) -> None:
    beyond = value - 1 if bound == "at_least" else value + (1 if type(value) is int else 0.5)
    message = refused(tmp_path, TEXT + f"[{table}]\n{key} = {beyond}")
    assert message == f"r.toml {table} {key} must be {bound.replace('_', ' ')} {value}, but is {beyond}"
    if isinstance(value, float):
        assert "but is nan" in refused(tmp_path, TEXT + f"[{table}]\n{key} = nan")


def test_every_number_is_bounded() -> None:
    for config in (TrainingConfig, OptimiserConfig):
        for field in dataclasses.fields(config):
            if field.type in ("int", "float") and field.name != "seed":
                assert field.metadata.get("at_least") is not None, field.name


def test_a_missing_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.toml: cannot read the recipe: No such file"):
        load_recipe(tmp_path / "no.toml")
    path = tmp_path / "binary.toml"
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"binary\.toml: not valid TOML: it must be UTF-8"):
        load_recipe(path)


@pytest.mark.parametrize("sizes", ["", "source_vocabularies = [0]\ntarget_vocabulary = 0", "target_vocabulary = 90"])
def test_vocabulary_sizes_come_from_the_data(tmp_path: Path, sizes: str) -> None:
    recipe = load(tmp_path, TEXT + sizes)
    config: Any = recipe.model_config((80,), 90)
    assert (config.source_vocabularies, config.target_vocabulary) == ((80,), 90)


def test_vocabulary_sizes_that_contradict_the_data_are_refused(tmp_path: Path) -> None:
    recipe = load(tmp_path, TEXT + "source_vocabularies = [70]\ntarget_vocabulary = 90")
    with pytest.raises(
        ConfigError, match=r"r \[model\] source_vocabularies is \[70\], but the prepared data has \[80\]"
    ):
        recipe.model_config((80,), 90)
    with pytest.raises(ConfigError, match=r"r \[model\] target_vocabulary is 90, but the prepared data has 91"):
        recipe.model_config((70,), 91)


def test_tokens_that_decoding_names_must_be_in_the_data_s_vocabulary(tmp_path: Path) -> None:
    """Said before training, not by its first validation."""
    recipe = load(tmp_path, TEXT + "[decoding]\nsuppressed = [0, 89, 90]\nprefix = [95]")
    data = PreparedSummary(2, {}, {}, {}, (), {"source0": 80, "target": 90}, 0.0)
    with pytest.raises(ConfigError, match=r"^r \[decoding\] must name token ids below 90, but names \[90, 95\]$"):
        recipe.prepared_config(data)
    config: Any = recipe.prepared_config(replace(data, vocabularies={"source0": 80, "target": 96}))
    assert config.target_vocabulary == 96


def test_a_recipe_survives_a_checkpoint(tmp_path: Path) -> None:
    text = TEXT + "[decoding]\nmax_length_ratio = 2\nsuppressed = [5]\n[published]\nbleu = 3.5\nrow = [1, 2]"
    recipe = load(tmp_path, text)
    assert recipe_from_mapping(json.loads(json.dumps(recipe_mapping(recipe))), "checkpoint") == recipe
    assert recipe_mapping(recipe)["data"]["corpora"][0]["splits"] == ["train", "valid", "test"]


def write(folder: Path, **texts: str) -> Path:
    """Recipes by their stem; the first one's path."""
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / f"{next(iter(texts))}.toml"


BASE = TEXT + "heads = 2\n[training]\nupdates = 7\nseed = 3\n[data.vocabulary]\nsize = 90\n[published]\nbleu = 5.0\n"


def test_a_recipe_starts_from_its_base(tmp_path: Path) -> None:
    """Tables are merged key by key at every depth, and the rest is replaced."""
    child = 'base = "base.toml"\nname = "child"\n[training]\nseed = 4\n[data.vocabulary]\njoint = false\n'
    recipe = load_recipe(write(tmp_path, child=child + "[model]\nwidth = 64", base=BASE))
    assert (recipe.name, recipe.task, recipe.model) == ("child", "translate", {"width": 64, "heads": 2})
    assert (recipe.training.updates, recipe.training.seed) == (7, 4)
    assert (recipe.data.vocabulary.size, recipe.data.vocabulary.joint) == (90, False)
    assert recipe.data.corpora[0].licence == "CC0"


def test_lists_of_a_base_are_replaced_whole(tmp_path: Path) -> None:
    corpus = '[[data.corpora]]\nname = "d"\nsource = ["d/{split}"]\ntarget = "d/{split}"\nattribution = "x"\n'
    path = write(tmp_path, child='base = "base.toml"\n' + corpus + 'licence = "MIT"', base=BASE)
    assert [one.name for one in load_recipe(path).data.corpora] == ["d"]
    path = write(tmp_path, child='base = "base.toml"\n' + corpus, base=BASE)
    with pytest.raises(ConfigError, match=r"child\.toml data corpora\[0\] lacks the key 'licence'"):
        load_recipe(path)


def test_a_corpus_takes_over_what_the_bases_of_its_name_has(tmp_path: Path) -> None:
    corpora = (
        '[[data.corpora]]\nname = "d"\nsource = ["{split}"]\ntarget = "{split}"\nlicence = "MIT"\nattribution = "x"\n'
    )
    corpora += '[[data.corpora]]\nname = "c"\ntarget = "c/{split}.fr"\nrepeat = 2\n'
    path = write(tmp_path, child='base = "base.toml"\n' + corpora, base=BASE)
    other, corpus = load_recipe(path).data.corpora
    before = load_recipe(tmp_path / "base.toml").data.corpora[0]
    assert (other.name, other.licence, corpus.name) == ("d", "MIT", "c")
    assert corpus == dataclasses.replace(before, target="c/{split}.fr", repeat=2)
    for faulty in ("corpora = 3", "corpora = [3]"):
        with pytest.raises(ConfigError, match="corpora"):
            load_recipe(write(tmp_path, child=f'base = "base.toml"\n[data]\n{faulty}', base=BASE))


def test_a_bases_published_scores_are_not_the_recipes(tmp_path: Path) -> None:
    path = write(tmp_path, child='base = "base.toml"\n[published]\nmeteor = 6.0', base=BASE)
    assert load_recipe(path).published == {"meteor": 6.0}
    assert load_recipe(write(tmp_path, child='base = "base.toml"', base=BASE)).published == {}


def test_another_architecture_has_none_of_the_bases_model_keys(tmp_path: Path) -> None:
    child = 'base = "base.toml"\narchitecture = "transformer"\n[model]\nhidden = 48'
    recipe = load_recipe(write(tmp_path, child=child, base=BASE))
    assert (recipe.architecture, recipe.model) == ("transformer", {"hidden": 48})
    same = 'base = "base.toml"\narchitecture = "dpn"\n[model]\nhidden = 48'
    assert load_recipe(write(tmp_path, child=same, base=BASE)).model == {"width": 32, "heads": 2, "hidden": 48}


def test_bases_may_have_bases_in_other_folders(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    write(tmp_path, base=BASE)
    write(tmp_path / "below", middle='base = "../base.toml"\nname = "m"\nlicence = "L"\n[training]\nupdates = 8')
    recipe = load_recipe(write(tmp_path, child='base = "below/middle.toml"\nname = "c"'))
    assert (recipe.name, recipe.licence) == ("c", "L")
    assert (recipe.training.updates, recipe.training.seed) == (8, 3)


def test_what_a_checkpoint_keeps_is_the_merged_recipe(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, child='base = "base.toml"\n[published]\nbleu = 1.0', base=BASE))
    assert "base" not in recipe_mapping(recipe)
    assert recipe_from_mapping(json.loads(json.dumps(recipe_mapping(recipe))), "checkpoint") == recipe
    with pytest.raises(ConfigError, match="checkpoint has no key 'base'"):
        recipe_from_mapping({**recipe_mapping(recipe), "base": "base.toml"}, "checkpoint")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"a": 'base = "b.toml"'}, r"a\.toml: base: .*b\.toml: cannot read the recipe: No such file"),
        ({"a": 'base = "b.toml"', "b": "x ="}, r"a\.toml: base: .*b\.toml: not valid TOML: Invalid value"),
        ({"a": 'base = "a.toml"'}, r"the bases form a circle: .*a\.toml -> .*a\.toml$"),
        (
            {"a": 'base = "b.toml"', "b": 'base = "c.toml"', "c": 'base = "./b.toml"'},
            r"the bases form a circle: .*a\.toml -> .*b\.toml -> .*c\.toml -> .*b\.toml$",
        ),
        ({"a": "base = 3"}, r"a\.toml: base must be the path of a recipe, but is 3"),
        ({"a": 'base = ""'}, r"a\.toml: base must be the path of a recipe, but is ''"),
        ({"a": 'base = "b\\u0000"'}, r"a\.toml: base must be the path of a recipe, but is 'b\\x00'"),
        ({"a": 'base = "b.toml"\n[data]\nsplit = 1', "b": BASE}, r"a\.toml data has no key 'split'"),
    ],
    ids=["missing", "no TOML", "itself", "circle", "number", "empty", "NUL", "merged"],
)
def test_faults_of_bases(tmp_path: Path, texts: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_recipe(write(tmp_path, **texts))


def test_recipes_of_the_time_of_r_drop_are_read_where_they_had_none(tmp_path: Path) -> None:
    """Bundles and checkpoints keep every key that there was."""
    mapping = recipe_mapping(load(tmp_path, BASE))
    former = {share: mapping | {"training": mapping["training"] | {"r_drop": share}} for share in (0.0, 5.0)}
    assert recipe_from_mapping(former[0.0], "bundle") == recipe_from_mapping(mapping, "bundle")
    with pytest.raises(ConfigError, match="r_drop"):
        recipe_from_mapping(former[5.0], "bundle")


def test_a_seed_fits_every_generator(tmp_path: Path) -> None:
    assert load(tmp_path, TEXT + f"[training]\nseed = {2**32 - 1}").training.seed == 2**32 - 1
    assert "seed must be at most 4294967295, but is 4294967296" in refused(
        tmp_path, TEXT + f"[training]\nseed = {2**32}"
    )


def with_set(tmp_path: Path, *settings: str) -> Recipe:
    path = tmp_path / "r.toml"
    path.write_text(TEXT, encoding="utf-8")
    return load_recipe(path, settings)


def test_any_field_is_set_as_the_file_sets_it(tmp_path: Path) -> None:
    recipe = with_set(
        tmp_path,
        "optimiser.learning_rate=5e-4",
        "optimiser.learning_rate = 1e-4",  # the last counts
        "training.metric=bleu",
        "model.width=64",
        "data.corpora.c.repeat=3",
        'data.corpora.0.target="d/{split}.en"',
        "about=Of C: better.",
    )
    assert recipe.optimiser.learning_rate == 1e-4
    assert (recipe.training.metric, recipe.about) == ("bleu", "Of C: better.")
    assert recipe.model["width"] == 64
    assert (recipe.data.corpora[0].repeat, recipe.data.corpora[0].target) == (3, "d/{split}.en")


def test_another_architecture_leaves_the_model_behind(tmp_path: Path) -> None:
    assert with_set(tmp_path, "architecture=transformer", "model.width=16").model == {"width": 16}
    assert with_set(tmp_path, "architecture=dpn").model == {"width": 32}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("optimiser.rat=1", "(--set optimiser.rat=1) optimiser has no key 'rat': known keys are anneal, beta1,"),
        ("optimiser.lerning_rate=1", "optimiser has no key 'lerning_rate': did you mean 'learning_rate'?"),
        ("optimizer.learning_rate=1", "has no key 'optimizer': did you mean 'optimiser'?"),
        ("model.widht=1", "has no key 'widht': did you mean 'width'?"),
        ("optimiser.learning_rate=fast", "learning_rate must be of type float, but is 'fast'"),
        ("training.label_smoothing=0.95", "label_smoothing must be at most 0.9, but is 0.95"),
        ("optimiser.beta1=1", "optimiser beta1 must be at most 0.999999, but is 1.0"),
        ("optimiser.beta2=1", "optimiser beta2 must be at most 0.999999, but is 1.0"),
        ("optimiser.rho=1", "optimiser rho must be at most 0.999999, but is 1.0"),
        ("optimiser.momentum=1", "optimiser momentum must be at most 0.999999, but is 1.0"),
        ("optimiser.epsilon=0", "optimiser epsilon must be at least 1e-20, but is 0.0"),
        ("name=a/b", "name must be letters, digits, '.', '_' and '-', at most 100, where wanted with '@'"),
        ("name=", "and a version of at most 50, but is ''"),
        ("training.metric=chr", "metric must be one of 'loss', 'bleu', 'chrf', 'rouge', but is 'chr'"),
        (
            "training.updates",
            "--set must be KEY=VALUE, such as optimiser.learning_rate=5e-4, but is 'training.updates'",
        ),
        ("training..updates=3", "--set must be KEY=VALUE"),
        ("name.first=3", "--set name.first=3: name is 'r', which has no fields"),
        ("data.corpora.d.repeat=2", "--set data.corpora.d.repeat=2: 'd' must be one of c, or a number below 1"),
    ],
)
def test_what_cannot_be_set_is_refused_with_what_could(tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        with_set(tmp_path, setting)
    assert said in str(raised.value)
