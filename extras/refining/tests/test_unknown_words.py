"""Word models, the whole way: what the vocabulary lacks is translated by the dictionary or copied from the source."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.extras.shared.alignment import build_dictionary
from tandem.models.bundle import Bundle
from tandem.models.search import SearchOptions
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.vocabulary import UNK
from tandem.service.app import create_app
from tandem.service.engine import Engine, EngineOptions
from tandem.service.settings import Settings
from tandem.training.data.config import CorpusConfig, VocabularyConfig
from tandem.training.data.prepare import prepare
from tandem.training.data.summary import PreparedSummary, check_prepared
from tandem.training.loop.validation import TextValidator
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.recipe import Recipe, TrainingConfig
from tests.service.support import running
from tests.sharing import made_once
from tests.training.toy import DATA, LETTERS, bundle_without_graphs, trained_bundle, write_lines, written

RARE = {"hund": "dog", "maus": "mouse"}
NAMED = replace(
    DATA,
    corpora=(CorpusConfig("names", ("{split}.de",), "{split}.en", "CC0", "nobody"),),
    vocabulary=VocabularyConfig(kind="word", size=4 + 16 + 2 + len(LETTERS), joint=False),  # room for the letters only
)
UPDATES = 400


def recipe() -> Recipe:
    """A convolutional model, whose paper's this is."""
    return Recipe(
        name="names",
        task="translate",
        source_languages=("de",),
        target_language="en",
        data=NAMED,
        architecture="convs2s",
        model={"embedding": 32, "output_embedding": 32, "max_positions": 16, "dropout": 0.0}
        | {"encoder_widths": [32], "encoder_kernels": [1], "decoder_widths": [32], "decoder_kernels": [3]},
        optimiser=OptimiserConfig(learning_rate=5e-3, schedule="plateau", warmup=20, cooldown=40),
        decoding=SearchOptions(beam_size=2, max_length=11),
        training=TrainingConfig(
            updates=UPDATES,
            seed=2,  # seven of the first eight get 39 or 40 of the 40 lines right
            batch_tokens=500,
            precision="float32",
            validate_every=UPDATES,
            validation_sentences=20,
            metric="bleu",
        ),
    )


def translation(word: str) -> str:
    return f"the-{word}" if word in LETTERS else RARE.get(word, word)


def lines(chance: random.Random, count: int) -> list[list[str]]:
    """Letters, and in most lines a name or a rare word among them."""
    found = []
    for number in range(count):
        words = chance.choices(LETTERS, k=chance.randint(1, 5))
        unknown = chance.choice([f"Name{number}", *RARE])
        if chance.random() < 0.7:
            words.insert(chance.randint(0, len(words)), unknown)
        found.append(words)
    return found


@pytest.fixture(scope="module")
@made_once
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("names")
    chance = random.Random(11)
    for split, count in (("train", 1500), ("valid", 20), ("test", 40)):
        text = lines(chance, count)
        translated = [[translation(word) for word in line] for line in text]
        for side, column in (("de", text), ("en", translated)):
            write_lines(root / f"{split}.{side}", map(" ".join, column))
    prepare(NAMED, languages=("de", "en"), root=root, out=root / "data", seed=1, dictionary=build_dictionary)
    return root


@pytest.fixture(scope="module")
@made_once
def bundle(folder: Path) -> Bundle:
    return trained_bundle(recipe(), folder, 80)


def test_the_dictionary_goes_from_the_training_text_to_the_bundle(bundle: Bundle, folder: Path) -> None:
    assert bundle.manifest.dictionary == "dictionary.tsv"
    assert (bundle.path / "dictionary.tsv").read_bytes() == (folder / "data" / "dictionary.tsv").read_bytes()
    entries = bundle.dictionary.sources[0]
    assert {word: entries[word] for word in RARE} == RARE
    assert not any(word.startswith("Name") for word in entries)
    assert {UNK} == {v.encode("hund Name3")[i] for v in bundle.source_vocabularies for i in (0, 1)}


def test_names_and_rare_words_come_out(bundle: Bundle, folder: Path) -> None:
    read, wanted = ((folder / f"test.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en"))
    found = written(bundle, TorchGraphs(load_bundle_model(bundle)), [read])
    assert sum(a == b for a, b in zip(found, wanted, strict=True)) > 0.8 * len(wanted)
    names = [line for line in found if "Name" in line]
    assert len(names) > 3
    assert not any("<unk>" in line for line in found)


def test_unknown_words_stay_where_a_recipe_says_so(bundle: Bundle, folder: Path) -> None:
    """In validation and in the bundle; data that was prepared before is as good."""
    keeping = replace(recipe(), data=replace(NAMED, keep_unknown=True))
    check_prepared(PreparedSummary.load(folder / "data"), keeping.data, ("de", "en"), folder / "data")
    model = load_bundle_model(bundle)
    decoded = TextValidator(keeping, folder / "data").decode(model)["names"]
    rare = [text for text, gold in zip(decoded.texts, decoded.references, strict=True) if "Name" in gold]
    assert any("<unk>" in text for text in rare)
    assert not any("Name" in text for text in decoded.texts)
    kept = bundle_without_graphs(model, keeping, folder / "data", folder / "keeping")
    assert kept.manifest.keep_unknown
    assert not bundle.manifest.keep_unknown
    assert written(kept, TorchGraphs(load_bundle_model(kept)), [["a Zebulon c"]]) == ["the-a <unk> the-c"]


@pytest.mark.anyio
async def test_the_service_replaces_them_too_and_shows_what_the_model_wrote(bundle: Bundle) -> None:
    engine = Engine(EngineOptions(workers=1, cache_sentences=10))
    engine.add(bundle, TorchGraphs(load_bundle_model(bundle)))
    fields = {"q": "a Zebulon c", "source": "de", "target": "en", "details": True}
    async with running(create_app(Settings(shutdown_timeout=5), engine)) as client:
        first, again = [(await client.post("/translate", json=fields)).json() for _ in range(2)]
        other = (await client.post("/translate", json={**fields, "q": "a Zacharias c"})).json()
    assert first["translatedText"] == again["translatedText"] == "the-a Zebulon the-c"
    assert first["details"][0]["sentences"][0]["tokens"] == ["the-a", "<unk>", "the-c"]
    assert other["translatedText"] == "the-a Zacharias the-c"  # the same tokens, and another text
