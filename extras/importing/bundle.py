"""From somebody else's model to a bundle like any other: fp16 weights, int8 graphs, vocabularies, card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import torch

from tandem.extras.importing.bart import BART
from tandem.extras.importing.ct2 import read_argos, read_ct2
from tandem.extras.importing.fields import read_table
from tandem.extras.importing.joint import read_joint
from tandem.extras.importing.m2m import read_m2m
from tandem.extras.importing.marian import weights_files
from tandem.extras.importing.marian_tensors import read_marian
from tandem.extras.importing.mbart import MBART50
from tandem.extras.importing.model import UNLABELLED, Asked, ForeignModel, Labels
from tandem.extras.importing.opus import read_opus
from tandem.extras.importing.pegasus import PEGASUS
from tandem.extras.importing.plan import plan_faults
from tandem.extras.importing.weights import fill
from tandem.extras.shared.sentences import proof_sentences
from tandem.models.architectures.transformer import Transformer
from tandem.models.bundle import (
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
from tandem.models.bundle.directions import side_vocabularies
from tandem.models.config import to_mapping
from tandem.models.errors import ConfigError, ForeignModelError
from tandem.models.search import SearchOptions
from tandem.models.steps.loading import model_tensors
from tandem.training.export.bundle import built_graphs, calibration_sources, round_weights

Report = Callable[[str], None]
Reader = Callable[[Path, Asked, list[str]], ForeignModel | None]

READERS: Mapping[str, Reader] = {
    "marian": read_opus,
    "m2m_100": read_m2m,
    "mbart": partial(read_joint, MBART50),
    "bart": partial(read_joint, BART),
    "pegasus": partial(read_joint, PEGASUS),
}
"""By the ``model_type`` of a Hugging Face configuration, what reads a folder of it."""

BYTES_PER_NUMBER = 50
"""Memory at the peak per number of the weights: the model, and several graphs that hold most of it, as float32.
(Measured: 4.2 GB for 73.9 million numbers, and what the program takes itself.)"""
BYTES_BESIDE = 1 << 30
_GRAPH_BYTES = 1 << 31  # the most that one graph may have while it is exported


def read_model(folder: Path, asked: Asked) -> ForeignModel:
    """A folder of a public model, understood and checked but for its weights' values.

    Raises:
        ForeignModelError: it is none that can be imported; every reason is named.
    """
    faults: list[str] = []
    if not folder.is_dir():
        raise ForeignModelError(folder, ["there is no such folder"])
    reader = _reader(folder, faults)
    if reader is None:
        raise ForeignModelError(folder, faults)
    model = reader(folder, asked, faults)
    if model is not None:
        with torch.device("meta"):
            empty = Transformer(model.config)
        own = {name: tuple(tensor.shape) for name, tensor in model_tensors(empty).items()}
        faults += plan_faults(own, model.plan, model.tensors.shapes, model.beside)
    if faults or model is None:
        raise ForeignModelError(folder, faults)
    return model


def _reader(folder: Path, faults: list[str]) -> Reader | None:
    """What reads a folder; None, with the reasons, where nothing does."""
    if (folder / "metadata.json").is_file() and (folder / "model" / "model.bin").is_file():
        return read_argos
    if (folder / "model.bin").is_file():
        return read_ct2
    if not (folder / "config.json").is_file() and weights_files(folder):
        return read_marian
    table = read_table(folder / "config.json", faults)
    kind = table.get("model_type")
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is None and not faults:
        faults.append(f"config.json: model_type must be one of {', '.join(READERS)}, but is {kind!r}")
    return reader


def load_model(folder: Path, model: ForeignModel, report: Report = lambda line: None) -> Transformer:
    """The model with its weights, in float32, prepared for inference.

    Raises:
        ForeignModelError: weights that are not finite; every one is named.
    """
    with torch.random.fork_rng(devices=[]):
        made = Transformer(model.config)
    made.prepare_for_inference()
    if faults := fill(made, model.plan, model.tensors, report):
        raise ForeignModelError(folder, faults)
    return made


def import_bundle(
    folder: Path, out: Path, asked: Asked, labels: Labels = UNLABELLED, report: Report = lambda line: None
) -> Bundle:
    """Write the bundle of a public model that lies in a folder; nothing is left behind where that fails.

    Args:
        folder: of the model's files.
        out: the bundle's folder; its name is the bundle's.
        asked: what the user says of the model.
        labels: licence, source and the like.
        report: told what is being done.

    Raises:
        ForeignModelError: the model cannot be imported, or needs more memory than there is; every reason is named.
        BundleError: there is already something at ``out``, or the weights do not fit fp16.
    """
    check_free(out, overwrite=labels.overwrite)
    model = read_model(folder, asked)
    needed = BYTES_BESIDE + BYTES_PER_NUMBER * model.tensors.numbers
    if faults := _size_faults(model):
        raise ForeignModelError(folder, faults)
    report(f"{model.form}, {model.tensors.numbers / 1e6:.1f} million numbers; needs {_gigabytes(needed)} of memory")
    if labels.memory is not None and needed > labels.memory:
        there = f"importing it needs {_gigabytes(needed)} of memory, but there are {_gigabytes(labels.memory)} here"
        raise ForeignModelError(folder, [f"{there}: import it on a larger machine; the bundle then needs far less"])
    manifest = _manifest(out.resolve().name, model, labels)
    lines = labels.calibration or _built_in(model.sources, report)
    final = load_model(folder, model, report)
    round_weights(final)
    (source,) = side_vocabularies(manifest, (model.source,))
    text = calibration_sources([((source,), [list(lines)])], manifest.limits)
    longest, prefix = manifest.limits.max_target_tokens, manifest.decoding.prefix
    files = built_graphs(final, ("int8",), text, longest, report, prefix)
    named, _ = named_vocabularies((model.source,), model.target)
    report(f"writing {out}")
    weights = {name: tensor.detach().numpy() for name, tensor in model_tensors(final).items()}
    if model.shortlist is not None:
        files[SHORTLIST] = model.shortlist.to_bytes()
    return write_bundle(out, manifest, weights, named, files, overwrite=labels.overwrite)


def _size_faults(model: ForeignModel) -> list[str]:
    """Why a model's graphs cannot be exported: each is one message of protocol buffers, which ends at 2 GB."""
    with torch.device("meta"):
        empty = Transformer(model.config)
    read = ("encoder.", "encoder_norm.", "source_")
    shared = empty.target_embedding.numel() if model.config.tied == "all" else 0
    sides = {"encoder": 4 * shared, "decoder": 0}
    for name, tensor in model_tensors(empty).items():
        sides["encoder" if name.startswith(read) else "decoder"] += 4 * tensor.numel()
    return [
        f"the graph of its {side} would have {_gigabytes(size)}, but one may have {_gigabytes(_GRAPH_BYTES)} at most"
        for side, size in sides.items()
        if size > _GRAPH_BYTES
    ]


def _manifest(name: str, model: ForeignModel, labels: Labels) -> Manifest:
    _, described = named_vocabularies((model.source,), model.target)
    longest = model.config.max_positions - 1  # positions count the end of the sequence, a limit does not
    read = [*model.tensors.files, *model.files]
    pairs = _pairs(model)
    target = pairs[0][1] if pairs else model.targets[0]
    return Manifest(
        name=name,
        task=model.task,
        source_languages=tuple(source for source, into in pairs if into == target) or model.sources,
        target_language=target,
        architecture="transformer",
        config=to_mapping(model.config),
        decoding=_decoding(model, target),
        limits=Limits(longest, longest),
        vocabularies=described,
        training=SCRATCH,
        licence=labels.licence,
        shortlist=SHORTLIST if model.shortlist is not None else "",
        pairs=pairs,
        tags=model.tags or "target",
        origin=ImportedFrom(model.form, labels.url, {path.name: sha256(path) for path in read}),
    )


def _decoding(model: ForeignModel, target: str) -> SearchOptions:
    """The defaults of the search; where a translation begins with a tag, that of the target language."""
    if model.tags != "both":
        return model.decoding
    return replace(model.decoding, prefix=(model.target.language_tag(target),))


def _pairs(model: ForeignModel) -> tuple[tuple[str, str], ...]:
    """The directions, those into the first target language first; none without tags."""
    every = ((source, target) for target, source in product(model.targets, model.sources)) if model.tags else ()
    return tuple((source, target) for source, target in every if source != target)


def _built_in(languages: Sequence[str], report: Report) -> list[str]:
    """Built-in sentences of the first language that there are some in; else of another, and the user is told."""
    for language in languages:
        try:
            return proof_sentences(language)
        except ConfigError:
            continue
    report(f"no built-in text in {', '.join(languages)}: calibrating on English, which is rough; give --calibration")
    return proof_sentences("en")


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
