"""Writing bundles: into a folder beside the target, checked there, then renamed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tandem.models.bundle.bundle import Bundle
from tandem.models.bundle.card import render_card
from tandem.models.bundle.files import BUILT, CARD, MANIFEST, WEIGHTS, sha256, unsafe, walk
from tandem.models.bundle.manifest import Manifest, Vocabularies, VocabularyFile
from tandem.models.bundle.weights import half_precision, write_weights
from tandem.models.errors import BundleError
from tandem.models.folders import whole_folder
from tandem.models.search.graphs import Array
from tandem.models.vocabulary import KINDS, Vocabulary

Content = bytes | Path  # a file's content, or the file to copy
_OWN = (MANIFEST, CARD)


def write_bundle(
    path: str | Path,
    manifest: Manifest,
    weights: Mapping[str, Array],
    vocabularies: Mapping[str, Vocabulary],
    files: Mapping[str, Content] | None = None,
    *,
    overwrite: bool = False,
) -> Bundle:
    """Write a bundle and load it back.

    Args:
        path: its folder, which must not exist unless ``overwrite``.
        manifest: its ``files`` are ignored and computed.
        weights: stored as fp16 safetensors.
        vocabularies: by the file names that the manifest gives them.
        files: further content by relative path, such as the graphs.

    Raises:
        BundleError: what was given does not make a sound bundle; nothing is left behind.
    """
    faults: list[str] = []
    halves = half_precision(weights, faults)
    contents: dict[str, Content] = {name: one.to_bytes() for name, one in vocabularies.items()}
    contents |= files or {}
    _refuse(path, contents, faults)

    def fill(folder: Path) -> None:
        write_weights(folder / WEIGHTS, halves)
        _put(folder, contents)
        _seal(folder, manifest)

    return _write(Path(path), fill, overwrite=overwrite)


def extend_bundle(path: str | Path, files: Mapping[str, Content], manifest: Manifest | None = None) -> Bundle:
    """Add or replace shipped files of a bundle, and with ``manifest`` what it says about itself, in one step.

    Folders that were built on demand are dropped: they would have to be built again.
    """
    bundle = Bundle.load(path)
    _refuse(path, files, [])
    kept: dict[str, Content] = {name: bundle.path / name for name in bundle.manifest.files if name not in _OWN}

    def fill(folder: Path) -> None:
        _put(folder, {**kept, **files})
        _seal(folder, manifest or bundle.manifest)

    return _write(Path(path), fill, overwrite=True)


def add_built(path: str | Path, folder: str, files: Mapping[str, Content]) -> Path:
    """Put files that were derived from a bundle's weights into one flat folder of it, such as ``onnx/float32``.

    They are not in the manifest; ``built.json`` beside them says from which weights they were built. The folder is
    replaced as a whole. Returns it.
    """
    bundle = Bundle.load(path)
    _refuse(path, files, [])
    shipped = [name for name in bundle.manifest.files if name.startswith(f"{folder}/")]
    if unsafe(folder) or shipped:
        raise BundleError(path, [f"{folder} cannot be built: it is shipped with the bundle, or no folder of it"])
    if nested := [name for name in files if "/" in name]:
        raise BundleError(path, [f"built files lie in one folder, but {nested} do not"])
    target = bundle.path / folder
    # Beside the bundle, not in it: a bundle that is loaded meanwhile must not see a foreign folder.
    with whole_folder(target, beside=bundle.path.resolve()) as partial:
        _put(partial, files)
        digests = {name: sha256(partial / name) for name in sorted(files)}
        built = {"weights": bundle.manifest.files[WEIGHTS], "files": digests}
        (partial / BUILT).write_text(json.dumps(built, indent=1) + "\n", encoding="utf-8")
    return target


def named_vocabularies(
    sources: Sequence[Vocabulary], target: Vocabulary, features: tuple[int, ...] = ()
) -> tuple[dict[str, Vocabulary], Vocabularies]:
    """The vocabularies by file name, equal ones once, and which side reads which file."""
    names: dict[bytes, VocabularyFile] = {}
    files: dict[str, Vocabulary] = {}

    def place(vocabulary: Vocabulary, side: str) -> VocabularyFile:
        content = vocabulary.to_bytes()
        if content not in names:
            kind, suffix = next((kind, one[1]) for kind, one in KINDS.items() if isinstance(vocabulary, one[0]))
            names[content] = VocabularyFile(f"{side}.{suffix}", kind)
            files[f"{side}.{suffix}"] = vocabulary
        return names[content]

    sides = ["source"] if len(sources) == 1 else [f"source{index}" for index in range(len(sources))]
    described = tuple(place(vocabulary, side) for vocabulary, side in zip(sources, sides, strict=True))
    return files, Vocabularies(described, place(target, "target"), features)


def _refuse(path: str | Path, files: Mapping[str, Content], faults: list[str]) -> None:
    for name in files:
        if (reason := unsafe(name)) is not None:
            faults.append(reason)
        elif name in _OWN or Path(name).name == BUILT:
            faults.append(f"{name} is written by the bundle itself")
    if faults:
        raise BundleError(path, faults)


def _put(folder: Path, files: Mapping[str, Content]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, target)
        else:
            target.write_bytes(content)


def _seal(folder: Path, manifest: Manifest) -> None:
    (folder / CARD).write_text(render_card(manifest), encoding="utf-8")
    files = {name: sha256(folder / name) for name, _ in sorted(walk(folder))}
    (folder / MANIFEST).write_text(replace(manifest, files=files).to_json(), encoding="utf-8")


def check_free(path: Path, *, overwrite: bool) -> None:
    """Raises BundleError where a bundle must not be written: asked before the work, so that it is not done in vain."""
    if path.exists() and not overwrite:
        raise BundleError(path, ["there is already something at this path; remove it, or replace it with --force"])


def _write(path: Path, fill: Callable[[Path], None], *, overwrite: bool) -> Bundle:
    check_free(path, overwrite=overwrite)
    with whole_folder(path.resolve()) as partial:
        fill(partial)
        try:
            Bundle.load(partial, weights=True)  # what cannot be loaded must never get the name
        except BundleError as error:
            raise BundleError(path, error.faults) from error
    return Bundle.load(path)
