"""Peers: our Transformer in CTranslate2's form is the same model, and every peer decodes what it is given."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tandem.extras.laboratory.decoding.decode import entrants, measure
from tandem.extras.laboratory.decoding.systems import Task
from tandem.extras.laboratory.options import DecodeOptions
from tandem.models.architectures.protocol import Padded
from tandem.models.architectures.registry import build_model, load_config
from tandem.models.architectures.transformer import Transformer
from tandem.models.bundle import Bundle, VocabularyFile, write_bundle
from tandem.models.errors import ConfigError
from tandem.models.search import SearchOptions, translate_batch
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.steps.loading import model_tensors
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.vocabulary import WordVocabulary
from tests.determinism import one_thread, seeded
from tests.models.architectures.examples import BOS, EOS, FIRST, VARIANTS
from tests.models.bundle.manifests import small_manifest
from tests.shipped import SHIPPED

__all__ = ["one_thread", "seeded"]

LENGTHS = (1, 3, 11, 6, 2, 8)


def random_model(variant: str, seed: int = 3, end: float = 0.0) -> Transformer:
    """A variant with weights of a size that matters, biases and norms too; ``end`` raises the logit of EOS."""
    torch.manual_seed(seed)
    model = build_model("transformer", load_config("transformer", VARIANTS["transformer"][variant], variant))
    assert isinstance(model, Transformer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter * 1.5 if parameter.dim() > 1 else parameter + torch.randn_like(parameter) * 0.3)
        if model.output_bias is not None:
            model.output_bias[EOS] += end
    model.prepare_for_inference()
    return model


def sources_of(model: Transformer, lengths: tuple[int, ...] = LENGTHS) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    types = model.config.source_vocabularies[0]
    return [np.array([*rng.integers(FIRST, types, size=length), EOS]) for length in lengths]


class Converted:
    """A model in CTranslate2, asked in ids."""

    def __init__(self, model: Transformer, folder: Path, shortlist: Shortlist | None = None) -> None:
        ctranslate2 = pytest.importorskip("ctranslate2")
        from tandem.extras.laboratory.decoding.conversion import random_tokens, write_model, write_vocabulary_map

        self.source = random_tokens(model.config.source_vocabularies[0])
        self.target = random_tokens(model.config.target_vocabulary)
        write_model(folder, model, self.source, self.target, "float32")
        self._listed = shortlist is not None
        if shortlist is not None:
            write_vocabulary_map(folder, shortlist, self.source, self.target)
        self._translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)

    def log_probabilities(self, sources: list[np.ndarray], targets: list[np.ndarray]) -> list[list[float]]:
        named = [[self.target[token] for token in target] for target in targets]
        return [found.log_probs for found in self._translator.score_batch(self._named(sources), named)]

    def search(self, sources: list[np.ndarray], beam_size: int, longest: int) -> list[list[tuple[int, ...]]]:
        found: list[Any] = self._translator.translate_batch(
            self._named(sources),
            beam_size=beam_size,
            num_hypotheses=beam_size,
            min_decoding_length=0,
            max_decoding_length=longest,
            use_vmap=self._listed,
        )
        return [[tuple(map(self.target.index, names)) for names in one.hypotheses] for one in found]

    def _named(self, sources: list[np.ndarray]) -> list[list[str]]:
        return [[self.source[token] for token in source] for source in sources]


@pytest.mark.parametrize(
    "variant",
    [name for name in VARIANTS["transformer"] if not name.startswith(("context-gate", "reads-no-end", "ssru"))],
)
def test_a_converted_transformer_is_the_same_model(variant: str, tmp_path: Path) -> None:
    """Every token's log-probability under teacher forcing, and the greedy output."""
    model = random_model(variant)
    converted = Converted(model, tmp_path)
    sources = sources_of(model)
    rng = np.random.default_rng(1)
    targets = [rng.integers(FIRST, model.config.target_vocabulary, size=length) for length in LENGTHS]
    for source, target, found in zip(sources, targets, converted.log_probabilities(sources, targets), strict=True):
        with torch.inference_mode():
            memory = model.encode((Padded(torch.from_numpy(source)[None], torch.tensor([len(source)])),))
            logits = model.score(torch.tensor([[BOS, *target]]), memory)[0]
        wanted = torch.log_softmax(logits.double(), -1)[torch.arange(len(target) + 1), torch.tensor([*target, EOS])]
        np.testing.assert_allclose(found, wanted.numpy(), atol=3e-4)
    options = SearchOptions(beam_size=1, max_length=20)
    ours = translate_batch(TorchGraphs(model), [(source,) for source in sources], options)
    assert [[one.tokens for one in each] for each in ours] == converted.search(sources, 1, 20)


@pytest.mark.parametrize("seed", [0, 3])
def test_beam_search_finds_the_same(seed: int, tmp_path: Path) -> None:
    """All hypotheses in order, where they end before the bound (there CTranslate2 scores no EOS, and Tandem does)."""
    model = random_model("all-biases", seed, end=2.0)
    sources = sources_of(model, LENGTHS * 3)
    options = SearchOptions(beam_size=4, n_best=4, max_length=30)
    ours = translate_batch(TorchGraphs(model), [(source,) for source in sources], options)
    theirs = Converted(model, tmp_path).search(sources, 4, 30)
    ending = [i for i, each in enumerate(ours) if max(len(one.tokens) for one in each) < 30]
    assert len(ending) > len(sources) // 2
    assert [[one.tokens for one in ours[i]] for i in ending] == [theirs[i] for i in ending]
    assert any(one.tokens for i in ending for one in ours[i])


def test_a_converted_shortlist_lists_the_same(tmp_path: Path) -> None:
    model = random_model("all-biases", 3)
    assert model.output_bias is not None
    with torch.no_grad():
        model.output_bias[:FIRST] -= 20  # what every list holds
    types = model.config.target_vocabulary
    sources = range(model.config.source_vocabularies[0])
    rows = [[FIRST + token % 3] for token in sources]
    shortlist = Shortlist((Table.of(rows, types),), np.arange(FIRST), types)
    (tmp_path / "all").mkdir()
    converted, free = Converted(model, tmp_path, shortlist), Converted(model, tmp_path / "all")
    beyond = 0
    for source in sources_of(model):
        listed = {*shortlist.select([source]).tolist()}
        (found,), (chosen,) = (one.search([source], 1, 20) for one in (converted, free))
        assert {*found[0]} <= listed
        beyond += not {*chosen[0]} <= listed
    assert beyond


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A bundle of a small Transformer with weights of its own, and no graphs."""
    vocabulary = WordVocabulary(tuple("abcdefghijkl"))
    config = VARIANTS["transformer"]["pre-sinusoidal-none"] | {
        "source_vocabularies": [vocabulary.size],
        "target_vocabulary": vocabulary.size,
    }
    model = build_model("transformer", load_config("transformer", config, "trained"))
    model.prepare_for_inference()
    file = VocabularyFile("all.words", "words")
    fields: dict[str, Any] = {"name": "trained", "architecture": "transformer", "config": config}
    manifest = small_manifest((file,), file, **fields, decoding=SearchOptions(beam_size=2, max_length=6))
    weights = {key: tensor.detach().numpy() for key, tensor in model_tensors(model).items()}
    return write_bundle(tmp_path / "trained", manifest, weights, {"all.words": vocabulary}).path


def test_ctranslate2_runs_a_bundle_on_text(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    bundle = Bundle.load(trained)
    (tmp_path / "text").write_text("a b c\n")
    text: dict[str, Any] = {"source": tmp_path / "text", "ct2_from": trained}
    options = DecodeOptions(bundle=trained, beam_size=2, peers="ctranslate2", peer_vocabulary=40, **text)
    with ExitStack() as stack:
        taking_part, left_out = entrants(bundle, options, 2, stack)
        assert not left_out
        assert [(one.label.system, one.label.model, one.kinds) for one in taking_part[2:]] == [
            ("ctranslate2", "trained", ("text",))
        ]
        system = taking_part[2].open()
        texts = ["a b c d", "l k"]
        ids = system.tokenise(texts)
        assert [one.tolist()[-1] for one in ids] == [EOS, EOS]
        decoded = system.decode([Task(tuple(ids), None), Task((ids[1],), 5)])
        assert [len(one) for one in decoded] == [2, 1]
        assert all(len(one.tokens) <= 6 for one in decoded[0])
        assert len(decoded[1][0].tokens) == 5
        alone = system.decode_alone(Task((ids[1],), 5))
        assert alone == decoded[1]
        words = system.detokenise(texts, decoded[0])
        assert all(set(line.split()) <= set("abcdefghijkl") | {"<unk>"} for line in words)
        system.close()


def test_a_bundle_of_another_architecture_is_not_converted(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from tandem.extras.laboratory.decoding.conversion import write_bundle_model

    with pytest.raises(ConfigError, match=r"bundles of the architecture 'transformer', but .* is of 'convs2s'"):
        write_bundle_model(tmp_path, Bundle.load(SHIPPED), "int8")


@pytest.mark.usefixtures("no_memory")
def test_the_peer_decodes_the_same_number_of_tokens() -> None:
    """In one run with Tandem: equal sentences, equal target tokens, and a ratio of the speeds."""
    pytest.importorskip("ctranslate2")
    sizes: dict[str, Any] = {"batch_sizes": "1,3", "sentences": 4, "single": 1, "passes": 1}
    sizes |= {"beam_size": 2, "workers": 1, "peer_vocabulary": 50, "shortlist": False}
    rows = measure(DecodeOptions(bundle=SHIPPED, **sizes))["rows"]
    peer = "ctranslate2"
    assert [(row["system"], row["batch"]) for row in rows] == [("tandem", 1), (peer, 1), ("tandem", 3), (peer, 3)]
    for ours, theirs in zip(rows[::2], rows[1::2], strict=True):
        for equal in ("sentences", "target_tokens", "threads", "workload", "beam"):
            assert ours[equal] == theirs[equal]
        (ratio,) = ours["against"].values()
        assert ratio == pytest.approx(ours["sentences_per_s"] / theirs["sentences_per_s"])
        assert theirs["against"] is None
