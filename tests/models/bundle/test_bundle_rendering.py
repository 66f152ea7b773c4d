"""What a bundle brings along to turn hypotheses into text: a dictionary, and what edits are applied to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.bundle import Bundle, Manifest, Vocabularies, VocabularyFile, write_bundle
from tandem.models.errors import BundleError
from tandem.models.translation.rendering import Renderer, with_unknown_words
from tandem.models.vocabulary import EDITS, Vocabulary, WordVocabulary, train_sentencepiece
from tandem.models.vocabulary.dictionary import Dictionary
from tests.models.bundle.manifests import small_manifest

WORDS = WordVocabulary(["a", "cat"])
EDITING = train_sentencepiece(["eins zwei drei"] * 9, size=300, languages=("de",), seed=1, further=EDITS)
HELD = Dictionary(({"Katze": "cat"},))
SHARED = VocabularyFile("shared.model")


def manifest(sources: tuple[VocabularyFile, ...], target: VocabularyFile, **changes: Any) -> Manifest:
    """Of post-editing, where nothing else is said."""
    languages = {"source_languages": ("en",) * len(sources), "target_language": "de"}
    config = {"source_vocabularies": [10] * len(sources)}
    return small_manifest(sources, target, **({"task": "postedit", "config": config} | languages | changes))


def write(folder: Path, about: Manifest, vocabularies: dict[str, Vocabulary], **files: bytes) -> Bundle:
    weights = {"w": np.ones(2, np.float32)}
    return write_bundle(folder / "bundle", about, weights, vocabularies, {f"{k}.tsv": v for k, v in files.items()})


def word_bundle(folder: Path, **changes: Any) -> Bundle:
    kinds = VocabularyFile("source.words", "words"), VocabularyFile("target.words", "words")
    about = manifest((kinds[0],), kinds[1], task="translate", dictionary="dictionary.tsv", **changes)
    return write(folder, about, {"source.words": WORDS, "target.words": WORDS}, dictionary=HELD.to_bytes())


def edit_bundle(folder: Path, sources: tuple[VocabularyFile, ...], vocabularies: dict[str, Vocabulary]) -> Bundle:
    return write(folder, manifest(sources, SHARED, target_form="edits"), vocabularies)


def test_a_dictionary_is_shipped_read_and_used(tmp_path: Path) -> None:
    bundle = word_bundle(tmp_path)
    assert bundle.dictionary == HELD
    assert "dictionary.tsv" in bundle.manifest.files
    assert Renderer.of(bundle) == Renderer((bundle.source_vocabularies[0],), bundle.target_vocabulary, "text", HELD)
    assert Renderer.of(bundle).needs_attention


def test_a_bundle_says_whether_unknown_words_stay(tmp_path: Path) -> None:
    """And whoever uses it may want it otherwise."""
    bundle = word_bundle(tmp_path, keep_unknown=True)
    assert Renderer.of(Bundle.load(bundle.path)).keep_unknown
    wanted = {keep: Renderer.of(with_unknown_words(bundle, keep)).keep_unknown for keep in (None, True, False)}
    assert wanted == {None: True, True: True, False: False}


def test_bundles_without_one_load_as_before(tmp_path: Path) -> None:
    """Manifests written before there was a choice lack the keys."""
    plain = manifest((SHARED,), SHARED, task="translate")
    bundle = write(tmp_path, plain, {"shared.model": EDITING})
    content = json.loads((bundle.path / "manifest.json").read_text())
    del content["target_form"], content["keep_unknown"], content["dictionary"], content["decoding"]["attention"]
    (bundle.path / "manifest.json").write_text(json.dumps(content))
    loaded = Bundle.load(bundle.path)
    assert replace(loaded.manifest, files={}) == plain
    assert loaded.dictionary == Dictionary()
    assert Renderer.of(loaded).target_form == "text"


def test_an_altered_or_malformed_dictionary_is_refused(tmp_path: Path) -> None:
    bundle = word_bundle(tmp_path)
    file = bundle.path / "dictionary.tsv"
    file.write_bytes(b"0\tKatze\tdog\n")
    with pytest.raises(BundleError, match=r"dictionary\.tsv was altered"):
        Bundle.load(bundle.path)
    file.unlink()
    with pytest.raises(BundleError, match=r"dictionary\.tsv is missing"):
        Bundle.load(bundle.path)
    about = replace(bundle.manifest, dictionary="dictionary.tsv")
    both: dict[str, Vocabulary] = {"source.words": WORDS, "target.words": WORDS}
    with pytest.raises(BundleError, match=r"dictionary\.tsv: line 1"):
        write(tmp_path / "other", about, both, dictionary=b"Katze cat\n")
    with pytest.raises(BundleError, match=r"dictionary\.tsv is not among the files"):
        write(tmp_path / "other", about, both)


def test_edits_need_the_translations_vocabulary_and_their_operations(tmp_path: Path) -> None:
    other = VocabularyFile("source.model")
    plain = train_sentencepiece(["eins zwei drei"] * 9, size=300, languages=("de",), seed=1)
    both: dict[str, Vocabulary] = {"shared.model": EDITING, "source.model": plain}
    bundle = edit_bundle(tmp_path, (other, SHARED), both)
    assert Renderer.of(bundle).target_form == "edits"
    with pytest.raises(BundleError, match="one vocabulary for the last source and the target"):
        edit_bundle(tmp_path / "wrong", (SHARED, other), both)
    with pytest.raises(BundleError, match="target_form 'edits': the vocabulary of 300 pieces has no piece '⟨keep⟩'"):
        edit_bundle(tmp_path / "wrong", (SHARED,), {"shared.model": plain})


def test_sources_that_are_features_have_no_vocabulary(tmp_path: Path) -> None:
    vocabularies = Vocabularies((SHARED,), SHARED, features=(7, 0))
    about = manifest((SHARED,), SHARED, task="translate", vocabularies=vocabularies)
    bundle = write(tmp_path, about, {"shared.model": EDITING})
    assert Renderer.of(bundle).sources == (None, bundle.source_vocabularies[0])
