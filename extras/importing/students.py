"""From a student in 8 bits, such as Firefox's, to a bundle, without PyTorch and without text to calibrate on.

Its file says how every weight and every input of a product was rounded; the bundle's 8-bit graphs have the same
levels. Students are made for greedy search over a lexical shortlist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tandem.extras.importing.marian import BESIDE, CONFIG, MarianFolder, chosen_weights, read_folder
from tandem.extras.importing.marian_binary import MULTIPLIER, OUTPUT, MarianBinary
from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.plan import ParameterPlan, Shape, plan_faults
from tandem.extras.importing.student_graphs import (
    Student,
    align_graph,
    encoder_graph,
    logits_graph,
    student_specs,
)
from tandem.models.bundle import (
    GRAPHS,
    SCRATCH,
    SHORTLIST,
    Bundle,
    ImportedFrom,
    Limits,
    Manifest,
    check_free,
    named_vocabularies,
    sha256,
    write_bundle,
)
from tandem.models.errors import ForeignModelError
from tandem.models.search.graphs import Array, specs_to_json
from tandem.training.export.external import pack
from tandem.training.export.quantise import Levels, Quantisation, quantise, weight_key
from tandem.training.export.searching import search_graph
from tandem.training.export.shortlist import SHORTLIST_GRAPH, add_shortlist_graph, shortlist_spec

FORM = "Marian, 8 bits"
MOST_PIECES, MOST_WRITTEN = 200, 400
"""Students are trained on sentences of at most so many pieces; a translation of one may have twice as many."""

_FIXED: Mapping[str, Any] = {
    "history": "ssru",
    "norm": "post",
    "embedding_norm": False,
    "activation": "relu",
}
"""Fields of our configuration that the graphs here are written for."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """One of our parameters.

    Attributes:
        values: in float32.
        levels: the same in 8 bits, where it is a matrix of such.
        multiplier: what its inputs are multiplied by to be rounded; 0 where it has no levels.
    """

    values: Array
    levels: Levels | None = None
    multiplier: float = 0.0


def open_student(folder: Path) -> MarianBinary | None:
    """The weights of a folder that :func:`import_student` reads: those of 8 bits with multipliers of their inputs."""
    path = chosen_weights(folder, [])
    if path is None or path.suffix != ".bin" or (folder / "config.json").is_file():
        return None
    try:
        binary = MarianBinary.open(path)
    except ValueError:  # whoever reads it then says why
        return None
    return binary if binary.quantised else None


def import_student(folder: Path, binary: MarianBinary, out: Path, asked: Asked, labels: Labels) -> Bundle:
    """Write the bundle of a student; nothing is left behind where that fails.

    Args:
        folder: of the model's files.
        binary: its weights, opened.
        out: the bundle's folder; its name is the bundle's.
        asked: what the user says of the model.
        labels: licence, source and the like; there is nothing to calibrate.

    Raises:
        ForeignModelError: the model cannot be imported; every reason is named.
        BundleError: there is already something at ``out``, or the weights do not fit fp16.
    """
    check_free(out, overwrite=labels.overwrite)
    read, parameters = read_student(folder, binary, asked)
    files = student_files(read, parameters)
    if read.shortlist is not None:
        files[SHORTLIST] = read.shortlist.to_bytes()
    named, _ = named_vocabularies((read.source,), read.target)
    weights = {name: one.values for name, one in parameters.items()}
    manifest = _manifest(out.resolve().name, folder, read, labels)
    return write_bundle(out, manifest, weights, named, files, overwrite=labels.overwrite)


def read_student(folder: Path, binary: MarianBinary, asked: Asked) -> tuple[MarianFolder, dict[str, Parameter]]:
    """What a folder says, and our parameters. Raises ForeignModelError with every reason why it cannot be imported."""
    faults: list[str] = []
    read = None
    try:
        read = read_folder(folder, binary.config(), CONFIG, asked, faults)
    except ValueError as error:
        faults.append(str(error))
    if read is None:
        raise ForeignModelError(folder, faults)
    common = read.common
    faults += [
        f"{name} must be {wanted!r} in models of 8 bits, but is {common[name]!r}"
        for name, wanted in _FIXED.items()
        if common[name] != wanted
    ]
    if common["tied"] == "none":
        faults.append("models of 8 bits must have tied-embeddings or tied-embeddings-all, but have neither")
    if common["width"] % common["heads"]:
        faults.append(f"transformer-heads must divide dim-emb, {common['width']}, but is {common['heads']}")
    if faults:
        raise ForeignModelError(folder, faults)
    own = dict(student_shapes(common))
    plan = {name: read.plan[name] for name in own}
    beside = [name for name in binary.shapes if name.endswith(MULTIPLIER)]
    faults += plan_faults(own, plan, binary.shapes, (*BESIDE, *beside))
    if faults:
        raise ForeignModelError(folder, faults)
    parameters = {name: _parameter(name, made, binary, faults) for name, made in plan.items()}
    if faults:
        raise ForeignModelError(folder, faults)
    return replace(read, plan=plan), parameters


def student_shapes(common: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """The parameters of our model and their shapes."""
    d, f, types = common["width"], common["hidden"], common["target_vocabulary"]
    yield "target_embedding", (types, d)
    if common["tied"] != "all":
        yield "source_embedding", (common["source_vocabularies"][0], d)
    yield "output_bias", (types,)
    for layer in range(common["encoder_layers"]):
        yield from _map(f"encoder.{layer}.attention.query_key_value", 3 * d, d)
        yield from _map(f"encoder.{layer}.attention.output", d, d)
        yield from _rest(f"encoder.{layer}", d, f, norms=2)
    for layer in range(common["decoder_layers"]):
        yield from _map(f"decoder.{layer}.unit.forget", d, d)
        yield f"decoder.{layer}.unit.candidate.weight", (d, d)
        for name in ("query", "source_keys", "source_values", "output"):
            yield from _map(f"decoder.{layer}.{name}", d, d)
        yield from _rest(f"decoder.{layer}", d, f, norms=3)


def _rest(own: str, d: int, f: int, *, norms: int) -> Iterator[tuple[str, Shape]]:
    yield from _map(f"{own}.feed_forward.inner", f, d)
    yield from _map(f"{own}.feed_forward.outer", d, f)
    for norm in range(norms):
        yield f"{own}.norms.{norm}.weight", (d,)
        yield f"{own}.norms.{norm}.bias", (d,)


def _map(name: str, outputs: int, inputs: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _parameter(name: str, made: ParameterPlan, binary: MarianBinary, faults: list[str]) -> Parameter:
    """One of our parameters; a fault where its parts are not all in 8 bits, or not rounded alike."""
    named = [part.name(binary.shapes) for part in made.parts]
    rounded = [binary.has_levels(one) for one in named]
    if not any(rounded):
        values = np.concatenate([part.of(binary.floats(one)) for part, one in zip(made.parts, named, strict=True)])
        return Parameter(_finite(name, _chosen(values, made, made.fill), faults))
    table = name.endswith("embedding")
    multipliers = {_multiplier(OUTPUT if table else f"{one}{MULTIPLIER}", binary, faults) for one in named}
    if not all(rounded) or len(multipliers) != 1:
        faults.append(f"{', '.join(named)} must be rounded alike, as their products are one")
        return Parameter(np.zeros(0, np.float32))
    read = [binary.levels(one) for one in named]
    levels = _chosen(np.concatenate([one for one, _ in read]), made, 0)
    scales = np.concatenate([np.full(len(one), 1 / multiplier, np.float32) for one, multiplier in read])
    scales = _chosen(scales, made, float(scales[0]))
    values = levels * scales[:, None]
    return Parameter(_finite(name, values, faults), Levels(levels, scales), multipliers.pop())


def _multiplier(name: str, binary: MarianBinary, faults: list[str]) -> float:
    if name not in binary.shapes or binary.has_levels(name):
        faults.append(f"the weights lack {name}")
        return 1.0
    value = float(binary.floats(name).reshape(-1)[0])
    if not (np.isfinite(value) and value > 0):
        faults.append(f"{name} must be above 0, but is {value:g}")
        return 1.0
    return value


def _chosen(values: Array, made: ParameterPlan, fill: float) -> Array:
    """The rows that the plan says, -1 being rows of ``fill``."""
    if made.rows is None:
        return np.ascontiguousarray(values)
    rows = np.array(made.rows)
    chosen: Array = values[np.maximum(rows, 0)]
    chosen[rows < 0] = fill
    return chosen


def _finite(name: str, values: Array, faults: list[str]) -> Array:
    if not np.isfinite(values).all():
        faults.append(f"{name} must be finite, but {int((~np.isfinite(values)).sum())} of its numbers are not")
    return values


def student_files(read: MarianFolder, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The files of its graphs in 8 bits, by their paths in a bundle."""
    known = {field.name for field in fields(Student)}
    shape = Student(**{name: value for name, value in read.common.items() if name in known})
    forms, given = {}, {}
    for name, one in parameters.items():
        if one.levels is not None:
            key = weight_key(one.values.T)
            given[key] = one.levels
            if name != "source_embedding":
                forms[key] = Quantisation("static", 1 / one.multiplier, 128, 0.0)
    specs = student_specs(shape)
    # In half precision, as all of a bundle's runtimes have them, but for what is in 8 bits.
    weights = {name: _halved(one) for name, one in parameters.items()}
    weights.setdefault("source_embedding", weights["target_embedding"])
    writers = {"encode": encoder_graph, "step_logits": logits_graph, "align": align_graph}
    graphs: dict[str, onnx.ModelProto] = {}
    for name, writer in writers.items():
        graphs[name] = writer(shape, weights)
        quantise(graphs[name], forms, given)
    graphs["step"] = search_graph(graphs["step_logits"], specs["step"])
    specs[SHORTLIST_GRAPH] = shortlist_spec(specs["step"])
    add_shortlist_graph(graphs, specs[SHORTLIST_GRAPH])
    files = {f"onnx/int8/{name}": content for name, content in pack(graphs).items()}
    return {f"onnx/{GRAPHS}": specs_to_json(specs).encode(), **files}


def _halved(one: Parameter) -> Array:
    return one.values if one.levels is not None else one.values.astype(np.float16).astype(np.float32)


def _manifest(name: str, folder: Path, read: MarianFolder, labels: Labels) -> Manifest:
    _, described = named_vocabularies((read.source,), read.target)
    path = chosen_weights(folder, [])
    files = [path, *read.files] if path is not None else [*read.files]
    return Manifest(
        name=name,
        task="translate",
        source_languages=read.sources,
        target_language=read.targets[0],
        architecture="transformer",
        config=_config(read.common),
        decoding=replace(read.decoding, max_length=MOST_WRITTEN),
        limits=Limits(MOST_PIECES, MOST_WRITTEN),
        vocabularies=described,
        training=SCRATCH,
        licence=labels.licence,
        shortlist=SHORTLIST if read.shortlist is not None else "",
        origin=ImportedFrom(FORM, labels.url, {one.name: sha256(one) for one in files}),
    )


def _config(common: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in common.items()}
