"""The record that lies beside prepared data: what it was made from, and what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from tandem.models.bundle import Corpus
from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.vocabulary import Vocabulary
from tandem.training.checksums import changed_files
from tandem.training.data.config import DataConfig
from tandem.training.data.corpus import file_digest

FORMAT = 2
SUMMARY_FILE = "prepared.json"
_VALUES_LISTED = 5  # in a message
# Read when batches are planned or text is decoded, so changing them needs no new preparation.
BATCHING_FIELDS = (
    "join_share",
    "join_most",
    "copy_share",
    "bpe_dropout_source",
    "bpe_dropout_target",
    "noise",
    "augmentation",
    "rewriting_from",
    "keep_unknown",
)


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One encoded split.

    Attributes:
        pairs: encoded pairs, repeated ones counted as often as they are used.
        dropped: pairs left out, by reason (before repetition where the text decides, after it where tokens do).
        source_tokens: tokens of each text source, end-of-sequence tokens included.
        target_tokens: tokens of the target, without end-of-sequence tokens.
        truncated: pairs whose source was cut at the limit.
        placeholders: pairs in which spans were replaced by placeholders.
        unknown: target tokens that are the unknown word (0 for sentencepiece).
    """

    pairs: int
    dropped: Mapping[str, int]
    source_tokens: tuple[int, ...]
    target_tokens: int
    truncated: int = 0
    placeholders: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class FeatureSide:
    """A source of feature matrices, which stay where they are.

    Attributes:
        width: of each vector.
        files: by split and corpus the absolute path of the ``.npy`` file.
    """

    width: int
    files: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class PreparedSummary:
    """What prepared data was made from, and what came of it.

    Attributes:
        format: version of the folder's layout.
        identity: everything the content depends on: configuration, languages, seed.
        files: SHA-256 of every corpus file, by path relative to the data root.
        splits: by name, the encoded splits.
        corpora: the corpora, as a bundle's manifest lists them; segments are the training pairs used, each once.
        vocabularies: size of each vocabulary, by side (``source0``, …, ``target``); 0 for features.
        seconds: how long the preparation took.
        features: the sources that are feature matrices, by side.
        checksums: CRC-32 of every other file of the folder, by its path there; none in those of earlier versions.
    """

    format: int
    identity: dict[str, Any]
    files: dict[str, str]
    splits: dict[str, SplitSummary]
    corpora: tuple[Corpus, ...]
    vocabularies: dict[str, int]
    seconds: float
    features: dict[str, FeatureSide] = field(default_factory=dict)
    checksums: dict[str, int] = field(default_factory=dict)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        """Per source the width of its feature vectors, 0 where it is text."""
        *sources, _ = self.vocabularies
        return tuple(self.features[side].width if side in self.features else 0 for side in sources)

    @property
    def vocabularies_given(self) -> bool:
        """Whether the vocabularies are a bundle's, rather than made of the text."""
        return "vocabularies" in self.identity

    @classmethod
    def load(cls, folder: Path) -> PreparedSummary:
        """Read the record of a prepared folder.

        Raises:
            CorpusError: the folder is not prepared data, or of another format.
        """
        path = folder / SUMMARY_FILE
        try:
            mapping = json.loads(path.read_text(encoding="utf-8"))
            if mapping.get("format") != FORMAT:
                raise CorpusError(f"{path}: format must be {FORMAT}, but is {mapping.get('format')}; prepare it again")
            return load_dataclass(cls, mapping, str(path))
        except OSError as error:
            missing = f"{error.strerror}: {path.name}"
            raise CorpusError(f"{folder} holds no prepared data ({missing}): run tandem prepare") from error
        except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
            raise CorpusError(f"{path} is damaged ({error}); prepare it again") from error

    def check_files(self, folder: Path) -> None:
        """Refuse prepared data of which a file is not what was written; of earlier versions nothing is known.

        Raises:
            CorpusError: naming the files.
        """
        if changed := changed_files(folder, self.checksums):
            one = len(changed) == 1
            wrong = "has another checksum than when it was" if one else "have other checksums than when they were"
            raise CorpusError(
                f"{folder} is damaged: {', '.join(changed)} {wrong} written, or missing. Prepare it again (tandem"
                " prepare --force), or copy it again from where it is whole; and look at the disk that it lies on"
            )

    def save(self, folder: Path) -> None:
        text = json.dumps(to_mapping(self), ensure_ascii=False, indent=1)
        (folder / SUMMARY_FILE).write_text(text + "\n", encoding="utf-8")


def identity_of(
    config: DataConfig, languages: Sequence[str], seed: int, vocabularies: Sequence[Vocabulary] | None = None
) -> dict[str, Any]:
    """Everything but the files that the content of prepared data depends on, as plain values."""
    identity: dict[str, Any] = {"data": _content(config), "languages": list(languages), "seed": seed}
    if vocabularies:
        identity["vocabularies"] = [hashlib.sha256(v.to_bytes()).hexdigest() for v in vocabularies]
    return identity


def check_same(summary: PreparedSummary, identity: Mapping[str, Any], root: Path, folder: Path) -> None:
    """Refuse prepared data that was made from something else.

    Files that are no longer there are not compared: prepared data stays usable where the corpora are not.

    Raises:
        ConfigError: naming every field and file that differs.
    """
    faults = [str(one) for one in differences(_completed(summary.identity), identity)]
    faults += [
        f"the content of {name} changed"
        for name, digest in summary.files.items()
        if (root / name).is_file() and file_digest(root / name) != digest
    ]
    if faults:
        raise ConfigError(f"{folder} was prepared differently: {'; '.join(faults)}; take another folder or force it")


def check_prepared(summary: PreparedSummary, config: DataConfig, languages: Sequence[str], folder: Path) -> None:
    """Refuse to train on data that was prepared for a recipe with other text, filters or vocabularies.

    The seed may differ, for runs share data, and so may vocabularies that were given.

    Raises:
        ConfigError: naming fields that differ.
    """
    before, now = _completed(summary.identity), identity_of(config, languages, 0)
    compared = ("data", "languages")
    if differing := differences({key: before.get(key) for key in compared}, {key: now[key] for key in compared}):
        raise ConfigError(
            f"{folder} was prepared for another recipe: {listed_differences(differing)}; run tandem prepare with"
            " --force, or with another --run or --data"
        )


def _completed(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity with the keys that were not known when it was written, at the defaults that held for it then."""
    try:
        config = load_dataclass(DataConfig, identity["data"], "data")
    except (ConfigError, KeyError):  # of another version altogether: compared as it is
        return dict(identity)
    return {**identity, "data": _content(config)}


def _content(config: DataConfig) -> dict[str, Any]:
    return {key: value for key, value in to_mapping(config).items() if key not in BATCHING_FIELDS}


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that is not what it was; one that is missing is None."""

    key: str
    now: Any
    before: Any

    def __str__(self) -> str:
        return f"{self.key} is {self.now!r}, but was {self.before!r}"


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[ChangedValue]:
    """What differs between two nested mappings, by its dotted path."""
    old, new = _flatten(before), _flatten(now)
    return [
        ChangedValue(key, new.get(key), old.get(key)) for key in sorted({*old, *new}) if new.get(key) != old.get(key)
    ]


def differences_beside(free: Collection[str], before: Mapping[str, Any], now: Mapping[str, Any]) -> list[ChangedValue]:
    """The same, but for what lies at or below dotted paths that are free to differ."""
    return [
        one
        for one in differences(before, now)
        if not any(path in free for path in accumulate(one.key.split("."), "{}.{}".format))
    ]


def listed_differences(found: Sequence[ChangedValue]) -> str:
    """Both values of the first few, and the keys of the others, for a message."""
    listed = "; ".join(map(str, found[:_VALUES_LISTED]))
    rest = ", ".join(one.key for one in found[_VALUES_LISTED:])
    return f"{listed}; also other: {rest}" if rest else listed


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings and lists as one mapping from dotted paths to plain values."""
    if isinstance(value, Mapping):
        items: Any = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        return {prefix: value}
    return {
        path: leaf
        for key, item in items
        for path, leaf in _flatten(item, f"{prefix}.{key}" if prefix else str(key)).items()
    }
