"""The corpora of the papers, read from the table beside this module: where files come from, how they are split."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tandem.models.config import load_dataclass, merged
from tandem.models.errors import ConfigError
from tandem.training.data.config import FilterConfig

TABLE = Path(__file__).with_name("corpora.toml")


@dataclass(frozen=True, slots=True)
class Download:
    """Something a user fetches.

    Attributes:
        name: what is fetched, as the page calls it.
        url: the official page or file.
        terms: what must be done to get it, beyond following the link.
    """

    name: str
    url: str
    terms: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Parallel files that are read together, one a field (further files are further references of the last field).

    Attributes:
        files: per column, the names that the file goes under, the usual one first; with a folder where the name alone
            does not tell (``"Giga/input.txt"``); each may end in ``.gz``, ``.xz`` or ``.bz2`` besides.
        download: where they come from.
        segments: how many the distribution has; 0 where that is not known.
        records: where the one file has a record of JSON a line: the record's keys, one a field.
        share: of such records those whose ``id`` has a hash from the one number to below the other, of 0 to 1.
    """

    files: tuple[tuple[str, ...], ...]
    download: Download
    segments: int = 0
    records: tuple[str, ...] = ()
    share: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Split:
    """One output: ``NAME/{name}.{field}``.

    Attributes:
        name: ``train``, ``valid``, ``test``, or a further set such as ``test_duc2004``.
        parts: what it is made of, in order.
        pairs: the least and the most pairs that the paper's number allows (rounded as it is printed); none where no
            number is known.
        optional: left out where none of its files is there.
        plain_copy: also written as it is distributed, under ``{name}_raw``, for detokenised BLEU.
    """

    name: str
    parts: tuple[Part, ...]
    pairs: tuple[int, int] | None = None
    optional: bool = False
    plain_copy: bool = False

    @property
    def is_training(self) -> bool:
        """Whether pairs may be left out of it; an evaluation set is kept whole."""
        return self.name == "train"


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Every ``every``-th pair of the training text, counted after cleaning, goes into the split ``name`` instead."""

    name: str
    every: int
    pairs: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TextProcessing:
    """What happens to every line, in this order; white space is collapsed before, unless nothing happens at all.

    Attributes:
        apostrophes: the typographic apostrophe becomes the plain one, in evaluation text only.
        comma_below: Romanian ş and ţ with cedilla become ș and ț with comma below.
        punctuation: Moses' punctuation normalisation, and control characters removed.
        tokens: ``"as-is"``; ``"moses"``: Moses tokens, Chinese segmented into words, special characters not escaped;
            ``"moses-dashes"``: besides, dashes inside words split (``@-@``).
        lowercase: lowercased.
        headline: as in the Gigaword distribution: lowercased, digits ``#``, unknown words ``UNK``.
    """

    apostrophes: bool = False
    comma_below: bool = False
    punctuation: bool = False
    tokens: Literal["as-is", "moses", "moses-dashes"] = "as-is"
    lowercase: bool = False
    headline: bool = False


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """Feature matrices beside the text, one ``{split}.{name}.npy`` of segments x regions x width; always optional.

    Attributes:
        name: what stands in the file names.
        regions: of an image.
        width: numbers in a region.
        splits: output split -> the name that the raw files use for it.
    """

    name: str
    regions: int
    width: int
    splits: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CorpusSpec:
    """A corpus of the papers.

    Attributes:
        name: the folder that it is prepared in, as recipes name it.
        title: what it is, in a line.
        papers: the papers that use it.
        fields: suffixes of the files; the target last.
        languages: the language of every field.
        splits: what is written.
        licence: terms of use.
        attribution: whom to name.
        form: what happens to the text.
        cleaning: which training pairs are left out before the hold-out counts them, besides those with an empty side.
        hold_out: what is taken out of the training text.
        features: feature matrices beside the text.
        suffix: of every text file, ``""`` or ``".xz"``.
        notes: what a user has to know, one paragraph each.
    """

    name: str
    title: str
    papers: tuple[str, ...]
    fields: tuple[str, ...]
    languages: tuple[str, ...]
    splits: tuple[Split, ...]
    licence: str
    attribution: str
    form: TextProcessing = TextProcessing()
    cleaning: FilterConfig = FilterConfig()
    hold_out: HoldOut | None = None
    features: FeatureSet | None = None
    suffix: Literal["", ".xz"] = ""
    notes: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The field that models produce."""
        return self.fields[-1]

    @property
    def outputs(self) -> tuple[tuple[str, tuple[int, int] | None], ...]:
        """Every split that is written, with the bounds of its pairs; the held-out one after ``train``."""
        found = []
        for split in self.splits:
            found.append((split.name, split.pairs))
            if split.is_training and self.hold_out:
                found.append((self.hold_out.name, self.hold_out.pairs))
        return tuple(found)

    @property
    def downloads(self) -> tuple[Download, ...]:
        """What a user fetches, in order of first use."""
        return tuple(dict.fromkeys(part.download for split in self.splits for part in split.parts))


def read_table(text: str) -> tuple[CorpusSpec, ...]:
    """The corpora of a table, in its order.

    Raises:
        ConfigError: a key is unknown, missing or ill-typed, or a corpus is not whole.
    """
    table = tomllib.loads(text)
    entries: dict[str, dict[str, Any]] = {}
    for name, own in table["corpora"].items():
        entries[name] = merged(entries.get(own.pop("base", ""), {}), own)
    return tuple(_corpus(name, deepcopy(entry), table["downloads"]) for name, entry in entries.items())


def _corpus(name: str, entry: dict[str, Any], downloads: Mapping[str, Any]) -> CorpusSpec:
    fields = entry["fields"]
    parts = {part: _part(keys, fields, downloads) for part, keys in entry.pop("parts").items()}
    splits = [
        {**keys, "name": split, "parts": [parts[part] for part in keys["parts"]]}
        for split, keys in entry["splits"].items()
    ]
    return load_dataclass(CorpusSpec, {"languages": fields, **entry, "name": name, "splits": splits}, f"corpus {name}")


def _part(keys: dict[str, Any], fields: list[str], downloads: Mapping[str, Any]) -> dict[str, Any]:
    """A part with the names of its files, column by column, and with its download."""
    names, columns = keys.pop("names", ()), keys.pop("columns", ())
    kinds = dict.fromkeys(fields, "src") | {fields[-1]: "ref"}
    files = [[column] for column in columns] or [
        [name.format(field=field, fields=fields, kind=kind) for name in names] for field, kind in kinds.items()
    ]
    return {**keys, "files": files, "download": downloads[keys["download"]]}


CORPORA = read_table(TABLE.read_text(encoding="utf-8"))


def find_corpus(name: str) -> CorpusSpec:
    """The corpus of that name.

    Raises:
        ConfigError: there is none; the message lists the names.
    """
    for corpus in CORPORA:
        if corpus.name == name:
            return corpus
    raise ConfigError(f"no corpus is called {name!r}; known are {', '.join(corpus.name for corpus in CORPORA)}")
