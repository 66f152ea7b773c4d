"""Post-editing, the whole way: a model learns to keep all but one marked word, and everything around it writes text."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import SearchOptions, translate_batch
from tandem.models.translation.rendering import Renderer
from tandem.models.vocabulary import DELETE, KEEP
from tandem.service.bundles.served import ServedModel
from tandem.service.errors import InvalidOption
from tandem.service.runtimes import open_graphs
from tandem.service.settings import Settings
from tandem.service.translation.plans import search_options
from tandem.service.translation.requests import DecodeRequest
from tandem.training.data.config import CorpusConfig, VocabularyConfig
from tandem.training.data.prepare import prepare
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.recipe import Recipe, TrainingConfig
from tests.command import needs, succeeds
from tests.sharing import made_once
from tests.training.toy import DATA, trained_bundle, write_lines, written

WORDS = [consonant + vowel for consonant in "bdgk" for vowel in "ae"]
UPDATES = 150
WRONG, RIGHT, TOO_MUCH = "wrong", "right", "uhm"
EDITING = replace(
    DATA,
    corpora=(CorpusConfig("edits", ("{split}.src", "{split}.mt"), "{split}.pe", "CC0", "nobody"),),
    vocabulary=VocabularyConfig(size=330),
    max_source_tokens=40,
    max_target_tokens=40,
    target_form="edits",
)


def recipe() -> Recipe:
    """A recurrent decoder that attends to the source and to its translation."""
    return Recipe(
        name="edits",
        task="postedit",
        source_languages=("en", "de"),
        target_language="de",
        data=EDITING,
        architecture="multisource",
        model={"embedding": 32, "encoder_width": 24, "attention_width": 32, "decoder_width": 48},
        optimiser=OptimiserConfig(learning_rate=2e-2, schedule="plateau", warmup=20, cooldown=50),
        decoding=SearchOptions(beam_size=2, max_length=39),
        training=TrainingConfig(
            updates=UPDATES,
            batch_tokens=600,
            precision="float32",
            validate_every=UPDATES,
            validation_sentences=12,
            metric="bleu",
        ),
    )


def write_corpus(root: Path) -> None:
    chance = random.Random(7)
    for split, count in (("train", 600), ("valid", 12), ("test", 12)):
        sources, translations, edited = [], [], []
        for _ in range(count):
            words = chance.choices(WORDS, k=chance.randint(1, 4))
            place, mark = chance.randint(0, len(words)), chance.choice((WRONG, TOO_MUCH, ""))
            translations.append([*words[:place], *([mark] if mark else []), *words[place:]])
            sources.append([f"the{word}" for word in words])
            edited.append([*words[:place], *([RIGHT] if mark == WRONG else []), *words[place:]])
        for side, lines in (("src", sources), ("mt", translations), ("pe", edited)):
            write_lines(root / f"{split}.{side}", map(" ".join, lines))


@pytest.fixture(scope="module")
@made_once
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("edits")
    write_corpus(root)
    prepare(EDITING, languages=("en", "de", "de"), root=root, out=root / "data", seed=1)
    return root


@pytest.fixture(scope="module")
@made_once
def bundle(folder: Path) -> Bundle:
    return trained_bundle(recipe(), folder, 90)


@needs("evaluate")
def test_it_learns_to_keep_all_but_the_marked_word(bundle: Bundle, folder: Path) -> None:
    """By `tandem evaluate`, which also prints what leaving the translation alone would score."""
    assert bundle.manifest.target_form == "edits"
    asked = ("--source", folder / "test.src", "--source", folder / "test.mt", "--references", folder / "test.pe")
    found = json.loads(succeeds("evaluate", bundle.path, *asked, "--runtime", "torch", "--json"))["scores"]
    assert list(found) == ["edits", "as it is"]
    own, untouched = ({score["metric"]: score["value"] for score in found[name]} for name in ("edits", "as it is"))
    assert {"BLEU", "chrF", "TER", "tokenised BLEU"} <= set(own)
    assert own["TER"] < untouched["TER"] / 2
    assert own["BLEU"] > untouched["BLEU"]


def test_lines_come_out_as_text(bundle: Bundle) -> None:
    columns = [["theba thede", "", "theka"], ["ba wrong de", "", "ka uhm"]]
    assert written(bundle, open_graphs(bundle, "torch"), columns) == ["ba right de", "", "ka"]


def test_the_service_writes_text_and_shows_what_the_model_wrote(bundle: Bundle) -> None:
    model = ServedModel.of(bundle)
    options = search_options(DecodeRequest(q=["ba wrong de"], beam_size=2), model, Settings())
    vocabulary = bundle.target_vocabulary
    operations = {vocabulary.id_of(KEEP), vocabulary.id_of(DELETE)}
    assert not operations & set(options.suppressed)
    sentence = ["theba thede", "ba  wrong de"]
    sources = tuple(np.array(one) for one in model.encode(sentence))
    best = translate_batch(open_graphs(bundle, "torch"), [sources], options)[0][0]
    assert model.decode(best, sentence) == "ba right de"
    assert {KEEP, DELETE} <= set(model.pieces(best))


def test_options_that_would_spoil_edits_are_refused(bundle: Bundle) -> None:
    request = DecodeRequest(q=["ba"], no_repeat_ngram_size=2)
    with pytest.raises(InvalidOption, match=r"must be 0 for .*, which writes edits") as caught:
        search_options(request, ServedModel.of(bundle), Settings())
    assert (caught.value.field, caught.value.value) == ("no_repeat_ngram_size", 2)
    decoding = recipe().decoding
    for name, spoilt in (
        ("no_repeat_ngram_size", replace(decoding, no_repeat_ngram_size=3)),
        ("max_rounds", replace(decoding, max_rounds=3)),
    ):
        with pytest.raises(ConfigError, match=f"{name} must be 0 for edits, most of which are equal, but is 3"):
            replace(recipe(), decoding=spoilt)
    with pytest.raises(ConfigError, match="needs the task 'postedit', but it is 'translate'"):
        replace(recipe(), task="translate")


def test_a_text_bundle_with_such_a_vocabulary_never_writes_operations(bundle: Bundle) -> None:
    text = replace(bundle, manifest=replace(bundle.manifest, target_form="text"))
    suppressed = ServedModel.of(text).options.suppressed
    assert {bundle.target_vocabulary.id_of(KEEP), bundle.target_vocabulary.id_of(DELETE)} <= set(suppressed)
    assert Renderer.of(text).target_form == "text"
