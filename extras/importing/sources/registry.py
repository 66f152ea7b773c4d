"""Mozilla's registry of translation models, as it is published: one JSON document, and files beside it.

    db/models.json   {"baseUrl": ..., "models": {"de-en": [MODEL, ...]}}
    MODEL            {architecture, releaseStatus, sourceLanguage, targetLanguage, files, metrics}
    files            {model: {path, uncompressedSize, uncompressedHash}, lexicalShortlist: {path},
                      vocab: {path} or srcVocab and trgVocab}; packed with gzip, below ``baseUrl``

A mirror, or a folder with a copy, has the same tree: the document as ``db/models.json`` and the files by their paths.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tandem.extras.fetching.downloads import PullError, download_text, shown_url
from tandem.models.errors import ConfigError

ADDRESS = "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data"
"""Where Mozilla publishes it."""

INDEX = "db/models.json"
_MOST_INDEX = 64 << 20  # bytes; it has some hundred thousand
_KINDS = ("lexicalShortlist", "vocab", "srcVocab", "trgVocab", "model")  # the largest last: it may break off
_ARCHITECTURES = ("tiny", "base-memory", "base")  # from the smallest on
_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
_PATH = re.compile(r"[A-Za-z0-9._/-]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file of a model.

    Attributes:
        path: below the registry's address.
        size, digest: bytes and SHA-256 of what is unpacked; 0 and empty where the registry does not say them.
    """

    path: str
    size: int = 0
    digest: str = ""

    @property
    def name(self) -> str:
        """What it is called where it is unpacked."""
        return PurePosixPath(self.path).name.removesuffix(".gz")


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model of the registry.

    Attributes:
        pair: key of the registry, such as ``de-en``.
        source, target: language codes.
        architecture, status: as the registry has them, such as ``base-memory`` and ``Release Desktop``.
        files: the model's own last.
        scores: of Flores, by their names.
    """

    pair: str
    source: str
    target: str
    architecture: str
    status: str
    files: tuple[PublishedFile, ...]
    scores: Mapping[str, float]

    @property
    def released(self) -> bool:
        return self.status.lower().startswith("release")

    @property
    def rank(self) -> tuple[int, int]:
        """The larger, the better it translates."""
        known = self.architecture in _ARCHITECTURES
        return _ARCHITECTURES.index(self.architecture) if known else -1, self.files[-1].size


@dataclass(frozen=True, slots=True)
class Registry:
    """The registry as it was read.

    Attributes:
        place: URL or folder that paths are below.
        models: by pair, each with one model or more.
    """

    place: str
    models: Mapping[str, Sequence[PublishedModel]]

    def choose(self, name: str) -> PublishedModel:
        """The released model of a pair, the largest of several; of ``de-en/tiny`` that one, released or not.

        Raises:
            ConfigError: there is none; names that are near are said.
        """
        pair, _, architecture = name.partition("/")
        there = self.models.get(pair)
        if there is None:
            raise ConfigError(f"there is no model of {pair!r}{self._near(pair)}; `tandem models` lists all")
        chosen = [one for one in there if (one.architecture == architecture if architecture else one.released)]
        if not chosen:
            known = ", ".join(f"firefox:{pair}/{one.architecture} ({one.status or 'no status'})" for one in there)
            wanted = f"of the architecture {architecture!r}" if architecture else "that is released"
            raise ConfigError(f"there is no model of {pair} {wanted}; there are: {known}")
        return max(chosen, key=lambda one: one.rank)

    def _near(self, pair: str) -> str:
        source, _, target = pair.partition("-")
        near = [*([turned] if (turned := f"{target}-{source}") in self.models else [])]
        near += [one for one in difflib.get_close_matches(pair, self.models, 4, 0.7) if one not in near]
        return f"; did you mean {' or '.join(near)}?" if near else ""


def is_address(place: str) -> bool:
    """Whether a place is a URL, and no folder."""
    return place.lower().startswith(("http://", "https://"))


def read_registry(place: str) -> Registry:
    """The registry at a URL or in a folder; the publisher's where ``place`` is empty.

    Raises:
        PullError: it cannot be read, or is not what it should be; every model that is not is named.
    """
    own, place = not place, (place or ADDRESS).rstrip("/")
    shown = shown_url(place)
    if is_address(place):
        try:
            content = download_text(f"{place}/{INDEX}", _MOST_INDEX)
        except PullError as error:
            remedy = "a proxy is taken from https_proxy; --registry takes a mirror, or a folder with a copy"
            raise PullError(f"{error}; {remedy}") from error
    else:
        try:
            content = (Path(place) / INDEX).read_bytes()
        except OSError as error:
            raise PullError(f"{Path(place) / INDEX}: {error.strerror}; a copy of the registry has it there") from error
    try:
        table = json.loads(content)
        pairs = dict(table["models"])
        base = str(table.get("baseUrl") or place).rstrip("/")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PullError(f"{shown}/{INDEX} is no registry of models: it must be JSON with `models`") from error
    if own and not base.startswith("https://"):
        raise PullError(f"{shown}/{INDEX}: its baseUrl must begin with https://, but is {base!r}")
    faults: list[str] = []
    models = {
        pair: [one for entry in entries if (one := _model(pair, entry, faults))] for pair, entries in pairs.items()
    }
    if faults:
        raise PullError(f"{shown}/{INDEX}: " + "; ".join(faults[:10]))
    return Registry(base if own else place, {pair: there for pair, there in models.items() if there})


def _model(pair: str, entry: Any, faults: list[str]) -> PublishedModel | None:
    """One model, or None with a fault where something of it is not what it should be."""
    try:
        files = tuple(_file(entry["files"][kind]) for kind in _KINDS if entry["files"].get(kind))
        source, target = str(entry["sourceLanguage"]), str(entry["targetLanguage"])
        metrics = (entry.get("metrics") or {}).get("flores200-plus") or {}
        scores = {name: float(metrics[name]) for name in ("bleu", "chrf", "comet22") if metrics.get(name) is not None}
        architecture, status = str(entry["architecture"]), str(entry.get("releaseStatus") or "")
        entry["files"]["model"]["path"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        faults.append(f"a model of {pair!r} is not as it should be: {error!r}")
        return None
    if not (_CODE.fullmatch(source) and _CODE.fullmatch(target)):
        faults.append(f"a model of {pair!r} has no language codes, but {source!r} and {target!r}")
        return None
    return PublishedModel(pair, source, target, architecture, status, files, scores)


def _file(entry: Mapping[str, Any]) -> PublishedFile:
    """Raises ValueError for a path that leads elsewhere or a hash that is none, KeyError where a field is missing."""
    path, size = str(entry["path"]), int(entry.get("uncompressedSize") or 0)
    digest = str(entry.get("uncompressedHash") or "").lower()
    steps = path.split("/")
    if not _PATH.fullmatch(path) or any(step in ("", ".", "..") for step in steps) or steps[-1].startswith("."):
        raise ValueError(f"the path {path!r} leads out of the registry, or is none")
    if size < 0 or (digest and not _DIGEST.fullmatch(digest)):
        raise ValueError(f"{path}: its size must be 0 or more and its hash 64 hexadecimal digits")
    return PublishedFile(path, size, digest)
