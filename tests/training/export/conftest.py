"""One small bundle of every architecture, exported once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pytest
import torch

from tandem.deploy.cli import commands
from tandem.models.architectures.registry import ARCHITECTURES, build_model
from tandem.models.bundle import Bundle
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import AnyModel, GraphModule, graph_modules
from tandem.training.checkpoint import TrainingProgress
from tandem.training.data.dataset import load_vocabularies, text_path
from tandem.training.export.bundle import TORCHSCRIPT, Shipping, add_precision, export_bundle
from tandem.training.recipe import Recipe
from tests.command import succeeds
from tests.models.architectures.examples import LEARNERS
from tests.training.export.support import OnnxGraphs, ScriptGraphs
from tests.training.toy import toy_recipe


@dataclass(frozen=True)
class Exported:
    """A bundle with float32 and 8-bit graphs and TorchScript, and the model it was made of."""

    recipe: Recipe
    trained: AnyModel
    bundle: Bundle
    model: AnyModel = field(init=False)
    modules: dict[str, GraphModule] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", load_bundle_model(self.bundle))
        object.__setattr__(self, "modules", graph_modules(self.model))

    @cached_property
    def _opened(self) -> dict[str, OnnxGraphs]:
        return {}

    def onnx(self, precision: str) -> OnnxGraphs:
        """The ONNX graphs of a precision, opened once: they keep nothing of a run."""
        if precision not in self._opened:
            folder = self.bundle.path / "onnx" / precision
            self._opened[precision] = OnnxGraphs(folder, self.bundle.graph_specs(precision))
        return self._opened[precision]

    @cached_property
    def script(self) -> ScriptGraphs:
        """The TorchScript graphs."""
        specs = self.bundle.graph_specs("float32")
        files = {f"{name}.pt": self.bundle.file(f"torchscript/{name}.pt").read_bytes() for name in specs}
        return ScriptGraphs(files, specs)


_MADE: dict[str, Exported] = {}  # of this process: extras' tests have this fixture too, each folder one of its own


@pytest.fixture(scope="session")
def exports(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    """The exported bundle of an architecture."""

    def export(architecture: str) -> Exported:
        if architecture not in _MADE:
            _MADE[architecture] = make(architecture)
        return _MADE[architecture]

    def make(architecture: str) -> Exported:
        if not ARCHITECTURES[architecture][1].trainable:
            return together(architecture)
        recipe = replace(toy_recipe(), name=architecture, architecture=architecture, model=LEARNERS[architecture])
        sources, target = load_vocabularies(prepared)
        torch.manual_seed(3)
        trained = build_model(architecture, recipe.model_config(tuple(v.size for v in sources), target.size))
        with torch.no_grad():  # off the initial values: zeros and ones would hide a wrong term
            for parameter in trained.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        out = tmp_path_factory.mktemp("bundles") / architecture
        shipping = Shipping(TrainingProgress(update=7, target_tokens=70, seconds=3.54), precisions=("float32", "int8"))
        export_bundle(trained, recipe, prepared, out, shipping)
        add_precision(out, TORCHSCRIPT)
        return Exported(recipe, trained, Bundle.load(out))

    def together(architecture: str) -> Exported:
        """What is not trained as a whole is made of the bundles of its members."""
        members = [export(member["architecture"]) for member in LEARNERS[architecture]["members"]]
        out = tmp_path_factory.mktemp("bundles") / architecture
        if "ensemble" not in commands():
            pytest.skip("no extra brings `tandem ensemble`")
        texts = text_path(prepared, "toy", "test", "source0")
        succeeds("ensemble", *(member.bundle.path for member in members), "--out", out, "--text", texts)
        for precision in ("float32", TORCHSCRIPT):
            add_precision(out, precision)
        bundle = Bundle.load(out)
        return Exported(members[0].recipe, load_bundle_model(bundle), bundle)

    return export


# Exporting takes half a minute: one that decodes over pools is for every day. (test_operators.py has recurrent layers.)
EVERYDAY = ("dpn",)


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=[] if name in EVERYDAY else pytest.mark.slow) for name in ARCHITECTURES],
)
def exported(request: pytest.FixtureRequest, exports: Callable[[str], Exported]) -> Exported:
    """Each architecture's exported bundle."""
    return exports(request.param)


@pytest.fixture(scope="session")
def one(exports: Callable[[str], Exported]) -> Exported:
    """One exported bundle, for what does not depend on the architecture."""
    return exports("dpn")
