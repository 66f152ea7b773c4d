"""Shortlists built from text whose translations are known."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.evaluation.coverage import coverage
from tandem.extras.refining.shortlists import build_shortlist, tagged_shortlist
from tandem.extras.shared import alignment
from tandem.extras.shared.extending import text_by_direction
from tandem.extras.shared.shortlists import encode
from tandem.models.bundle import VocabularyFile, write_bundle
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.search import Array
from tandem.models.search.shortlist import Shortlist
from tandem.models.vocabulary import (
    EOS,
    PLACEHOLDERS,
    SentencePieceVocabulary,
    WordVocabulary,
    train_sentencepiece,
)
from tests.models.bundle.manifests import small_manifest
from tests.training.toy import random_bitext

LEXICON = {f"wort{number}": f"word{number}" for number in range(30)}
NAMES = tuple(f"Name{number}" for number in range(5))
SOURCE = WordVocabulary([*PLACEHOLDERS, *LEXICON, *NAMES])
TARGET = WordVocabulary([*PLACEHOLDERS, "the", *LEXICON.values(), *NAMES, "17", ",", "café"])
bitext = partial(random_bitext, LEXICON, 400)


def build(per_word: int = 1, common: int = 0) -> Shortlist:
    return build_shortlist(([SOURCE], TARGET), bitext(), per_word=per_word, common=common)


def words(shortlist: Shortlist, line: str) -> set[str]:
    """The words that a line lists beyond what every list holds."""
    found = shortlist.select((np.array([*SOURCE.encode(line), EOS]),))
    return {TARGET.piece_of(token) for token in np.setdiff1d(found, shortlist.always).tolist()}


def test_every_word_lists_its_translation() -> None:
    shortlist = build()
    for word, translation in LEXICON.items():
        assert words(shortlist, word) == {translation}
    assert words(shortlist, "wort3 wort7") == {"word3", "word7"}


def test_words_that_the_target_knows_list_their_copy() -> None:
    shortlist = build()
    assert words(shortlist, "Name3 wort1") == {"Name3", "word1"}


def test_every_list_holds_what_may_be_needed_anywhere() -> None:
    listed = {TARGET.piece_of(token) for token in build().always.tolist()}
    assert listed == {"</s>", "<unk>", *PLACEHOLDERS, "17", ","}
    with_common = {TARGET.piece_of(token) for token in build(common=1).always.tolist()}
    assert with_common == {*listed, "the"}


def test_pieces_of_a_joint_vocabulary_list_themselves() -> None:
    lines = ["ein kleines Haus", "a little house"] * 30
    pieces: SentencePieceVocabulary = train_sentencepiece(lines, size=310, languages=("de",), seed=1)
    shortlist = build_shortlist(([pieces], pieces), [lines[::2], lines[1::2]], per_word=1, common=0)
    tokens = pieces.encode("Xanadu kleines")
    assert set(tokens) <= set(shortlist.select((np.array(tokens),)).tolist())


def test_each_source_has_its_own_table() -> None:
    source, target = bitext()
    other = WordVocabulary([f"mot{number}" for number in range(30)])
    second = [line.replace("wort", "mot") for line in source]
    shortlist = build_shortlist(([SOURCE, other], TARGET), [source, second, target], per_word=1, common=0)
    both = (np.array(SOURCE.encode("wort3")), np.array(other.encode("mot8")))
    listed = {TARGET.piece_of(token) for token in shortlist.select(both).tolist()}
    assert {"word3", "word8"} <= listed


def test_the_same_text_gives_the_same_shortlist(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(per_word=3, common=2).to_bytes() == build(per_word=3, common=2).to_bytes()
    monkeypatch.setattr(alignment, "MOST_CELLS", 600)
    few = build()
    assert few.to_bytes() == build().to_bytes()
    assert sum(words(few, word) == {translation} for word, translation in LEXICON.items()) > len(LEXICON) / 2


def test_coverage_counts_tokens_sentences_and_entries() -> None:
    shortlist = build()
    lines = ["wort1 wort2", "wort3"]
    sources: list[tuple[Array, ...]] = [(ids,) for ids in encode(SOURCE, lines)]
    found = coverage(shortlist, sources, encode(TARGET, ["word1 word2", "word3 word4"]))
    assert found.tokens == pytest.approx(3 / 4)
    assert found.sentences == pytest.approx(1 / 2)
    assert found.listed == pytest.approx(len(shortlist.always) + 3 / 2)


def test_more_targets_cover_more() -> None:
    source, target = bitext(seed=2)
    sources: list[tuple[Array, ...]] = [(ids,) for ids in encode(SOURCE, source)]
    shares = [coverage(build(per_word), sources, encode(TARGET, target)).tokens for per_word in (1, 2, 8)]
    assert shares == sorted(shares)
    assert shares[0] > 0.7
    assert shares[-1] > shares[0]


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(ConfigError, match="per_word >= 1"):
        build(per_word=0)
    with pytest.raises(ConfigError, match="common >= 0"):
        build(common=-1)
    with pytest.raises(CorpusError, match="1 source texts and the target, but 3 are given"):
        build_shortlist(([SOURCE], TARGET), [["a"], ["b"], ["c"]], per_word=1, common=0)
    with pytest.raises(CorpusError, match="the target has none"):
        build_shortlist(([SOURCE], TARGET), [["a"], [""]], per_word=1, common=0)


def test_each_direction_lists_its_own_words(tmp_path: Path) -> None:
    """Of one vocabulary: "text" alone becomes "Text" in German and "texte" in French, and "Text" and "texte" "text"."""
    lines = {"en": ["small text", "text", "small"], "de": ["kleiner Text", "Text", "kleiner"]}
    lines["fr"] = ["petit texte", "texte", "petit"]
    pieces = train_sentencepiece([*lines["en"], *lines["de"], *lines["fr"]] * 20, size=310, languages=(*lines,), seed=1)
    pairs = (("de", "en"), ("fr", "en"), ("en", "de"), ("en", "fr"))
    sources = {"name": "both", "source_languages": ("de", "fr"), "pairs": pairs}
    manifest = small_manifest((VocabularyFile("source.model"),), VocabularyFile("source.model"), **sources)
    bundle = write_bundle(tmp_path / "both", manifest, {"w": np.ones(1, np.float32)}, {"source.model": pieces})
    texts = {f"{one}-{other}": [lines[one] * 30, lines[other] * 30] for one, other in pairs}

    made = tagged_shortlist(bundle, texts, per_word=6, common=0)
    for one, other in pairs:
        (vocabulary,) = bundle.direction(one, other).source_vocabularies
        for source, target in zip(lines[one], lines[other], strict=True):
            listed = set(made.select((np.array(vocabulary.encode(source)),)).tolist())
            assert set(pieces.encode(target)) <= listed
            third = ({"en", "de", "fr"} - {one, other}).pop()
            foreign = set(pieces.encode(lines[third][0])) - set(pieces.encode(source)) - set(pieces.encode(target))
            assert foreign - set(made.always.tolist()) - listed


@pytest.mark.parametrize("directions", [(), ("de-en",), ("de-en", "de-en"), ("de-en", "en-fr")])
def test_text_of_every_direction_is_asked_for(tmp_path: Path, directions: tuple[str, ...]) -> None:
    pieces = train_sentencepiece(["a text", "ein Text"] * 20, size=300, languages=("de", "en"), seed=1)
    both = {"name": "both", "pairs": (("de", "en"), ("en", "de"))}
    manifest = small_manifest((VocabularyFile("source.model"),), VocabularyFile("source.model"), **both)
    bundle = write_bundle(tmp_path / "both", manifest, {"w": np.ones(1, np.float32)}, {"source.model": pieces})
    for name in ("de", "en"):
        (tmp_path / name).write_text("Text\n", encoding="utf-8")
    files = [tmp_path / "de"] * 2, [tmp_path / "en"] * 2
    with pytest.raises(ConfigError, match="both translates de-en, en-de: say --direction once for each --target"):
        text_by_direction(bundle, *files, directions)
    assert text_by_direction(bundle, *files, ["en-de", "de-en"]) == {"de-en": [["Text"]] * 2, "en-de": [["Text"]] * 2}
