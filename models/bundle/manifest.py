"""What a bundle says about itself: ``manifest.json`` as frozen dataclasses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import ConfigError, TandemError
from tandem.models.search.confidence import Confidence
from tandem.models.search.options import SearchOptions
from tandem.models.vocabulary import VocabularyKind

FORMAT = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(@[A-Za-z0-9][A-Za-z0-9._-]{0,49})?")


def check_name(name: str) -> None:
    """Raises ConfigError unless a bundle, and with it a recipe, may have that name."""
    if not NAME.fullmatch(name):
        shape = "letters, digits, '.', '_' and '-', at most 100, where wanted with '@' and a version of at most 50"
        raise ConfigError(f"name must be {shape}, but is {name!r}")


def name_like(text: str) -> str:
    """A name that a bundle may have, as like the text as that allows."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[-100:].lstrip("._-") or "unnamed"


@dataclass(frozen=True, slots=True)
class VocabularyFile:
    """A vocabulary's file in the bundle, and how to read it."""

    file: str
    kind: VocabularyKind = "sentencepiece"


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """One vocabulary per text source, and the target's; several may name the same file.

    ``features`` has for every source the width of its feature vectors, 0 for text; empty where every source is text.
    """

    sources: tuple[VocabularyFile, ...]
    target: VocabularyFile
    features: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        texts, wanted = self.features.count(0), len(self.sources)
        if self.features and (texts != wanted or min(self.features) < 0):
            raise ConfigError(f"features must have one 0 for each of the {wanted} text sources, but has {texts}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Longest source and target in tokens without EOS that the model was made for."""

    max_source_tokens: int
    max_target_tokens: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus the model was trained on, with the terms it came under."""

    name: str
    licence: str
    attribution: str
    url: str
    segments: int


@dataclass(frozen=True, slots=True)
class Training:
    """What the model was trained on and how: the recipe's values, updates, target tokens seen, and how long it took.

    Those of the bundle that it began from are counted in; the recipe is of the last part alone. ``seconds`` is
    wall-clock time, validation included; 0 where it was not kept.
    """

    corpora: tuple[Corpus, ...]
    recipe: dict[str, Any]
    updates: int
    target_tokens: int
    seconds: float = 0.0


SCRATCH = Training((), {}, 0, 0)
"""What a run from scratch had learnt before it began, and all that is known of a model that others trained."""


@dataclass(frozen=True, slots=True)
class Score:
    """One measured score with the command that measures it again."""

    metric: str
    value: float
    test_set: str
    signature: str
    command: str


@dataclass(frozen=True, slots=True)
class ImportedFrom:
    """Where the weights of a bundle come from that was not trained here.

    Attributes:
        form: of the files that it was made of, such as "Hugging Face MarianMT".
        url: where they can be had; empty where that was not said.
        files: SHA-256 of each by its name.
    """

    form: str
    url: str = ""
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a bundle says about itself.

    Attributes:
        name: names the bundle in URLs and folders; may end in a version, as in ``de-en@2``.
        source_languages, target_language: language codes; one source language per source, or those it accepts.
        pairs: source and target language of every direction, where the source begins with the tag of the language to
            translate into (``models.vocabulary.TaggedVocabulary``); those into ``target_language`` come first, and
            ``source_languages`` are theirs. Empty for bundles of one target language without tags.
        tags: of the pairs: "target" = the source begins with the tag of the language to translate into; "both" = the
            source begins with the tag of its own language, and the translation with that of its (M2M100, Fan et al.
            2021); the search is given the latter as its prefix.
        architecture, config: the registry's name and the architecture's own configuration.
        decoding: the defaults of the search.
        normalisation: of every text before it is encoded (``models.text.normalise``).
        proof: what the export measured against the training framework.
        licence: of the weights.
        about: what the model is for and where it fails; Markdown.
        target_form: whether the model writes text, or a script of edits (``models.vocabulary.edits``) on its last
            source.
        keep_unknown: whether unknown words of a vocabulary of words stay as they are, instead of being replaced by what
            the model attends to.
        dictionary: the file with translations of single words, for unknown ones (``models.vocabulary.dictionary``);
            empty = none.
        shortlist: the file that says which target tokens source words make likely (``models.search.shortlist``);
            empty = none.
        lexicon: the file that text stages read, such as one with translations of words and phrases; empty = none.
        stages: names of the text stages that a server is to put around the model, such as "rewriting", in order; a
            server without one of them leaves it out.
        characters_per_token: of a summarizer, what nine tenths of the texts that it was trained on have at least; one
            with fewer is written in other words than it knows. 0 = not measured.
        confidence: how sure it is of what it writes in ``target_language`` (`tandem calibrate`); None = not calibrated.
        further_confidence: likewise in the other languages that it writes, by their codes.
        origin: where it comes from, of bundles made of a public model; ``training`` is empty then.
        files: SHA-256 by relative path of every file but the manifest; filled in when a bundle is written.
        format: version of this layout.
    """

    name: str
    task: Literal["translate", "summarize", "postedit"]
    source_languages: tuple[str, ...]
    target_language: str
    architecture: str
    config: dict[str, Any]
    decoding: SearchOptions
    limits: Limits
    vocabularies: Vocabularies
    training: Training
    licence: str
    about: str = ""
    scores: tuple[Score, ...] = ()
    proof: dict[str, Any] = field(default_factory=dict)
    normalisation: Literal["nfc"] = "nfc"
    target_form: Literal["text", "edits"] = "text"
    keep_unknown: bool = False
    dictionary: str = ""
    shortlist: str = ""
    lexicon: str = ""
    stages: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    tags: Literal["target", "both"] = "target"
    characters_per_token: float = 0.0
    confidence: Confidence | None = None
    further_confidence: dict[str, Confidence] = field(default_factory=dict)
    origin: ImportedFrom | None = None
    files: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    def __post_init__(self) -> None:
        check_name(self.name)
        first = tuple(source for source, target in self.pairs if target == self.target_language)
        if self.pairs and (self.task != "translate" or first != self.source_languages or self.vocabularies.features):
            raise ConfigError(
                "pairs are for translators of one text, and source_languages must be those of the pairs into"
                f" {self.target_language!r}, {list(first)}, but are {list(self.source_languages)}"
            )

    @property
    def further_files(self) -> tuple[str, ...]:
        """Files that bundles need not have, and that this one says it has."""
        return tuple(filter(None, (self.dictionary, self.shortlist, self.lexicon)))

    def with_confidence(self, language: str, confidence: Confidence) -> Manifest:
        """The manifest with how sure the bundle is of what it writes in one of its languages."""
        if language == self.target_language:
            return replace(self, confidence=confidence)
        return replace(self, further_confidence=self.further_confidence | {language: confidence})

    def confidence_in(self, language: str) -> Confidence | None:
        """How sure the bundle is of what it writes in one of its languages."""
        return self.confidence if language == self.target_language else self.further_confidence.get(language)

    def to_json(self) -> str:
        """The content of ``manifest.json``."""
        return json.dumps(to_mapping(self), indent=1, ensure_ascii=False) + "\n"


def read_manifest(content: bytes, faults: list[str]) -> Manifest | None:
    """The manifest, or None with the reasons added to ``faults``."""
    try:
        mapping = json.loads(content)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        faults.append(f"manifest.json is not JSON: {error}")
        return None
    found = mapping.get("format") if isinstance(mapping, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        faults.append(f"manifest.json: format must be a whole number, at least 1, but is {found!r}")
        return None
    if found > FORMAT:
        faults.append(f"its format {found} is newer than {FORMAT}, the newest this version reads; update tandem")
        return None
    try:
        return load_dataclass(Manifest, mapping, "manifest.json")
    except TandemError as error:  # of the loader, or of the decoding options
        faults.append(str(error))
        return None
