"""Alignments: pieces found again in texts, words paired from scripted attention, and the reply's part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.alignment.locating import locate
from tandem.extras.alignment.pairing import align_sources, onward
from tandem.models.bundle import Bundle
from tandem.models.search import Array, Hypothesis, SearchOptions
from tandem.models.translation.rendering import Renderer, TargetForm
from tandem.models.vocabulary import EDITS, EOS, Vocabulary, WordVocabulary, train_sentencepiece
from tandem.service.bundles.aligning import Alignment
from tandem.service.bundles.catalog import Route
from tandem.service.bundles.loading import build_engine
from tandem.service.bundles.served import ServedModel
from tandem.service.engine import Engine, Job
from tandem.service.settings import Settings
from tandem.service.text.foreign import Alphabet
from tandem.service.text.spans import Span
from tandem.service.translation import writing
from tandem.service.translation.candidates import Candidate
from tandem.service.translation.requests import DecodeRequest
from tandem.service.translation.writing import MAX_WEIGHTS, SentenceWriter
from tests.service.aligning import ask
from tests.service.support import (
    LINES,
    Served,
    assert_error,
    tiny_bundle,
    tiny_vocabulary,
)
from tests.shipped import SHIPPED

VOCABULARY = tiny_vocabulary()


def pieces_of(text: str) -> list[str]:
    return [VOCABULARY.piece_of(token) for token in VOCABULARY.encode(text)]


def model_of(
    target: Vocabulary = VOCABULARY, sources: Sequence[Vocabulary] = (VOCABULARY,), form: TargetForm = "text"
) -> ServedModel:
    manifest = SimpleNamespace(target_form=form, name="scripted", confidence=None)
    bundle = SimpleNamespace(target_vocabulary=target, source_vocabularies=tuple(sources), manifest=manifest)
    renderer = Renderer(tuple(sources), target, form)
    return ServedModel(cast(Bundle, bundle), SearchOptions(), renderer, {}, Alphabet(sources[0]), aligns=True)


def hypothesis_of(tokens: Sequence[int], *attention: Array) -> Hypothesis:
    return Hypothesis(tuple(tokens), -1.0, -1.0, True, (0.0,) * (len(tokens) + 1), attention)


def words(found: Alignment, source: str, target: str) -> set[tuple[str, str]]:
    return {(source[slice(*read)], target[slice(*written)]) for read, written in found.words}


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
def test_pieces_are_found_where_they_stand(text: str) -> None:
    text = " ".join(text.split())
    spans = locate(pieces_of(text), text)
    covered = {place for span in spans for place in range(*span)}
    assert covered >= {place for place, character in enumerate(text) if not character.isspace()}
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    for piece, span in zip(pieces_of(text), spans, strict=True):
        if not piece.startswith("<0x"):
            assert text[slice(*span)] == piece.replace("\u2581", " ").strip()


def test_the_bytes_of_a_character_stand_where_it_does() -> None:
    text = "wo 界 ist"
    found = [span for piece, span in zip(pieces_of(text), locate(pieces_of(text), text), strict=True) if "<0x" in piece]
    assert found == [Span(3, 4)] * 3


def test_white_space_between_words_may_differ() -> None:
    text = "wo \t ist   der"
    assert {text[slice(*span)] for span in locate(["\u2581wo", "\u2581is", "t", "\u2581der"], text)} == {
        "wo", "is", "t", "der",
    }  # fmt: skip


def test_a_placeholder_is_found_as_what_replaced_it() -> None:
    text = "see http://example.org/a now"
    spans = locate(["\u2581see", "\u2581", "⟨ph0⟩", "\u2581now"], text)
    assert [text[slice(*span)] for span in spans] == ["see", "", "http://example.org/a", "now"]


def test_pieces_that_are_not_in_the_text_get_empty_spans() -> None:
    assert locate(["\u2581one", "\u2581two"], "") == [Span(0, 0), Span(0, 0)]


def test_what_would_take_long_to_compare_is_one_block() -> None:
    pieces, text = ["\u2581one", *["\u2581ab"] * 2_000, "\u2581two"], " ".join(["one", *["bab"] * 2_000, "two"])
    spans = locate(pieces, text)
    assert (spans[0], spans[-1]) == (Span(0, 3), Span(len(text) - 3, len(text)))  # what is alike at both ends
    (block,) = set(spans[10:-10])
    assert block.start == 4 and block.end > len(text) - 12


def test_words_pair_with_what_they_looked_at() -> None:
    source, target = "wo ist der bahnhof", "where is the station"
    read, written = VOCABULARY.encode(source), VOCABULARY.encode(target)
    assert len(written) > 4 < len(read) + 1  # words of several pieces are among them
    attention = np.full((len(written) + 1, len(read) + 1), 0.01, np.float32)
    sides = [[text[: span.end].count(" ") for span in locate(pieces_of(text), text)] for text in (source, target)]
    for row, word in enumerate(sides[1]):
        attention[row, [column for column, other in enumerate(sides[0]) if other == word]] = 0.5
    attention[:, -1] = 0.9  # the end of the sentence counts for nothing
    (found,) = align_sources(model_of(), (source,), target, hypothesis_of(written, attention))
    assert words(found, source, target) == {("wo", "where"), ("ist", "is"), ("der", "the"), ("bahnhof", "station")}
    assert found.weights.shape == (len(written), len(read))
    looked_at = found.weights.argmax(axis=1).tolist()
    assert [sides[0][token] for token in looked_at] == sides[1]


def test_placeholders_side_by_side_align_each_with_its_own() -> None:
    vocabulary = model_of().bundle.target_vocabulary
    names = [vocabulary.piece_of(token) for token in vocabulary.placeholders[:2]]
    ids = [vocabulary.id_of(name) for name in names]
    source, target = "1,5 kg 2,5 kg", "1.5 kg 2.5 kg"
    stands_for = (
        dict(zip(names, ("1,5 kg", "2,5 kg"), strict=True)),
        dict(zip(names, ("1.5 kg", "2.5 kg"), strict=True)),
    )
    attention = np.eye(3, dtype=np.float32)
    (found,) = align_sources(model_of(), (source,), target, hypothesis_of(ids, attention), ([*ids, EOS],), stands_for)
    assert [source[slice(*span)] for span in found.places[0]] == ["1,5 kg", "2,5 kg"]
    assert [target[slice(*span)] for span in found.places[1]] == ["1.5 kg", "2.5 kg"]


def test_two_hops_align_by_way_of_what_stands_between() -> None:
    """The middle text is cut otherwise by the first model's vocabulary than by the second's."""
    wholes, parts = ((Span(0, 5), Span(6, 9)), (Span(0, 3), Span(3, 5), Span(6, 9)))
    first = Alignment(
        ("le", "chat"),
        ("black", "cat"),
        np.array([[0.7, 0.3], [0.0, 1.0]], np.float32),
        ((Span(3, 7), Span(6, 9)), (Span(0, 2), Span(0, 5))),
        ((Span(0, 2), Span(3, 7)), wholes),
    )
    last = Alignment(("bla", "ck", "cat"), ("katze",), np.array([[0.2, 0.2, 0.6]], np.float32),
                     ((Span(6, 9), Span(0, 5)),), (parts, (Span(0, 5),)))  # fmt: skip
    found = onward(first, last)
    assert (found.source, found.target, found.words) == (("le", "chat"), ("katze",), ((Span(3, 7), Span(0, 5)),))
    np.testing.assert_allclose(found.weights, [[0.4 * 0.7, 0.4 * 0.3 + 0.6]], rtol=1e-6)


SPACED = WordVocabulary(["alt", "das", "haus", "house", "is", "ist", "old", "the", "."])


@pytest.mark.parametrize(
    ("source", "target", "rows", "pairs"),
    [
        # All look at "haus" most: it does not take the place of the others.
        ("das haus ist", "the house is", [[0.3, 0.4, 0.1], [0.0, 0.9, 0.1], [0.0, 0.35, 0.3]],
         {("das", "the"), ("haus", "house"), ("ist", "is")}),
        ("haus .", "house .", [[0.4, 0.6], [0.8, 0.1]], {("haus", "house"), (".", ".")}),  # punctuation with its like
        ("das haus", "house", [[0.5, 0.45]], {("das", "house"), ("haus", "house")}),  # with several
        ("das haus", "the house", [[0.0, 0.0], [0.1, 0.9]], {("haus", "house")}),  # and with none
    ],
)  # fmt: skip
def test_words_align_by_what_they_looked_at(
    source: str, target: str, rows: list[list[float]], pairs: set[tuple[str, str]]
) -> None:
    written = SPACED.encode(target)
    attention = np.array([*rows, [0.0] * len(rows[0])], np.float32)
    (found,) = align_sources(model_of(SPACED, [SPACED]), (source,), target, hypothesis_of(written, attention))
    assert words(found, source, target) == pairs


def test_scripts_without_spaces_are_paired_piece_by_piece() -> None:
    vocabulary = train_sentencepiece(["猫が好き", "cats 猫", *LINES] * 4, size=340, languages=("ja",), seed=1)
    source, written = "猫が好き", vocabulary.encode("cats")
    read = vocabulary.encode(source)
    attention = np.zeros((len(written) + 1, len(read) + 1), np.float32)
    attention[:, [vocabulary.piece_of(token).endswith("猫") for token in read].index(True)] = 1.0
    (found,) = align_sources(model_of(vocabulary, [vocabulary]), (source,), "cats", hypothesis_of(written, attention))
    assert words(found, source, "cats") == {("猫", "cats")}


def test_edits_align_with_the_text_that_they_keep() -> None:
    vocabulary = WordVocabulary([*EDITS, "click", "here", "klick", "hier", "bitte"])
    keep, delete, hier = (vocabulary.id_of(word) for word in (*EDITS, "hier"))
    sentence = ("click here", "klick bitte here")  # keep "klick" and "bitte", write "hier"; the rest is kept
    operations = [keep, keep, hier, delete]
    attention = (
        np.array([[0.9, 0.1, 0], [0.5, 0.5, 0], [0.1, 0.8, 0], [0, 0, 1], [0, 0, 1]], np.float32),
        np.array([[0.0, 0.9, 0, 0], [0.0, 1, 0, 0], [0, 0, 0.7, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32),
    )
    codec = model_of(vocabulary, [vocabulary] * 2, "edits")
    target = "klick bitte hier"
    first, second = align_sources(codec, sentence, target, hypothesis_of(operations, *attention))
    assert {("click", "klick"), ("here", "hier")} <= words(first, sentence[0], target)
    assert words(second, sentence[1], target) == {("klick", "klick"), ("bitte", "bitte"), ("here", "hier")}
    assert list(second.target) == ["klick", "bitte", "hier"]


def test_what_is_left_after_a_script_of_edits_aligns_with_itself() -> None:
    vocabulary = WordVocabulary([*EDITS, "a", "b"])
    attention = np.array([[1.0, 0, 0], [0, 0, 1]], np.float32)
    codec = model_of(vocabulary, [vocabulary], "edits")
    (found,) = align_sources(codec, ("a b",), "a b", hypothesis_of([vocabulary.id_of(EDITS[0])], attention))
    assert words(found, "a b", "a b") == {("a", "a"), ("b", "b")}


def test_nothing_aligns_without_attention() -> None:
    bare = replace(hypothesis_of([4]), attention=None)
    with pytest.raises(ValueError, match=r"SearchOptions\.attention"):
        align_sources(model_of(), ("a",), "a", bare)
    (empty,) = align_sources(model_of(), ("",), "", hypothesis_of([], np.zeros((1, 1), np.float32)))
    assert empty.words == () and empty.weights.size == 0


def test_matrices_of_a_reply_are_bounded() -> None:
    request = DecodeRequest(q=["das haus"], alignments=True)
    writer, route = SentenceWriter(request, room=6), Route(model_of(SPACED, [SPACED]), ("de",))
    best = Candidate("the house", hypothesis_of(SPACED.encode("the house"), np.full((3, 3), 1 / 3, np.float32)))
    places = Span(10, 18), Span(20, 29)
    found = [writer.describe(route, best, ("das haus",), places, best.text)[0].alignment for _ in range(2)]
    assert found[0] is not None and found[1] is not None
    assert found[0].tokens.weights == [[0.3333, 0.3333]] * 2
    assert found[1].tokens.weights is None and found[1].words == found[0].words
    assert found[0].words[0].source.start == 10 and found[0].words[0].target.start == 20
    assert SentenceWriter(request).room == MAX_WEIGHTS


@pytest.mark.anyio
@pytest.mark.parametrize("case", [str, str.upper])
async def test_replies_carry_alignments_with_offsets_into_both_texts(
    bundles: dict[str, Bundle], case: Callable[[str], str]
) -> None:
    text = case("Wo ist der Bahnhof?\n\n - Guten  Morgen, wie geht es?")
    response = await ask(bundles["de-en"], "/translate", q=text, source="de", target="en", alignments=True)
    assert response.status_code == 200, response.text
    reply = response.json()
    assert reply["model"] and reply["usage"] and reply["time"]
    sentences = reply["details"][0]["sentences"]
    assert len(sentences) == 2
    for sentence in sentences:
        alignment = sentence["alignment"]
        pairs = [
            (text[slice(*pair["source"].values())], reply["translatedText"][slice(*pair["target"].values())])
            for pair in alignment["words"]
        ]
        assert pairs and all(read == written for read, written in pairs)
        tokens = alignment["tokens"]
        assert tokens["target"] == sentence["tokens"] == tokens["source"]
        assert np.array_equal(tokens["weights"], np.eye(len(tokens["source"])))
        assert "others" not in alignment
    assert {case("Bahnhof"), "?"} <= {
        text[slice(*pair["source"].values())] for pair in sentences[0]["alignment"]["words"]
    }


@pytest.mark.anyio
async def test_the_bound_of_matrices_is_the_replys_whichever_models_answer(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    french = tiny_bundle(tmp_path, "fr-en", source_languages=("fr",))
    texts = ["Bonjour, où est la gare aujourd'hui ?", "Wo ist denn heute der Bahnhof geblieben?"]

    async def matrices() -> list[Array | None]:
        response = await ask(
            bundles["de-en"], "/translate", french, q=texts, source="auto", target="en", alignments=True
        )
        assert response.json()["model"] == "fr-en, de-en"
        tokens = [text["sentences"][0]["alignment"]["tokens"] for text in response.json()["details"]]
        return [np.array(one["weights"]) if "weights" in one else None for one in tokens]

    first, second = await matrices()
    assert first is not None and second is not None
    for room, whole in ((first.size + second.size, [True, True]), (first.size + second.size - 1, [True, False])):
        monkeypatch.setattr(writing, "SentenceWriter", partial(SentenceWriter, room=room))
        assert [matrix is not None for matrix in await matrices()] == whole


@pytest.mark.anyio
async def test_summaries_carry_alignments(bundles: dict[str, Bundle]) -> None:
    response = await ask(bundles["titles"], "/summarize", q="one two three four", alignments=True)
    (sentence,) = response.json()["details"][0]["sentences"]
    assert [pair["source"] for pair in sentence["alignment"]["words"]] == [
        pair["target"] for pair in sentence["alignment"]["words"]
    ]


@pytest.mark.anyio
async def test_only_summaries_of_the_text_itself_carry_alignments(bundles: dict[str, Bundle]) -> None:
    """One that is made of summaries aligns with these, which nobody has seen."""
    titles = bundles["titles"]
    short = replace(titles, manifest=replace(titles.manifest, decoding=SearchOptions(beam_size=2, max_length=10)))
    response = await ask(short, "/summarize", q=["one two", "one two three four. " * 30], alignments=True)
    sentences = [detail["sentences"][0] for detail in response.json()["details"]]
    assert ["alignment" in sentence for sentence in sentences] == [True, False]


@pytest.mark.anyio
async def test_texts_in_several_languages_align_each_by_itself(many_sources: dict[str, Bundle]) -> None:
    text = "Guten Tag. Wo ist das?"
    response = await ask(
        many_sources["together"], "/translate", q=text, source="de", target="en", alignments=True,
        others={"fr": "Bon soir. Un deux trois?", "cs": "Ano ne. Jeden dva?"},
    )  # fmt: skip
    assert response.status_code == 200, response.text
    translation = response.json()["translatedText"]
    assert translation == "Bon soir. Un deux trois?"
    second = response.json()["details"][0]["sentences"][1]
    alignment = second["alignment"]
    assert set(alignment["others"]) == {"others.fr", "others.cs"}
    copied = alignment["others"]["others.fr"]
    assert copied["tokens"]["source"] == copied["tokens"]["target"] == second["tokens"]
    start = second["target"]["start"]  # offsets into the other texts count from the sentence's beginning
    assert copied["words"] and all(
        pair["source"]["start"] == pair["target"]["start"] - start for pair in copied["words"]
    )
    assert all(pair["source"]["start"] >= second["source"]["start"] for pair in alignment["words"])


@pytest.mark.anyio
async def test_corrections_align_with_the_translation_and_with_the_text(many_sources: dict[str, Bundle]) -> None:
    response = await ask(many_sources["repair"], "/postedit", q="the house", translation="das haus", alignments=True)
    assert response.status_code == 200, response.text
    (sentence,) = response.json()["details"][0]["sentences"]
    alignment = sentence["alignment"]
    assert [(pair["source"], pair["target"]) for pair in alignment["words"]] == [
        ({"start": start, "end": end},) * 2 for start, end in ((0, 3), (4, 8))
    ]
    assert set(alignment["others"]) == {"q"}


@pytest.mark.anyio
async def test_what_was_hidden_aligns_as_it_stands_in_both_texts(bundles: dict[str, Bundle]) -> None:
    text = "wo ist https://example.org/a heute"
    response = await ask(
        bundles["de-en"], "/translate", q=text, source="de", target="en", alignments=True, protect=["urls"]
    )
    assert response.json()["translatedText"] == text
    (sentence,) = response.json()["details"][0]["sentences"]
    pairs = [(pair["source"], pair["target"]) for pair in sentence["alignment"]["words"]]
    assert pairs and all(read == written for read, written in pairs)
    places = [(read["start"], read["end"]) for read, _ in pairs]
    assert places == [(0, 2), (3, 6), (7, 28), (29, 34)]


@pytest.mark.anyio
async def test_a_model_without_attention_says_so(service: Served) -> None:
    body = assert_error(await service.translate("Hallo", alignments=True), 422, "invalid_field")
    assert body["detail"][0]["field"] == "alignments"
    summary = await service.client.post("/summarize", json={"q": "one", "alignments": True})
    assert_error(summary, 422, "invalid_field")
    assert "alignment" not in (await service.translate("Hallo", details=True)).text


SENTENCES = {
    "Wo ist der Bahnhof?": {("Bahnhof", "station")},
    "Zwei Hunde spielen im Schnee.": {("Zwei", "Two"), ("Hunde", "dogs"), ("Schnee", "snow")},
}


@pytest.fixture(scope="module")
def trained() -> Engine:
    if not (SHIPPED / "manifest.json").exists():
        pytest.skip("needs the bundle bundles/de-fr-en")
    return build_engine(Settings(bundles=(SHIPPED,)))


@pytest.mark.parametrize(("source", "expected"), SENTENCES.items())
def test_a_trained_model_aligns_words_that_mean_the_same(
    trained: Engine, source: str, expected: set[tuple[str, str]]
) -> None:
    (bundle,) = trained.bundles.values()
    codec, name = ServedModel.of(bundle), next(iter(trained.bundles))

    async def decode() -> Hypothesis:
        options = replace(bundle.manifest.decoding, attention=True)
        (decoded,) = await trained.decode([Job(name, codec.encode((source,)), options)])
        return decoded.hypotheses[0]

    if not trained.alive:
        trained.start()
    best = asyncio.run(decode())
    target = codec.decode(best, (source,))
    (found,) = align_sources(codec, (source,), target, best)
    assert expected <= words(found, source, target)
    assert EOS not in best.tokens and len(found.target) == len(best.tokens)
