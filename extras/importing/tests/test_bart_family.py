"""BART, mBART-50 and Pegasus: learned positions, norms of embeddings, byte pairs, ids that begin after others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from tandem.extras.importing.bundle import import_bundle, load_model, read_model
from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.tests.comparing import assert_generates, assert_logits, library_logits, rows
from tandem.extras.importing.tests.restated import Family
from tandem.extras.importing.tests.support import ENGLISH, GERMAN, change_json, write_bart, write_mbart, write_pegasus
from tandem.extras.proofs.comparing import varied_lines
from tandem.models.errors import ForeignModelError


@dataclass(frozen=True)
class Case:
    """A kind: how it is written, asked for, restated, and called by the library."""

    write: Callable[..., dict[str, Any]]
    asked: Asked
    library: str
    restated: dict[str, Any] = field(default_factory=dict)


PAIR = Asked(("en",), ("de",))
CASES = {
    "bart": Case(
        write_bart,
        Asked(),
        "BartForConditionalGeneration",
        {"activation": "gelu", "first": 2, "scale": 1.0},
    ),
    "mbart": Case(write_mbart, PAIR, "MBartForConditionalGeneration", {"activation": "gelu", "first": 2, "pre": True}),
    "pegasus": Case(write_pegasus, Asked(), "PegasusForConditionalGeneration", {"activation": "relu", "pre": True}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def folder(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("models") / "model"
    case.write(path)
    return path


def test_logits_are_the_restated_ones(case: Case, folder: Path) -> None:
    read = read_model(folder, case.asked)
    restated = Family.of(load_file(folder / "model.safetensors"), heads=2, **{"scale": 4.0} | case.restated)
    assert_logits(read, load_model(folder, read).double(), restated.logits, 4)


@pytest.mark.slow  # every day the logits are restated, and a Marian model is held against the library
def test_logits_and_hypotheses_are_the_librarys(case: Case, folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    published = getattr(transformers, case.library).from_pretrained(folder).eval()
    read = read_model(folder, case.asked)
    ours = load_model(folder, read)
    settings: dict[str, Any] = {"bad_words_ids": [[rows(read)[0]]]}
    assert_logits(read, ours, library_logits(published), 5)
    options = replace(read.decoding, beam_size=4, length_penalty=0.5, no_repeat_ngram_size=2, min_length=6)
    if read.tags:
        tag = read.target.language_tag("de")
        options, settings = replace(options, prefix=(tag,)), settings | {"forced_bos_token_id": rows(read)[tag]}
    assert_generates(read, ours, published, options, 24, **settings)


def test_a_summarizer(tmp_path: Path, without_graphs: list[Any]) -> None:
    write_pegasus(tmp_path / "model")
    bundle = import_bundle(tmp_path / "model", tmp_path / "titles", Asked(), Labels("Apache-2.0", calibration=ENGLISH))
    manifest = bundle.manifest
    assert (manifest.task, manifest.source_languages, manifest.target_language) == ("summarize", ("en",), "en")
    vocabulary = bundle.target_vocabulary
    assert [vocabulary.piece_of(token) for token in (0, 1, 3, 4)] == ["<pad>", "<unk>", "</s>", "<mask_1>"]
    assert vocabulary.decode(vocabulary.encode(ENGLISH[0])) == ENGLISH[0]


def test_the_first_mbart_is_refused(tmp_path: Path) -> None:
    write_mbart(tmp_path, decoder_start_token_id=20)
    change_json(tmp_path / "tokenizer_config.json", tokenizer_class="MBartTokenizer")
    with pytest.raises(ForeignModelError) as refused:
        read_model(tmp_path, PAIR)
    assert refused.value.faults == (
        "config.json: decoder_start_token_id must be 2, but is 20",
        "tokenizer_config.json: tokenizer_class must be 'MBart50Tokenizer', but is \"MBartTokenizer\"",
    )


def test_what_a_summarizer_of_byte_pairs_says(tmp_path: Path, without_graphs: list[Any]) -> None:
    config = write_bart(tmp_path / "model", forced_bos_token_id=0)
    change_json(
        tmp_path / "model" / "config.json", vocab_size=config["vocab_size"] - 1
    )  # as the files of a well-known one
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    for name in ("model.shared.weight", "final_logits_bias"):
        tensors[name] = (tensors[name][:-1] if tensors[name].shape[0] > 1 else tensors[name][:, :-1]).contiguous()
    save_file(tensors, tmp_path / "model" / "model.safetensors")
    bundle = import_bundle(tmp_path / "model", tmp_path / "titles", Asked(), Labels("MIT", calibration=ENGLISH))
    vocabulary, manifest = bundle.target_vocabulary, bundle.manifest
    assert (manifest.task, manifest.vocabularies.target.kind) == ("summarize", "byte-pairs")
    assert manifest.decoding.prefix == (vocabulary.id_of("<s>"),)
    ids = bundle.source_vocabularies[0].encode("Straße 日本 🙂")
    assert ids[0] == vocabulary.id_of("<s>")
    assert vocabulary.decode(ids) == "Straße 日本 🙂"


def test_files_of_byte_pairs_that_are_missing_or_malformed(tmp_path: Path) -> None:
    write_bart(tmp_path)
    (tmp_path / "merges.txt").write_text("a\n", encoding="utf-8")
    with pytest.raises(ForeignModelError, match="its byte pairs: merges must be two pieces with a space between"):
        read_model(tmp_path, Asked())
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(
        ForeignModelError, match=r"tokenizer\.json is missing; vocab\.json and merges\.txt, or tokenizer"
    ):
        read_model(tmp_path, Asked())


def assert_same_text(folder: Path, lines: Sequence[str]) -> None:
    tokenizer = pytest.importorskip("transformers").BartTokenizer.from_pretrained(folder)
    read = read_model(folder, Asked())
    theirs = rows(read)
    for line in lines:
        ids = read.source.encode(line)
        expected = tokenizer(line).input_ids
        assert [theirs[one] for one in ids] + [theirs[3]] == expected, line
        assert read.target.decode(ids) == tokenizer.decode(
            expected, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )


def lines_without_special_pieces(count: int) -> list[str]:
    """What the library takes for its own pieces is text for us; of nothing it makes begin and end."""
    return [line for line in varied_lines(count) if "<s>" not in line and line]


def test_text_is_cut_and_joined_as_the_library_does(tmp_path: Path) -> None:
    write_bart(tmp_path)
    assert_same_text(tmp_path, [*ENGLISH, *GERMAN, "we're I'LL 'd", *lines_without_special_pieces(300)])


@pytest.mark.slow
def test_ten_thousand_lines_are_cut_and_joined_as_the_library_does(tmp_path: Path) -> None:
    write_bart(tmp_path)
    assert_same_text(tmp_path, lines_without_special_pieces(10_000))
