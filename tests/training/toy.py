"""A toy recipe, a reporter that remembers, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.bundle import Bundle
from tandem.models.search import Graphs, GraphSpec, OfflineDecoder, SearchOptions
from tandem.models.search.shortlist import Shortlist
from tandem.models.steps.torch_graphs import AnyModel, graph_modules
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import Column, translate_lines
from tandem.training.checkpoint import TrainingProgress
from tandem.training.data.config import CorpusConfig, DataConfig, FilterConfig, VocabularyConfig
from tandem.training.data.plans import BatchPlan
from tandem.training.loop.reporting import ShownSentence
from tandem.training.loop.trainer import Trainer, Validator
from tandem.training.loop.validation import TextValidator
from tandem.training.optimisation.optim import OptimiserConfig
from tandem.training.recipe import Recipe, TrainingConfig

LETTERS = tuple("abcdefgh")
DATA = DataConfig(
    (CorpusConfig("toy", ("toy/{split}.de",), "toy/{split}.en", "CC0", "nobody"),),
    filters=FilterConfig(deduplicate=False),
    vocabulary=VocabularyConfig(kind="word", size=40, joint=False),
    max_source_tokens=12,
    max_target_tokens=12,
    placeholder_share=0.0,
)
MODEL = {"width": 16, "hidden": 24, "heads": 2, "cnn_layers": 1, "san_layers": 1, "max_positions": 16}
ADAM = OptimiserConfig(learning_rate=1e-2, warmup=4)
LEARNING: dict[str, Any] = {
    "model": {"width": 32, "hidden": 64},
    "optimiser": OptimiserConfig(learning_rate=1e-2, schedule="plateau", warmup=20, cooldown=40),
}
"""Enough to learn the corpus in a hundred updates."""
NAG = OptimiserConfig("nag", 0.05, "plateau", warmup=0, momentum=0.9)


def random_bitext(
    lexicon: Mapping[str, str], lines: int, seed: int = 1, *, names: int = 0
) -> tuple[list[str], list[str]]:
    """Random words and their translations in another order, with an article that translates nothing; some lines with
    one of so many names, which is the same on both sides.
    """
    rng = np.random.default_rng(seed)
    source, target = [], []
    for number in range(lines):
        words = rng.choice(list(lexicon), size=rng.integers(1, 8)).tolist()
        name = [f"Name{number % names}"] * int(rng.integers(0, 2)) if names else []
        source.append(" ".join([*words, *name]))
        target.append(" ".join(rng.permutation([*(lexicon[word] for word in words), *name, "the"]).tolist()))
    return source, target


def padded_tokens(plan: BatchPlan) -> int:
    """Source and target positions of a batch, padding included."""
    return len(plan.items) * (plan.source_length + plan.target_length)


def toy_recipe(
    *,
    data: DataConfig = DATA,
    model: Mapping[str, Any] | None = None,
    optimiser: OptimiserConfig = ADAM,
    **training: Any,
) -> Recipe:
    """A tiny double path network on the toy corpus: five batches an epoch, dropout on, few updates."""
    defaults: dict[str, Any] = {"updates": 12, "batch_tokens": 250, "precision": "float32", "validation_sentences": 0}
    defaults |= {"validate_every": 1000, "save_every": 1000, "log_every": 1}
    return Recipe(
        "toy",
        "translate",
        ("de",),
        "en",
        data,
        "dpn",
        model=MODEL | {"dropout": 0.1} | dict(model or {}),
        optimiser=optimiser,
        decoding=SearchOptions(max_length=12),
        training=TrainingConfig(**(defaults | training)),
    )


@dataclass
class Recorder:
    """Remembers every report; ``when`` maps an update to what is to happen after it was reported."""

    when: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    updates: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    validations: list[tuple[TrainingProgress, dict[str, float]]] = field(default_factory=list)
    first: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    examples: list[tuple[ShownSentence, ...]] = field(default_factory=list)

    def moved(self, progress: TrainingProgress) -> None:
        self.moves.append(progress.update)

    def begun(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        self.first.append((progress.update, dict(values)))

    def update(self, progress: TrainingProgress, values: Mapping[str, float]) -> None:
        self.updates.append((progress.update, dict(values)))
        self.when.get(progress.update, lambda: None)()

    def validation(
        self, progress: TrainingProgress, values: Mapping[str, float], examples: Sequence[ShownSentence] = ()
    ) -> None:
        self.validations.append((progress, dict(values)))
        self.examples.append(tuple(examples))


def toy_trainer(
    recipe: Recipe, data: Path, folder: Path, *, reporter: Recorder | None = None, validator: Validator | None = None
) -> Trainer:
    """A trainer on the CPU."""
    return Trainer(recipe, data, folder, reporter=reporter or Recorder(), validator=validator)


def trained_bundle(recipe: Recipe, folder: Path, least: float) -> Bundle:
    """Trained on ``folder/data``, validated by its text to be worth ``least``, and exported without ONNX graphs."""
    validator = TextValidator(recipe, folder / "data")
    trainer = toy_trainer(recipe, folder / "data", folder / "run", validator=validator)
    progress = trainer.train()
    assert progress.best is not None and progress.best > least
    return bundle_without_graphs(trainer.model, recipe, folder / "data", folder / "bundle")


def described_graphs(model: AnyModel) -> tuple[dict[str, Any], dict[str, GraphSpec]]:
    """In the place of ``export_graphs``, which takes long: no graphs, and what they would be like."""
    return {}, {name: module.spec for name, module in graph_modules(model).items()}


@contextmanager
def without_graphs() -> Iterator[None]:
    """Whatever is exported meanwhile has no ONNX graphs."""
    from tandem.training.export import bundle as export  # here: who exports nothing needs no ONNX

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "export_graphs", described_graphs)
        patch.setattr(export, "at_precision", lambda *_: {})
        yield


def bundle_without_graphs(model: AnyModel, recipe: Recipe, data: Path, out: Path) -> Bundle:
    """A model's bundle without the ONNX graphs."""
    from tandem.training.export.bundle import Shipping, export_bundle

    with without_graphs():
        return export_bundle(model, recipe, data, out, Shipping(precisions=()))


def written(bundle: Bundle, graphs: Graphs, lines: Sequence[Column], shortlist: Shortlist | None = None) -> list[str]:
    """What a bundle's model alone makes of lines, each as one segment."""
    decoder = OfflineDecoder(graphs, bundle.manifest.decoding, shortlist)
    vocabularies, renderer = (bundle.sources, bundle.target_vocabulary), Renderer.of(bundle)
    longest = bundle.manifest.limits.max_source_tokens + 1
    return translate_lines(decoder, vocabularies, lines, max_source_tokens=longest, renderer=renderer)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A text file, a line each; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
