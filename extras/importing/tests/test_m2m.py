"""M2M100 and NLLB: tags on either side, positions from 2 on, norms before their blocks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tandem.extras.importing.bundle import import_bundle, load_model, read_model
from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.tests.comparing import (
    assert_generates,
    assert_logits,
    library_logits,
    rows,
)
from tandem.extras.importing.tests.restated import Family
from tandem.extras.importing.tests.support import ENGLISH, GERMAN, change_json, write_m2m, write_nllb
from tandem.extras.proofs.comparing import varied_lines
from tandem.extras.proofs.shapes import write_json
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError, ForeignModelError
from tandem.models.vocabulary import TaggedVocabulary

ASKED = Asked(("en",), ("de",))
Writer = Callable[[Path], dict[str, Any]]


@pytest.fixture(scope="module", params=[write_m2m, write_nllb], ids=["m2m100", "nllb"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("models") / "m2m"
    request.param(path)
    return path


def test_logits_are_the_restated_ones(folder: Path) -> None:
    read = read_model(folder, ASKED)
    tensors = load_file(folder / "model.safetensors")
    restated = Family.of(tensors, heads=2, scale=4.0, positions="tensor2tensor", first=2, activation="relu", pre=True)
    assert_logits(read, load_model(folder, read).double(), restated.logits, 4)


@pytest.mark.parametrize(
    ("write", "form", "tags"),
    [
        (write_m2m, "Hugging Face M2M100", {"en": "__en__", "de": "__de__"}),
        (write_nllb, "Hugging Face NLLB", {"en": "eng_Latn", "de": "deu_Latn"}),
    ],
)
def test_what_the_files_say(tmp_path: Path, write: Writer, form: str, tags: dict[str, str]) -> None:
    config = write(tmp_path / "model")
    read = read_model(tmp_path / "model", ASKED)
    assert (read.form, read.tags, read.source.languages) == (form, "both", tags)
    assert [read.source.piece_of(token) for token in range(4)] == ["<pad>", "<unk>", "⟨start⟩", "</s>"]
    assert rows(read)[:4] == [1, 3, 2, 2]
    assert sorted({*rows(read)}) == list(range(config["vocab_size"]))
    assert (read.decoding.beam_size, read.decoding.max_length) == (5, 38)
    assert read.source.decode([token for token in range(read.source.size) if token not in read.source._silent])
    for tag in tags.values():
        assert read.source.decode([read.source.id_of(tag), *read.source.encode(ENGLISH[0])]) == read.source.decode(
            read.source.encode(ENGLISH[0])
        )


def test_ids_of_tags_are_their_places(tmp_path: Path) -> None:
    write_m2m(tmp_path)
    read = read_model(tmp_path, ASKED)
    pieces = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    known = rows(read)
    assert [known[read.source.id_of(f"__{code}__")] - len(pieces) for code in ("en", "de", "fr")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "asked", "message"),
    [
        ({}, Asked(), r"it knows 3 languages: say with --source CODE .*; it knows 3 languages: say with --target CODE"),
        ({}, Asked(("en",), ("pl",)), r"the language 'pl' has no tag among de, en, fr: say which with --tag pl=TAG"),
        ({}, Asked(("en",), ("en",)), "--source and --target must differ, but both are 'en'"),
        ({"pad_token_id": 3}, ASKED, "pad_token_id must be 1, but is 3"),
        ({"eos_token_id": 10**6}, ASKED, r"eos_token_id must be below \d+, but is 1000000"),
        ({"vocab_size": 10}, ASKED, "vocab.json must map pieces to ids from 0 to 9"),
        ({"activation_function": "tanh"}, ASKED, "activation_function must be one of"),
    ],
)
def test_faults_are_named(tmp_path: Path, change: dict[str, Any], asked: Asked, message: str) -> None:
    write_m2m(tmp_path)
    change_json(tmp_path / "config.json", **change)
    with pytest.raises(ForeignModelError, match=message):
        read_model(tmp_path, asked)


def test_files_without_tags_or_with_old_ones(tmp_path: Path) -> None:
    write_nllb(tmp_path)
    write_json(tmp_path / "tokenizer_config.json", {"legacy_behaviour": True})
    with pytest.raises(ForeignModelError, match=r"legacy_behaviour must be False.*names the languages' tags"):
        read_model(tmp_path, ASKED)


def test_one_bundle_of_several_pairs(folder: Path, tmp_path: Path, without_graphs: list[Any]) -> None:
    codes = ("en", "de")
    bundle = import_bundle(folder, tmp_path / "many", Asked(codes, codes), Labels("MIT", calibration=ENGLISH))
    manifest = bundle.manifest
    assert (manifest.pairs, manifest.tags) == ((("de", "en"), ("en", "de")), "both")
    assert (manifest.source_languages, manifest.target_language) == (("de",), "en")
    target = bundle.target_vocabulary
    assert manifest.decoding.prefix == (target.language_tag("en"),)
    assert [(view.manifest.source_languages, view.manifest.target_language) for view in bundle.views] == [
        (("de",), "en"),
        (("en",), "de"),
    ]
    for view in (*bundle.views, bundle, bundle.direction("en", "de")):
        (source,) = view.source_vocabularies
        assert isinstance(source, TaggedVocabulary)
        language = view.manifest.source_languages[0]
        assert source.encode(ENGLISH[0])[0] == target.language_tag(language)
        assert view.manifest.decoding.prefix == (target.language_tag(view.manifest.target_language),)
    with pytest.raises(ConfigError, match="many translates de-en, en-de, not en-fr"):
        bundle.direction("en", "fr")
    assert Bundle.load(bundle.path).manifest == manifest


# Beside the library itself, where it is installed.


@pytest.fixture(scope="module")
def published(folder: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.M2M100ForConditionalGeneration.from_pretrained(folder).eval()


def test_logits_are_the_librarys(folder: Path, published: Any) -> None:
    read = read_model(folder, ASKED)
    assert_logits(read, load_model(folder, read), library_logits(published), 5)


@pytest.mark.slow
def test_hypotheses_are_those_of_generate(folder: Path, published: Any) -> None:
    """With a length penalty: a tag that is forced counts as certain."""
    read = read_model(folder, ASKED)
    tag = read.target.language_tag("de")
    options = replace(read.decoding, beam_size=4, length_penalty=0.5, no_repeat_ngram_size=2, min_length=6)
    options = replace(options, prefix=(tag,))
    forced = rows(read)[tag]
    ours = load_model(folder, read)
    assert_generates(read, ours, published, options, 24, forced_bos_token_id=forced, bad_words_ids=[[1]])


def assert_same_text(folder: Path, lines: Sequence[str]) -> None:
    transformers = pytest.importorskip("transformers")
    is_nllb = not (folder / "vocab.json").is_file()
    if is_nllb:
        pytest.skip("the library makes its own tokenizer of NLLB's files")
    tokenizer = transformers.M2M100Tokenizer.from_pretrained(folder, src_lang="en")
    read = read_model(folder, ASKED)
    source, theirs = TaggedVocabulary(read.source, "en"), rows(read)
    length = len(json.loads((folder / "vocab.json").read_text(encoding="utf-8")))
    known = {token: place for token, place in enumerate(theirs) if place < length}
    for line in lines:
        ids = source.encode(line)
        expected = tokenizer(line).input_ids
        assert [known[one] for one in ids[1:]] + [theirs[3]] == expected[1:], line
        written = tokenizer.decode(expected[1:], skip_special_tokens=True)
        assert read.target.decode(ids) == written, line


def plain(lines: Sequence[str]) -> list[str]:
    """Without those that hold what the library takes for its own special pieces, and we for text."""
    return [line for line in lines if "<s>" not in line]


def test_text_is_cut_and_joined_as_the_library_does(folder: Path) -> None:
    assert_same_text(folder, [*ENGLISH, *GERMAN, *plain(varied_lines(200))])


@pytest.mark.slow
def test_ten_thousand_lines_are_cut_and_joined_as_the_library_does(folder: Path) -> None:
    assert_same_text(folder, plain(varied_lines(10_000)))
