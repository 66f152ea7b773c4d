"""From a trained model to a bundle, and further graphs from a bundle alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import torch

from tandem.models.bundle import (
    GRAPHS,
    SCRATCH,
    SHORTLIST,
    Bundle,
    Limits,
    Manifest,
    Training,
    add_built,
    check_free,
    extend_bundle,
    named_vocabularies,
    write_bundle,
)
from tandem.models.config import to_mapping
from tandem.models.errors import BundleError, ConfigError, CorpusError
from tandem.models.search import SearchOptions
from tandem.models.search.graphs import specs_to_json
from tandem.models.search.shortlist import WITH_SHORTLIST, Shortlist
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.steps.torch_graphs import AnyModel, graph_modules
from tandem.models.translation.translator import Column, encode_columns
from tandem.models.vocabulary import Vocabulary
from tandem.training.checkpoint import TrainingProgress
from tandem.training.data.ancestry import together
from tandem.training.data.dataset import DICTIONARY, PreparedData, load_dictionary, load_vocabularies
from tandem.training.data.summary import PreparedSummary
from tandem.training.export.calibration import Array, calibrate
from tandem.training.export.external import pack
from tandem.training.export.onnx_graphs import export_graphs
from tandem.training.export.quantise import Quantisation, quantise
from tandem.training.export.shortlist import LOGITS_GRAPH, SHORTLIST_GRAPH, add_shortlist_graph, shortlist_spec
from tandem.training.export.torchscript import trace_graphs
from tandem.training.recipe import Recipe, recipe_mapping

PRECISIONS = ("float32", "int8")
BUILT_PRECISIONS = (*PRECISIONS, "float16")  # the last is for a GPU
TORCHSCRIPT = "torchscript"
CALIBRATION_SENTENCES = 64
CALIBRATION_TEXTS = 1_000

Report = Callable[[str], None]
Reader = tuple[Sequence[Vocabulary | None], Sequence[Column]]  # per source a vocabulary and lines, or matrices


@dataclass(frozen=True, slots=True)
class Shipping:
    """What a bundle is told beyond model, recipe and data.

    Attributes:
        progress: how long the model was trained.
        ancestry: what it had learnt before, as another bundle.
        precisions: of the ONNX graphs that ship.
        overwrite: replace a bundle at the same path.
    """

    progress: TrainingProgress = TrainingProgress()
    ancestry: Training = SCRATCH
    precisions: tuple[str, ...] = ("int8",)
    overwrite: bool = False


def export_bundle(
    model: AnyModel,
    recipe: Recipe,
    prepared: Path,
    out: Path,
    shipping: Shipping = Shipping(),
    report: Report = lambda line: None,
) -> Bundle:
    """Write a bundle: manifest, card, fp16 weights, vocabularies, dictionary, graphs of the chosen precisions.

    The graphs hold the weights as fp16 rounds them, so that every runtime of the bundle has the same ones.

    Args:
        model: as trained; it is left as it is.
        recipe: that it was trained with.
        prepared: the data it was trained on.
        out: the bundle's folder.
        shipping: precisions and the like.
        report: told what is being done.

    Raises:
        BundleError: there is already something at ``out``, or the weights do not fit fp16.
        ConfigError: an unknown precision.
        CorpusError: ``prepared`` is not prepared data.
    """
    check_precisions(shipping.precisions, PRECISIONS)
    check_free(out, overwrite=shipping.overwrite)
    final = rounded(model)
    sources, target = load_vocabularies(prepared)
    summary = PreparedSummary.load(prepared)
    named, described = named_vocabularies(sources, target, summary.feature_widths if summary.features else ())
    dictionary = load_dictionary(prepared)
    text = _validation_sources(prepared) if "int8" in shipping.precisions else []
    files = built_graphs(final, shipping.precisions, text, recipe.data.max_target_tokens - 1, report)
    if len(dictionary):
        files[DICTIONARY] = dictionary.to_bytes()
    manifest = Manifest(
        name=recipe.name,
        task=recipe.task,
        source_languages=_source_languages(recipe),
        target_language=recipe.target_language,
        architecture=recipe.architecture,
        config=to_mapping(model.config),
        decoding=recipe.decoding,
        # The recipe counts the end of the sequence, a limit does not.
        limits=Limits(recipe.data.max_source_tokens - 1, recipe.data.max_target_tokens - 1),
        vocabularies=described,
        training=together([_own_training(recipe, summary, shipping.progress), shipping.ancestry]),
        licence=recipe.licence,
        about=recipe.about,
        target_form=recipe.data.target_form,
        keep_unknown=recipe.data.keep_unknown,
        dictionary=DICTIONARY if len(dictionary) else "",
        pairs=recipe.pairs,
        characters_per_token=_characters_per_token(prepared, sources[0]) if recipe.task == "summarize" else 0.0,
    )
    report(f"writing {out}")
    weights = {name: tensor.detach().numpy() for name, tensor in model_tensors(final).items()}
    return write_bundle(out, manifest, weights, named, files, overwrite=shipping.overwrite)


def _own_training(recipe: Recipe, summary: PreparedSummary, progress: TrainingProgress) -> Training:
    """What the run itself has taught."""
    return Training(
        corpora=summary.corpora,
        recipe=recipe_mapping(recipe),
        updates=progress.update,
        target_tokens=progress.target_tokens,
        seconds=round(progress.seconds, 1),
    )


def _source_languages(recipe: Recipe) -> tuple[str, ...]:
    """The recipe's, or with tags all that are translated into its target language."""
    into = tuple(source for source, target in recipe.pairs if target == recipe.target_language)
    return into or recipe.source_languages


def add_precision(path: Path, precision: str, report: Report = lambda line: None) -> Path:
    """Build further graphs of a bundle from its own weights, into ``onnx/<precision>`` or ``torchscript``.

    Args:
        path: the bundle.
        precision: ``float32``, ``float16`` or ``torchscript``.
        report: told what is being done.

    Returns:
        The folder that was built.

    Raises:
        BundleError: the bundle is not sound, or ships that precision already.
        ConfigError: an unknown precision.
        CorpusError: ``int8``, which is calibrated on text: :func:`renew_graphs` takes some.
    """
    check_precisions([precision], (*BUILT_PRECISIONS, TORCHSCRIPT))
    bundle = Bundle.load(path)
    model = load_bundle_model(bundle)
    if precision == TORCHSCRIPT:
        report("tracing graphs")
        return add_built(path, TORCHSCRIPT, trace_graphs(model))
    report("exporting graphs")
    graphs, specs = export_graphs(model.half() if precision == "float16" else model)
    longest = bundle.manifest.limits.max_target_tokens
    built = at_precision(model, graphs, precision, [], longest, report, bundle.manifest.decoding.prefix)
    # Described by themselves: the graphs that the bundle ships may be of an older version.
    return add_built(path, f"onnx/{precision}", {**built, GRAPHS: specs_to_json(specs).encode()})


def renew_graphs(path: Path, lines: Sequence[Column], report: Report = lambda line: None) -> Bundle:
    """Make a bundle's shipped graphs again from its own weights: a newer version may write faster ones.

    What was proven of the old graphs is dropped, and folders that were built on demand with them.

    Args:
        path: the bundle.
        lines: text to calibrate 8-bit graphs on, one list of lines (or of feature matrices) for each of
            :func:`languages_read`.
        report: told what is being done.

    Raises:
        BundleError: the bundle is not sound.
        CorpusError: it ships 8-bit graphs, and there is no text.
    """
    bundle = Bundle.load(path)
    model, limits = load_bundle_model(bundle), bundle.manifest.limits
    shipped = [one for one in PRECISIONS if f"onnx/{one}/encode.onnx" in bundle.manifest.files]
    text = calibration_sources(_readers(bundle, lines), limits)
    prefix = bundle.manifest.decoding.prefix
    files = built_graphs(model, shipped, text, limits.max_target_tokens, report, prefix)
    return extend_bundle(path, files, replace(bundle.manifest, proof={}))


def languages_read(bundle: Bundle) -> tuple[str, ...]:
    """The language of each source, or of a bundle of several directions each that it translates from."""
    return tuple(dict.fromkeys(source for source, _ in bundle.manifest.pairs)) or bundle.manifest.source_languages


def _readers(bundle: Bundle, lines: Sequence[Column]) -> list[Reader]:
    """The lines with what encodes them: those of a language that is translated into several take turns."""
    if not bundle.manifest.pairs:
        return [(bundle.sources, lines)] if lines else []
    readers: list[Reader] = []
    for language, column in zip(languages_read(bundle), lines, strict=True):
        into = [target for source, target in bundle.manifest.pairs if source == language]
        for number, target in enumerate(into):
            readers.append((bundle.direction(language, target).sources, [column[number :: len(into)]]))
    return readers


def add_shortlist(path: Path, shortlist: Shortlist) -> Bundle:
    """Ship a lexical shortlist with a bundle, and the graphs that read one, made anew of its graphs.

    An older version may have made those that are there. Scores that were measured with another shortlist are dropped.

    Raises:
        BundleError: the bundle is not sound, has no graph of logits, or the shortlist is of other vocabularies.
    """
    bundle, files = Bundle.load(path), dict[str, bytes | Path]()
    for folder in sorted({name.rpartition("/")[0] for name in bundle.manifest.files if name.endswith("/encode.onnx")}):
        specs = bundle.graph_specs(Path(folder).name)
        if LOGITS_GRAPH not in specs:
            raise BundleError(path, [f"{folder} has no {LOGITS_GRAPH} graph, of which the one for shortlists is made"])
        spec = shortlist_spec(specs["step"])
        graphs = {name: onnx.load(bundle.path / folder / f"{name}.onnx") for name in specs if name != SHORTLIST_GRAPH}
        add_shortlist_graph(graphs, spec)
        files |= {f"{folder}/{name}": content for name, content in pack(graphs).items()}
        own = f"{folder}/{GRAPHS}"
        described = own if own in bundle.manifest.files else f"onnx/{GRAPHS}"
        files[described] = specs_to_json({**specs, SHORTLIST_GRAPH: spec}).encode()
    scores = tuple(one for one in bundle.manifest.scores if not one.test_set.endswith(WITH_SHORTLIST))
    manifest = replace(bundle.manifest, shortlist=SHORTLIST, scores=scores)
    return extend_bundle(path, {**files, SHORTLIST: shortlist.to_bytes()}, manifest)


def rounded(model: AnyModel) -> AnyModel:
    """A copy of a model on the CPU as its bundle will hold it: prepared for inference, weights as fp16 rounds them."""
    final = copy.deepcopy(model).cpu().float()
    final.prepare_for_inference()
    round_weights(final)
    return final


def round_weights(model: AnyModel) -> None:
    """Round a model's weights as fp16 does, in place."""
    with torch.no_grad():
        for tensor in model_tensors(model).values():
            if tensor.is_floating_point():
                tensor.copy_(tensor.half())


def check_precisions(precisions: Sequence[str], known: Sequence[str]) -> None:
    """Raises ConfigError where one of them is not known."""
    for precision in precisions:
        if precision not in known:
            raise ConfigError(f"precision must be one of {', '.join(known)}, but is {precision!r}")


def built_graphs(
    model: AnyModel,
    precisions: Sequence[str],
    sources: Sequence[tuple[Array, ...]],
    longest: int,
    report: Report,
    prefix: tuple[int, ...] = (),
) -> dict[str, bytes | Path]:
    """The ONNX files that a bundle of a model ships, by their paths in it; the arguments are :func:`at_precision`'s."""
    described = f"onnx/{GRAPHS}"
    if not precisions:  # PyTorch runs the model itself
        return {described: specs_to_json({name: module.spec for name, module in graph_modules(model).items()}).encode()}
    report("exporting graphs")
    graphs, specs = export_graphs(model)
    files: dict[str, bytes | Path] = {described: specs_to_json(specs).encode()}
    for precision in precisions:
        built = at_precision(model, graphs, precision, sources, longest, report, prefix)
        files |= {f"onnx/{precision}/{name}": content for name, content in built.items()}
    return files


def at_precision(
    model: AnyModel,
    graphs: dict[str, onnx.ModelProto],
    precision: str,
    sources: Sequence[tuple[Array, ...]],
    longest: int,
    report: Report,
    prefix: tuple[int, ...] = (),
) -> dict[str, bytes]:
    """The files of one precision; ``graphs`` stay as they are.

    To calibrate, ``longest`` target tokens are decoded, of which ``prefix`` are the first.
    """
    own = {name: onnx.ModelProto.FromString(graph.SerializeToString()) for name, graph in graphs.items()}
    own.pop(SHORTLIST_GRAPH, None)  # made anew of what this precision's logits are made of
    if precision == "int8":
        if not sources:
            raise CorpusError("8-bit graphs are calibrated on text, but there is none: give some dozens of sentences")
        report(f"calibrating on {len(sources)} sentences")
        # Which hypotheses win matters little here: all that counts is the mix of rows.
        options = SearchOptions(beam_size=4, max_length=longest, max_length_ratio=1.5, prefix=prefix)
        forms = calibrate(model, sources, options)
        left = [f"{name}: {product}" for name, graph in own.items() for product in quantise(graph, forms)]
        report(_described(forms, left))
    if SHORTLIST_GRAPH in graphs:
        add_shortlist_graph(own, graph_modules(model)[SHORTLIST_GRAPH].spec)
    return pack(own)


def _described(forms: dict[str, Quantisation], left: list[str]) -> str:
    errors = [form.error for form in forms.values()]
    by_row = sum(form.kind == "row_max" for form in forms.values())
    text = f"{len(forms)} products in 8 bits, {by_row} by row; error {np.mean(errors):.2%}, at most {max(errors):.2%}"
    return f"{text}; not calibrated and left in float32: {', '.join(left)}" if left else text


def _validation_data(prepared: Path) -> PreparedData:
    """The validation split; that of training where there is none."""
    splits = PreparedSummary.load(prepared).splits
    return PreparedData.open(prepared, "valid" if "valid" in splits else "train")


def _characters_per_token(prepared: Path, vocabulary: Vocabulary | None) -> float:
    """What nine tenths of the validation texts have at least; 0 where they are no text."""
    if vocabulary is None:
        return 0.0
    data = _validation_data(prepared)
    sources = [data.sources(index)[0][:-1].tolist() for index in range(min(len(data), CALIBRATION_TEXTS))]
    ratios = [len(vocabulary.decode(tokens)) / len(tokens) for tokens in sources if tokens]
    return round(float(np.quantile(ratios, 0.1)), 3) if ratios else 0.0


def _validation_sources(prepared: Path) -> list[tuple[Array, ...]]:
    """Sentences of every length from the validation split, the longest and some joined ones among them."""
    data = _validation_data(prepared)
    return _joined(
        [
            tuple(source.astype(np.float32 if source.ndim == 2 else np.int64) for source in data.sources(index))
            for index in _spread(data.source_lengths)
        ]
    )


def calibration_sources(readers: Sequence[Reader], limits: Limits) -> list[tuple[Array, ...]]:
    """Sentences of every length from some text, the longest and some joined ones among them; none without text."""
    encoded = (encode_columns(sources, lines, limits.max_source_tokens + 1) for sources, lines in readers)
    sources = [row for columns in encoded for row in zip(*columns, strict=True)]
    lengths = np.array([max(map(len, one)) for one in sources], np.int64)
    return _joined([sources[index] for index in _spread(lengths)]) if sources else []


def _spread(lengths: Array) -> list[int]:
    by_length = np.argsort(lengths, kind="stable")
    chosen: list[int] = by_length[
        np.unique(np.linspace(0, len(by_length) - 1, CALIBRATION_SENTENCES).astype(np.int64))
    ].tolist()
    return chosen


def _joined(picked: list[tuple[Array, ...]]) -> list[tuple[Array, ...]]:
    """Sentences by rising length, and some pairs of neighbours as one."""
    if any(source.ndim == 2 for source in picked[0]):
        return picked  # feature matrices cannot be joined
    longest = max(max(map(len, one)) for one in picked)
    # A few pairs of neighbours in length as one sentence, their inner end left out, while they stay within the limit.
    joined = [
        tuple(np.concatenate([a[:-1], b]) for a, b in zip(first, second, strict=True))
        for first, second in zip(picked[::8], picked[1::8], strict=False)
    ]
    return picked + [one for one in joined if max(map(len, one)) <= longest]
