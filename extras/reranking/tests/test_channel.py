"""Reranking: what a judge is asked, how its answers rank hypotheses, and that they are the source's probabilities."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tandem.extras.reranking.channel import WEIGHT, ChannelModel
from tandem.models.architectures.protocol import Padded
from tandem.models.bundle import Bundle
from tandem.models.search import Array, Hypothesis, OfflineDecoder, SearchOptions
from tandem.models.search.offline import Failed, NBest
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import encode_lines
from tandem.models.vocabulary import BOS, EOS, TaggedVocabulary
from tests.deploy.small import VOCABULARY, Make, make
from tests.determinism import one_thread
from tests.service.support import tiny_bundle, tiny_vocabulary

__all__ = ["make", "one_thread"]

LINES = ["a b c", "h g f e", "", "d d a", "b", "c a e g h"]


def channel_of(**limits: int) -> ChannelModel:
    bounds = limits.get("read", 12), limits.get("written", 12)
    return ChannelModel(VOCABULARY, VOCABULARY, (), bounds)


def test_a_judge_reads_the_hypotheses_and_may_write_nothing_but_the_source() -> None:
    first, second = channel_of().questions("a b", ["c", "d e f"])
    assert first.ids == (*VOCABULARY.encode("c"), EOS) and second.ids == (*VOCABULARY.encode("d e f"), EOS)
    assert first.options == second.options
    assert first.options == SearchOptions(beam_size=1, prefix=tuple(VOCABULARY.encode("a b")), max_length=2)


def test_of_a_text_without_tokens_the_end_alone_is_asked() -> None:
    (question,) = channel_of().questions("", ["a"])
    assert (question.options.prefix, question.options.max_length) == ((), 1)


@pytest.mark.parametrize(("source", "hypotheses"), [("a b c", ["a"]), ("a", ["a", "a b c"])])
def test_nobody_is_asked_about_what_is_too_long(source: str, hypotheses: list[str]) -> None:
    assert channel_of(read=3, written=3).questions(source, hypotheses)
    assert channel_of(read=2, written=2).questions(source, hypotheses) == []


def test_tags_begin_what_a_judge_of_several_directions_reads_and_writes(tmp_path: Path) -> None:
    both = tiny_bundle(tmp_path, "both", pairs=(("de", "en"), ("en", "de")), tags="both")
    channel = ChannelModel.of(both.direction("en", "de"))
    vocabulary = tiny_vocabulary()
    (question,) = channel.questions("wo ist", ["guten morgen"])
    assert isinstance(channel.read, TaggedVocabulary)
    assert question.ids == (vocabulary.language_tag("en"), *vocabulary.encode("guten morgen"), EOS)
    assert question.options.prefix == (vocabulary.language_tag("de"), *vocabulary.encode("wo ist"))


def test_placeholders_stand_for_their_tokens_where_they_are_named() -> None:
    vocabulary = tiny_vocabulary()
    channel = ChannelModel(vocabulary, vocabulary, (), (40, 40))
    (named,), (spelled,) = channel.questions("a ⟨ph1⟩", ["⟨ph1⟩"], ["⟨ph1⟩"]), channel.questions("a ⟨ph1⟩", ["⟨ph1⟩"])
    token = vocabulary.id_of("⟨ph1⟩")
    assert token in named.ids and token in named.options.prefix
    assert token not in spelled.ids and token not in spelled.options.prefix


def test_hypotheses_are_ranked_by_both() -> None:
    channel = replace(channel_of(), begin=(7,))
    hypotheses = [Hypothesis((number,), -1.0, normalised, True, ()) for number, normalised in ((4, -1.0), (5, -1.5))]
    # The tag's score, here -50 and -60, says nothing.
    even = [Hypothesis((), 0.0, 0.0, True, (tag, -1.0, -1.0)) for tag in (-50.0, -60.0)]
    assert channel.ranked(hypotheses, even) == tuple(hypotheses)
    gain = 0.5 * (1 - WEIGHT) / WEIGHT  # that the second needs
    for better, best in ((gain - 0.1, 4), (gain + 0.1, 5)):
        answers = [even[0], Hypothesis((), 0.0, 0.0, True, (-60.0, -1.0 + better, -1.0 + better))]
        assert channel.ranked(hypotheses, answers)[0].tokens == (best,)


def log_probability(model: AnyModel, source: Array, target: list[int]) -> float:
    """Of a target and its end, under teacher forcing."""
    ended = [*target, EOS]
    with torch.inference_mode():
        encoded = model.encode((Padded(torch.tensor(source)[None], torch.tensor([len(source)])),))
        logits_TV = model.score(torch.tensor([[BOS, *target]]), encoded)[0]
    return float(torch.log_softmax(logits_TV, -1)[torch.arange(len(ended)), torch.tensor(ended)].sum())


def test_answers_are_the_source_s_probabilities(make: Make) -> None:
    forward, back = Bundle.load(make("one", "de")), Bundle.load(make("back", "en", seed=2, target_language="de"))
    model = load_bundle_model(back)
    options = replace(forward.manifest.decoding, beam_size=4, n_best=4)
    decoder = OfflineDecoder(TorchGraphs(load_bundle_model(forward)), options)
    renderer, channel = Renderer.of(forward), ChannelModel.of(back)
    lines = [line for line in LINES if line]
    found = list(decoder.decode((ids,) for ids in encode_lines(VOCABULARY, lines, 12)))
    judge = OfflineDecoder(TorchGraphs(model), SearchOptions(beam_size=1))

    def asked(line: str, outcome: NBest) -> tuple[Hypothesis, ...]:
        assert not isinstance(outcome, Failed)
        questions = channel.questions(line, [renderer.text(one, (), (line,)) for one in outcome])
        answers = [*judge.decode_each(((np.array(one.ids),), one.options) for one in questions)]
        return channel.ranked(outcome, [one[0] for one in answers if not isinstance(one, Failed)])

    ranked = [asked(line, outcome) for line, outcome in zip(lines, found, strict=True)]
    exact, moved = copy.deepcopy(model).double(), 0
    for line, before, after in zip(lines, found, ranked, strict=True):
        assert not isinstance(before, Failed)

        def score(one: Hypothesis, line: str = line) -> float:
            (ids,) = encode_lines(VOCABULARY, [renderer.text(one, (), (line,))], 12)
            source = VOCABULARY.encode(line)
            channel = log_probability(exact, ids, source) / (len(source) + 1)
            return (1 - WEIGHT) * one.normalised + WEIGHT * channel

        assert [one.tokens for one in after] == [one.tokens for one in sorted(before, key=score, reverse=True)]
        moved += after[0].tokens != before[0].tokens
    assert 0 < moved < len(lines), "the judge changes something, not everything"
    assert channel.questions(lines[0], ["a"])[0].options.prefix[0] not in (BOS, EOS)
