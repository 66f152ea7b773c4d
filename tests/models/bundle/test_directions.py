"""Bundles of several directions: each view sets its own tag, and what does not fit together is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.bundle import Bundle, Manifest, VocabularyFile, render_card, write_bundle
from tandem.models.errors import BundleError, ConfigError
from tandem.models.vocabulary import TaggedVocabulary, train_sentencepiece, untagged
from tests.models.bundle.manifests import small_manifest

LINES = ["a small text about cats", "ein kleiner Text", "un petit texte"] * 20
PAIRS = (("de", "en"), ("fr", "en"), ("en", "de"))
FILE = VocabularyFile("source.model")


def manifest(**changes: Any) -> Manifest:
    both: dict[str, Any] = {"name": "both", "source_languages": ("de", "fr"), "pairs": PAIRS}
    return small_manifest((FILE,), FILE, **(both | changes))


def written(folder: Path, languages: tuple[str, ...] = ("de", "en", "fr"), **changes: Any) -> Bundle:
    pieces = train_sentencepiece(LINES, size=310, languages=languages, seed=1)
    weights = {"w": np.ones(1, np.float32)}
    return write_bundle(folder / "bundle", manifest(**changes), weights, {"source.model": pieces})


def first_piece(bundle: Bundle, text: str = "a text") -> str:
    (vocabulary,) = bundle.source_vocabularies
    return vocabulary.piece_of(vocabulary.encode(text)[0])


def test_every_view_sets_its_tag(tmp_path: Path) -> None:
    bundle = written(tmp_path)
    assert [(view.manifest.source_languages, view.manifest.target_language) for view in bundle.views] == [
        (("de", "fr"), "en"),
        (("en",), "de"),
    ]
    assert [first_piece(view) for view in bundle.views] == ["⟨en⟩", "⟨de⟩"]
    assert first_piece(bundle) == "⟨en⟩", "the first direction, where none is asked for"
    assert bundle.views[1].target_vocabulary is bundle.target_vocabulary
    chosen = bundle.direction("fr", "en")
    assert (chosen.manifest.source_languages, chosen.manifest.pairs) == (("fr",), (("fr", "en"),))
    assert first_piece(bundle.direction("en", "de").direction("en", "de")) == "⟨de⟩"
    assert bundle.manifest.pairs == PAIRS, "a view leaves the bundle as it is"
    assert "de to en, fr to en, en to de" in render_card(bundle.manifest)


def test_a_direction_that_is_not_there_is_refused(tmp_path: Path) -> None:
    bundle = written(tmp_path)
    with pytest.raises(ConfigError, match="both translates de-en, fr-en, en-de, not de-fr"):
        bundle.direction("de", "fr")


def test_a_bundle_of_one_direction_is_its_own_view(tmp_path: Path) -> None:
    bundle = written(tmp_path, pairs=(), source_languages=("de",))
    assert bundle.views == (bundle,)
    assert first_piece(bundle) != "⟨en⟩"
    assert first_piece(bundle.direction("de", "en")) == first_piece(bundle)
    with pytest.raises(ConfigError, match="translates de-en, not en-de"):
        bundle.direction("en", "de")


@pytest.mark.parametrize(
    "changes",
    [{"source_languages": ("de",)}, {"source_languages": ("fr", "de")}, {"task": "summarize"}],
)
def test_pairs_and_languages_agree(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="source_languages must be those of the pairs into 'en'"):
        manifest(**changes)


def test_a_vocabulary_without_the_tags_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no piece '⟨de⟩'"):
        written(tmp_path, languages=("en", "fr"))


def test_a_tagged_vocabulary_is_the_other_one_but_for_the_tag(tmp_path: Path) -> None:
    (tagged,) = written(tmp_path).source_vocabularies
    assert isinstance(tagged, TaggedVocabulary)
    plain = untagged(tagged)
    ids = tagged.encode("ein ⟨en⟩ Text")
    assert ids[1:] == plain.encode("ein ⟨en⟩ Text")
    assert tagged.decode(ids) == plain.decode(ids[1:]) == "ein ⟨en⟩ Text"
    assert tagged.encode("") == []
    assert (tagged.size, tagged.placeholders, tagged.to_bytes()) == (plain.size, plain.placeholders, plain.to_bytes())
    assert tagged.language_tag("de") == tagged.id_of("⟨de⟩") == plain.language_tag("de")
    assert untagged(plain) is plain


def test_a_view_can_be_named_otherwise(tmp_path: Path) -> None:
    """As the service does, which names a bundle by its folder."""
    bundle = written(tmp_path)
    renamed = replace(bundle, manifest=replace(bundle.manifest, name="both@2"))
    assert [view.manifest.name for view in renamed.views] == ["both@2", "both@2"]
