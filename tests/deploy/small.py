"""Bundles small enough to be made in a moment, untrained and without graphs, and text for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tandem.models.architectures.registry import build_model, load_config
from tandem.models.bundle import Limits, Training, VocabularyFile, write_bundle
from tandem.models.search import SearchOptions
from tandem.models.steps.loading import model_tensors
from tandem.models.vocabulary import WordVocabulary
from tests.models.bundle.manifests import small_manifest

WORDS = tuple("abcdefgh")
VOCABULARY = WordVocabulary(WORDS)
SMALL: dict[str, dict[str, Any]] = {
    "transformer": {"width": 16, "hidden": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
    "multisource": {"embedding": 8, "encoder_width": 8, "attention_width": 8, "decoder_width": 8},
}
Make = Callable[..., Path]
Write = Callable[[str], str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a small untrained bundle with no graphs, which the torch runtime needs none of."""

    def bundle(name: str, *languages: str, folder: str = "bundles", seed: int = 1, **changes: Any) -> Path:
        architecture = "transformer" if len(languages) == 1 else "multisource"
        sizes = {"source_vocabularies": [VOCABULARY.size] * len(languages), "target_vocabulary": VOCABULARY.size}
        config = changes.get("config", SMALL[architecture] | sizes)
        torch.manual_seed(seed)
        model = build_model(architecture, load_config(architecture, config, name))
        model.prepare_for_inference()
        weights = {key: tensor.detach().numpy() for key, tensor in model_tensors(model).items()}
        file = VocabularyFile("all.words", "words")
        fields: dict[str, Any] = {
            "name": name,
            "source_languages": languages,
            "architecture": architecture,
            "config": config,
            "decoding": SearchOptions(beam_size=2, max_length=6),
            "limits": Limits(12, 12),
            "training": Training((), {}, 10, 3000, 1.5),
        }
        manifest = small_manifest((file,) * len(languages), file, **(fields | changes))
        return write_bundle(tmp_path / folder / name, manifest, weights, {"all.words": VOCABULARY}).path

    return bundle


@pytest.fixture
def text(tmp_path: Path) -> Write:
    """Writes twelve lines of a language (the same for the same language) and names the file."""

    def write(language: str) -> str:
        rng = np.random.default_rng(list(language.encode()))
        lines = [" ".join(rng.choice(WORDS, size=5)) for _ in range(12)]
        (tmp_path / f"test.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / f"test.{language}")

    return write
