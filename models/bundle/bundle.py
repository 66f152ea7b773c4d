"""Reading a bundle: everything is checked first, and every fault is listed at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from tandem.models.bundle.directions import direction, side_vocabularies, tag_faults, views
from tandem.models.bundle.files import (
    BUILT,
    CARD,
    GRAPHS,
    MANIFEST,
    MANIFEST_BYTES,
    PICKLED,
    WEIGHTS,
    sha256,
    unsafe,
    walk,
)
from tandem.models.bundle.manifest import Manifest, VocabularyFile, read_manifest
from tandem.models.bundle.weights import check_weights, read_weights
from tandem.models.config import load_dataclass
from tandem.models.errors import BundleError, ConfigError, VocabularyError
from tandem.models.search.graphs import Array, GraphSpecs, specs_from_json
from tandem.models.search.shortlist import Shortlist
from tandem.models.vocabulary import KINDS, Vocabulary
from tandem.models.vocabulary.dictionary import Dictionary
from tandem.models.vocabulary.edits import Operations

Read = TypeVar("Read")
StageReader: TypeAlias = Callable[[bytes], object]
"""Makes of the content of a bundle's file what a text stage needs. Raises VocabularyError where it is none of that."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A bundle that passed every check when it was loaded.

    Attributes:
        path: its folder.
        manifest: what it says about itself.
        source_vocabularies: one per text source; in a bundle of several directions they set the tag of the manifest's
            target language.
        target_vocabulary: the one hypotheses are written in.
        dictionary: translations of single words, for unknown ones; empty where the bundle has none.
        shortlist: which target tokens the words of a sentence make likely; None where the bundle has none.
        stage_data: what text stages read of the bundle, by their names.
    """

    path: Path
    manifest: Manifest
    source_vocabularies: tuple[Vocabulary, ...]
    target_vocabulary: Vocabulary
    _specs: dict[str, GraphSpecs] = field(repr=False)  # by folder, "onnx" or "onnx/<precision>"
    dictionary: Dictionary = Dictionary()
    shortlist: Shortlist | None = None
    stage_data: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        """Per source of the model the width of its feature vectors, 0 where it is text."""
        return self.manifest.vocabularies.features or (0,) * len(self.source_vocabularies)

    @property
    def size(self) -> int:
        """Bytes of the files that its manifest names."""
        return sum((self.path / name).stat().st_size for name in self.manifest.files)

    @property
    def sources(self) -> tuple[Vocabulary | None, ...]:
        """Per source of the model its vocabulary, None for feature matrices."""
        return by_source(self.source_vocabularies, self.feature_widths)

    @property
    def views(self) -> tuple[Bundle, ...]:
        """The bundle once for each language that it translates into, mostly one."""
        return tuple(map(self._viewed, views(self.manifest, self.target_vocabulary)))

    def direction(self, source: str, target: str) -> Bundle:
        """The bundle as one of this direction alone. Raises ConfigError where it has it not."""
        return self._viewed(direction(self.manifest, self.target_vocabulary, source, target))

    def _viewed(self, manifest: Manifest) -> Bundle:
        if manifest is self.manifest:
            return self
        vocabularies = side_vocabularies(manifest, self.source_vocabularies)
        return replace(self, manifest=manifest, source_vocabularies=vocabularies)

    @classmethod
    def load(
        cls, path: str | Path, *, weights: bool = False, readers: Mapping[str, StageReader] | None = None
    ) -> Bundle:
        """Read and check a bundle.

        Args:
            path: its folder.
            weights: also read every weight and check that it is finite; by default their hash and header are enough.
            readers: of text stages, by their names: those that the bundle asks for read its file for them.

        Raises:
            BundleError: a missing, altered, truncated or foreign file, a newer format, a path leading outside, a
                malformed manifest, vocabulary or graph description; ``faults`` lists all of them.
        """
        folder, faults = Path(path), list[str]()
        manifest = _manifest(folder, faults)
        if manifest is None:
            raise BundleError(path, faults)
        sound = _check_files(folder, manifest, faults)
        vocabularies = _vocabularies(folder, manifest, sound, faults)
        faults += _edit_faults(manifest, vocabularies)
        files = [one.file for one in manifest.vocabularies.sources]
        read = tuple(vocabularies[file] for file in files if file in vocabularies)
        faults += tag_faults(manifest, read, vocabularies.get(manifest.vocabularies.target.file))
        dictionary = _read(Dictionary.from_bytes, folder, manifest.dictionary, sound, faults) or Dictionary()
        staged = _stage_data(readers or {}, folder, manifest, sound, faults)
        shortlist = _shortlist(folder, manifest, (sound, vocabularies), faults)
        specs = _specs(folder, sound, faults)
        if WEIGHTS in sound:
            with _noting(faults, WEIGHTS):
                check_weights(folder / WEIGHTS)
                faults += _not_finite(read_weights(folder / WEIGHTS)) if weights else []
        if manifest.vocabularies.target.file in vocabularies:
            size = vocabularies[manifest.vocabularies.target.file].size
            beyond = manifest.decoding.beyond(size)
            faults += [f"decoding names the tokens {beyond}, but there are {size}"] if beyond else []
        if faults:
            raise BundleError(path, faults)
        sources = side_vocabularies(manifest, tuple(vocabularies[one.file] for one in manifest.vocabularies.sources))
        target = vocabularies[manifest.vocabularies.target.file]
        return cls(folder, manifest, sources, target, specs, dictionary, shortlist, staged)

    @property
    def precisions(self) -> tuple[str, ...]:
        """Precisions with ONNX graphs: those shipped, and those built here from these weights."""
        folders = {Path(file).parent for file in self.manifest.files if file.endswith("/encode.onnx")}
        built = {built.parent.relative_to(self.path) for built in (self.path / "onnx").glob(f"*/{BUILT}")}
        found = folders | {folder for folder in built if self._is_current(folder.as_posix())}
        return tuple(sorted(folder.name for folder in found))

    def weights(self) -> dict[str, Array]:
        """Every weight, floating-point ones as float32. Raises BundleError where they cannot be read any more."""
        try:
            return read_weights(self.path / WEIGHTS)
        except (OSError, ValueError) as error:
            raise BundleError(self.path, [f"{WEIGHTS}: {error}"]) from error

    def graph_path(self, precision: str, graph: str) -> Path:
        """The ONNX file of a graph. Raises BundleError where there is none, or it was built from other weights."""
        return self.file(f"onnx/{precision}/{graph}.onnx")

    def file(self, relative: str) -> Path:
        """A file that is shipped, or that was built here from these weights. Raises BundleError otherwise."""
        if relative in self.manifest.files:
            return self.path / relative
        folder = relative.rpartition("/")[0]
        if unsafe(relative) or not (self.path / relative).is_file() or not (self.path / folder / BUILT).is_file():
            build = f"tandem export {self.path} --add {folder.rpartition('/')[2] or 'torchscript'}"
            raise BundleError(self.path, [f"it has no {relative}; build it with `{build}`"])
        if not self._is_current(folder):
            raise BundleError(self.path, [f"{folder} was built from other weights; rebuild it with `tandem export`"])
        return self.path / relative

    def graph_specs(self, precision: str) -> GraphSpecs:
        """The description of the graphs of a precision, or of ``torchscript``.

        Raises:
            BundleError: the bundle has none.
        """
        built = precision if precision == "torchscript" else f"onnx/{precision}"
        own = self.path / built / GRAPHS
        if built not in self._specs and own.is_file():
            return specs_from_json(self.file(f"{built}/{GRAPHS}").read_text(encoding="utf-8"), own)
        for folder in (built, "onnx"):
            if folder in self._specs:
                return self._specs[folder]
        raise BundleError(self.path, [f"it has no onnx/{GRAPHS}; build it with `tandem export`"])

    def _is_current(self, folder: str) -> bool:
        built = _built(self.path, folder)
        return built is not None and built.weights == self.manifest.files[WEIGHTS]


def by_source(vocabularies: Sequence[Vocabulary], feature_widths: Sequence[int]) -> tuple[Vocabulary | None, ...]:
    """The text sources' vocabularies with None in the places of feature matrices."""
    texts = iter(vocabularies)
    return tuple(None if width else next(texts) for width in feature_widths)


def _manifest(folder: Path, faults: list[str]) -> Manifest | None:
    file = folder / MANIFEST
    if not folder.is_dir():
        faults.append("there is no such folder")
    elif file.is_symlink() or not file.is_file():
        faults.append(f"{MANIFEST} is missing")
    elif file.stat().st_size > MANIFEST_BYTES:
        faults.append(f"{MANIFEST} must have at most {MANIFEST_BYTES} bytes, but has {file.stat().st_size}")
    else:
        return read_manifest(file.read_bytes(), faults)
    return None


def _check_files(folder: Path, manifest: Manifest, faults: list[str]) -> set[str]:
    """The files that are listed, there and unaltered; every other finding is a fault."""
    sound: set[str] = set()
    present = dict(walk(folder))
    for relative, digest in sorted(manifest.files.items()):
        if (reason := unsafe(relative)) is not None:
            faults.append(reason)
        elif relative.endswith(PICKLED):
            faults.append(f"{relative} is of a kind that can hold code, which is never opened")
        elif relative not in present:
            faults.append(f"{relative} is missing" if not _below_link(folder, relative) else f"{relative} is a link")
        elif not present[relative]:
            faults.append(f"{relative} is a link or not a plain file")
        elif (found := sha256(folder / relative)) != digest:
            faults.append(f"{relative} was altered or truncated: its SHA-256 is {found[:12]}…, not {str(digest)[:12]}…")
        else:
            sound.add(relative)
    vocabularies = (*manifest.vocabularies.sources, manifest.vocabularies.target)
    needed = dict.fromkeys((WEIGHTS, CARD, *(one.file for one in vocabularies), *manifest.further_files))
    missing = [name for name in needed if name not in manifest.files]
    faults += [f"{name} is not among the files of the manifest" for name in missing]
    built = _built_files(folder, present, faults)
    for relative, plain in sorted(present.items()):
        if relative not in manifest.files and relative != MANIFEST and relative not in built:
            faults.append(f"{relative} is {'not part of the bundle' if plain else 'a link or not a plain file'}")
    return sound


def _below_link(folder: Path, relative: str) -> bool:
    return any((folder / parent).is_symlink() for parent in Path(relative).parents)


def _built_files(folder: Path, present: dict[str, bool], faults: list[str]) -> set[str]:
    """The files of folders that were built here (``built.json`` lists them), checked like the shipped ones."""
    known: set[str] = set()
    for relative in sorted(present):
        parent, _, name = relative.rpartition("/")
        if name != BUILT or not parent or not present[relative]:
            continue
        known.add(relative)
        built = _built(folder, parent)
        if built is None:
            faults.append(f"{relative} is malformed; build the folder again with `tandem export`")
            continue
        for file, digest in built.files.items():
            path = f"{parent}/{file}"
            if unsafe(file) or not present.get(path):
                faults.append(f"{path} is missing or not a plain file; build it again with `tandem export`")
            elif sha256(folder / path) != digest:
                faults.append(f"{path} was altered or truncated; build it again with `tandem export`")
            known.add(path)
    return known


@dataclass(frozen=True, slots=True)
class _Built:
    weights: str  # SHA-256 of the weights it was built from
    files: dict[str, str]


def _built(folder: Path, parent: str) -> _Built | None:
    try:
        return load_dataclass(_Built, json.loads((folder / parent / BUILT).read_bytes()), BUILT)
    except (OSError, ValueError, RecursionError, ConfigError):
        return None


@contextmanager
def _noting(faults: list[str], name: str) -> Iterator[None]:
    """What is wrong with one file of a bundle, put among the faults of all."""
    try:
        yield
    except BundleError as error:
        faults += [f"{name}: {fault}" for fault in error.faults]
    except (VocabularyError, ValueError) as error:
        faults.append(f"{name}: {error}")


def _vocabularies(folder: Path, manifest: Manifest, sound: set[str], faults: list[str]) -> dict[str, Vocabulary]:
    read: dict[str, Vocabulary] = {}
    for file in dict.fromkeys((*manifest.vocabularies.sources, manifest.vocabularies.target)):
        if file.file in sound:
            with _noting(faults, file.file):
                read[file.file] = _vocabulary(folder, file)
    return read


def _vocabulary(folder: Path, file: VocabularyFile) -> Vocabulary:
    return KINDS[file.kind][0].from_bytes((folder / file.file).read_bytes())


def _edit_faults(manifest: Manifest, vocabularies: dict[str, Vocabulary]) -> list[str]:
    """What keeps edits from being applied: their tokens must be those of the translation, which is the last source."""
    if manifest.target_form != "edits":
        return []
    of_text = not any(manifest.vocabularies.features[-1:])
    if not of_text or manifest.vocabularies.sources[-1:] != (manifest.vocabularies.target,):
        return ["target_form 'edits' needs one vocabulary for the last source and the target"]
    target = vocabularies.get(manifest.vocabularies.target.file)
    if target is None:  # a fault of its own
        return []
    faults: list[str] = []
    with _noting(faults, "target_form 'edits'"):
        Operations.of(target)
    return faults


def _read(read: Callable[[bytes], Read], folder: Path, name: str, sound: set[str], faults: list[str]) -> Read | None:
    """A file that the manifest names; None where it names none, or that is at fault."""
    if name in sound:
        with _noting(faults, name):
            return read((folder / name).read_bytes())
    return None


def _stage_data(
    readers: Mapping[str, StageReader], folder: Path, manifest: Manifest, sound: set[str], faults: list[str]
) -> dict[str, object]:
    """What the readers of those stages that the bundle asks for make of its file for them."""
    asked = {stage: read for stage, read in readers.items() if stage in manifest.stages and manifest.lexicon in sound}
    return {stage: _read(read, folder, manifest.lexicon, sound, faults) for stage, read in asked.items()}


def _shortlist(
    folder: Path, manifest: Manifest, read: tuple[set[str], dict[str, Vocabulary]], faults: list[str]
) -> Shortlist | None:
    sound, vocabularies = read
    if manifest.shortlist in sound:
        with _noting(faults, manifest.shortlist):
            shortlist = Shortlist.from_bytes((folder / manifest.shortlist).read_bytes(), manifest.shortlist)
            sides = [*manifest.vocabularies.sources, manifest.vocabularies.target]
            if all(one.file in vocabularies for one in sides):  # else there is a fault already
                *sources, target = (vocabularies[one.file].size for one in sides)
                faults += [f"{manifest.shortlist}: {fault}" for fault in shortlist.misfits(sources, target)]
            return shortlist
    return None


def _specs(folder: Path, sound: set[str], faults: list[str]) -> dict[str, GraphSpecs]:
    specs: dict[str, GraphSpecs] = {}
    for relative in sorted(sound):
        if relative.endswith(f"/{GRAPHS}"):
            with _noting(faults, relative):
                text = (folder / relative).read_text(encoding="utf-8")
                specs[relative.rpartition("/")[0]] = specs_from_json(text, relative)
    return specs


def _not_finite(weights: dict[str, Array]) -> list[str]:
    return [f"weight {name!r} is not finite" for name, array in weights.items() if not np.isfinite(array).all()]
