"""What a run's weights are owed to besides its own text: the bundle that it began from (``--from``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from tandem.models.architectures.protocol import ModelConfig
from tandem.models.bundle import SCRATCH, Bundle, Corpus, Training
from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import CheckpointError, ConfigError
from tandem.models.steps.loading import bundle_config, load_bundle_model, model_tensors
from tandem.models.steps.torch_graphs import AnyModel
from tandem.training.data.dataset import load_vocabularies
from tandem.training.data.summary import differences, listed_differences

FILE = "began.json"


def chosen_start(recipe: str, asked: Path | None) -> Path | None:
    """The bundle to begin from: the recipe's, which ``--from`` may repeat, or that of ``--from``; None: no bundle.

    Raises:
        ConfigError: they are two.
    """
    if not recipe:
        return asked
    if asked is not None and asked.resolve() != Path(recipe).resolve():
        raise ConfigError(
            f"the recipe has start = {recipe!r}, but --from is {asked}: leave --from out, or change start"
        )
    return Path(recipe)


def check_scratch(data: Path, given: bool, start: Path | None, scratch: bool) -> None:
    """Refuse to begin with random weights where nobody has said so: fine-tuning is meant that forgot where from.

    Args:
        data: the prepared folder.
        given: whether its vocabularies are a bundle's.
        start: what to begin from.
        scratch: whether random weights are asked for.

    Raises:
        ConfigError: they are not, or are asked for beside a bundle to begin from.
    """
    if scratch and start is not None:
        raise ConfigError(f"--scratch is for random weights, but {start} is to begin from: leave one of them out")
    if given and start is None and not scratch:
        raise ConfigError(
            f"{data} has the vocabularies of a bundle (tandem prepare --from), but none is named to begin from: put"
            ' start = "BUNDLE" into the recipe, or add --from BUNDLE; --scratch begins with random weights'
        )


def start_bundle(path: Path, data: Path, config: ModelConfig) -> Bundle:
    """The bundle that a run on prepared data begins from, with a model of a configuration.

    Raises:
        BundleError: it is not sound.
        ConfigError: the data was prepared with other vocabularies than the bundle's, or its model is another one: with
            other heads, say, weights of the same shapes compute something else.
    """
    bundle = Bundle.load(path)
    sources, target = load_vocabularies(data)
    own, given = (*sources, target), (*bundle.source_vocabularies, bundle.target_vocabulary)
    if [v.to_bytes() for v in own] != [v.to_bytes() for v in given]:
        raise ConfigError(f"{data} was prepared with other vocabularies than {path}: use tandem prepare --from {path}")
    given_config = bundle_config(bundle, bundle.weights())
    if found := _differences(given_config, config):
        raise ConfigError(f"{path} holds another model than the recipe describes: {found}; give [model] its values")
    return bundle


def _differences(given: ModelConfig, own: ModelConfig) -> str:
    """What tells two models apart, but for what is dropped in training alone."""
    if type(given) is not type(own):
        return f"its weights are those of {type(given).__name__}, not of {type(own).__name__}"
    found = differences(to_mapping(given), to_mapping(own))
    return listed_differences([one for one in found if not one.key.endswith("dropout")])


def check_start(run: Path, bundle: Bundle) -> None:
    """Refuse to go on with a run as if it had begun from a bundle that it did not begin from.

    Raises:
        CheckpointError: it began from other weights; the message says from which.
    """
    began, asked = read_ancestry(run), replace(bundle.manifest.training, recipe={})
    if began != asked:
        raise CheckpointError(
            f"{run} began from {_described(began)}, but {bundle.path} has {_described(asked)}: leave --from out to go"
            " on, or begin anew in another folder (--run)"
        )


def _described(training: Training) -> str:
    if training == SCRATCH:
        return "random weights"
    names = ", ".join(corpus.name for corpus in training.corpora)
    return f"weights after {training.updates:,} updates and {training.target_tokens:,} target tokens of {names}"


def mix_in_start(model: AnyModel, bundle: Bundle, share: float) -> None:
    """``share x start + (1 - share) x own`` weights, in place, of a model that is then prepared for inference.

    ``bundle``: of the same model (:func:`start_bundle`).
    """
    model.prepare_for_inference()  # a bundle's weights have their gains folded in
    own, start = model_tensors(model), model_tensors(load_bundle_model(bundle))
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.lerp_(start[name], share)


def together(parts: Sequence[Training]) -> Training:
    """Trainings that all have shaped the same weights, as one; the recipe is the first's.

    How long they took in all is unknown (0) where one part's time is.
    """
    known = all(one.seconds > 0 for one in parts if one.updates)
    return Training(
        corpora=merged_corpora(corpus for one in parts for corpus in one.corpora),
        recipe=parts[0].recipe,
        updates=sum(one.updates for one in parts),
        target_tokens=sum(one.target_tokens for one in parts),
        seconds=sum(one.seconds for one in parts) if known else 0.0,
    )


def write_ancestry(run: Path, ancestry: Training) -> None:
    """Remember in a run's folder what its first weights had learnt; nothing, for a run from scratch."""
    path = run / FILE
    if ancestry == SCRATCH:
        path.unlink(missing_ok=True)
    else:
        run.mkdir(parents=True, exist_ok=True)
        mapping = to_mapping(ancestry)
        del mapping["recipe"]  # the run has its own
        path.write_text(json.dumps(mapping, indent=1) + "\n", encoding="utf-8")


def read_ancestry(run: Path) -> Training:
    """What :func:`write_ancestry` wrote, without a recipe.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = run / FILE
    try:
        return load_dataclass(Training, {**json.loads(path.read_text(encoding="utf-8")), "recipe": {}}, str(path))
    except FileNotFoundError:
        return SCRATCH
    except (OSError, ValueError, TypeError, ConfigError) as error:
        raise CheckpointError(f"{path}: not readable ({error}): it names what the run's weights came from") from error


def merged_corpora(corpora: Iterable[Corpus]) -> tuple[Corpus, ...]:
    """Every corpus once, in order, with as many segments as it had where most of it was seen."""
    largest: dict[Corpus, int] = {}
    for corpus in corpora:
        key = replace(corpus, segments=0)
        largest[key] = max(largest.get(key, 0), corpus.segments)
    return tuple(replace(key, segments=segments) for key, segments in largest.items())
