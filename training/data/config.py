"""What a recipe says about its data; every field is documented, since the reference is generated from here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tandem.models.config import bounded
from tandem.models.errors import ConfigError

SPLITS = ("train", "valid", "test")
FEATURES = ".npy"  # the end of a source's path that says that it is no text
NO_LANGUAGE = "zxx"  # ISO 639: no linguistic content


@dataclass(frozen=True, slots=True)
class CorpusConfig:
    """One parallel corpus and the terms it comes under.

    Attributes:
        name: short unique name; the evaluation text of the corpus lies under it.
        source: one path template per source, relative to the data root, with ``{split}`` in it; plain, ``.gz`` or
            ``.xz``, UTF-8, one segment a line. A path that ends in ``.npy`` is a source of feature vectors instead,
            float16 or float32: an array N x S x D, S vectors for each of N segments, or N x D, one for each. It is not
            copied, so it has to stay there, and its vectors do not count as tokens; its language is ``"zxx"``.
        target: the path template of the target side.
        licence: licence or terms of use, as it is to appear in the manifest of a bundle.
        attribution: whom to name, as it is to appear in the manifest.
        repeat: how often every training pair is used in an epoch; above 1 oversamples a small corpus.
        share: the share of the training pairs that is used at all, drawn at random: a large corpus beside small ones
            need not drown them. With ``both_ways`` the same pairs are used in both directions.
        url: where the corpus comes from.
        splits: the splits the corpus has, out of train, valid and test.
        test_split: what stands for ``{split}`` in the names of the test files (``"test_2016_flickr"``).
        valid_split: what stands for ``{split}`` in the names of the validation files.
        languages: the languages of its source and target where they are not the recipe's, as in ``["fr", "en"]``; needs
            ``tagged``.
        both_ways: also use it from target to source (with ``tagged``): each pair is then two.
        back_translated: its sources were made by a model (``tandem backtranslate``): they begin with a tag that says so
            (Caswell et al. 2019), which real text never has. Such a corpus has the split train only.
    """

    name: str
    source: tuple[str, ...]
    target: str
    licence: str
    attribution: str
    repeat: int = bounded(1, at_least=1)
    share: float = 1.0
    url: str = ""
    splits: tuple[str, ...] = SPLITS
    test_split: str = "test"
    valid_split: str = "valid"
    languages: tuple[str, ...] = ()
    both_ways: bool = False
    back_translated: bool = False

    def __post_init__(self) -> None:
        where = f"corpus {self.name!r}"
        if not re.fullmatch(r"[\w.-]+", self.name) or self.name.startswith("."):
            raise ConfigError(f"{where}: name must be made of letters, digits, '.', '_' and '-'")
        if not self.source:
            raise ConfigError(f"{where}: source must name at least one file")
        for template in (*self.source, self.target):
            if "{split}" not in template:
                raise ConfigError(f"{where}: {template!r} must contain {{split}}")
        if self.target.endswith(FEATURES):
            raise ConfigError(f"{where}: target must be text, but is {self.target!r}")
        if not 0 < self.share <= 1:
            raise ConfigError(f"{where}: share must be above 0 and at most 1, but is {self.share}")
        unknown = [split for split in self.splits if split not in SPLITS]
        if unknown or not self.splits:
            raise ConfigError(f"{where}: splits must be some of {', '.join(SPLITS)}, but are {list(self.splits)}")
        if self.languages and len(self.languages) != len(self.source) + 1:
            raise ConfigError(f"{where}: languages must be one per source and the target's: {list(self.languages)}")
        if self.back_translated and (self.splits != ("train",) or self.both_ways):
            raise ConfigError(f"{where}: back_translated needs splits = ['train'] and no both_ways: it is no evidence")

    @property
    def feature_sources(self) -> tuple[bool, ...]:
        """For each source whether it is feature vectors."""
        return tuple(template.endswith(FEATURES) for template in self.source)

    def paths(self, split: str) -> tuple[str, ...]:
        """The files of one split relative to the data root: the sources in order, then the target."""
        name = {"test": self.test_split, "valid": self.valid_split}.get(split, split)
        return tuple(template.replace("{split}", name) for template in (*self.source, self.target))


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """Which pairs are left out; words are separated by white space.

    Attributes:
        max_source_words: longest source in words; none if absent.
        max_target_words: longest target in words; none if absent.
        max_length_ratio: the longer side over the shorter, in words; none if absent.
        exclude_pattern: regular expression; a pair with a match on any side is left out.
        deduplicate: keep the first of equal training pairs, and no training pair that is also in valid or test.
        evaluation: also apply the limits and the pattern (never deduplication) to valid and test. Off, every
            evaluation pair is kept; on, the recipe is for a narrower task, and its scores are for that task.
    """

    max_source_words: int | None = bounded(None, at_least=1)
    max_target_words: int | None = bounded(None, at_least=1)
    max_length_ratio: float | None = bounded(None, at_least=1.0)
    exclude_pattern: str = ""
    deduplicate: bool = True
    evaluation: bool = False

    def __post_init__(self) -> None:
        try:
            re.compile(self.exclude_pattern)
        except re.error as error:
            raise ConfigError(f"filters: exclude_pattern {self.exclude_pattern!r} is no expression: {error}") from error


@dataclass(frozen=True, slots=True)
class NoiseConfig:
    """What is done to some training sources, anew in every epoch, so that a model is used to untidy text.

    Each kind is drawn by itself, so that one source may get several. Targets stay as they are. Text with typos and in
    lower case in training: Belinkov & Bisk (2018), "Synthetic and Natural Noise Both Break Neural Machine Translation",
    section 6.

    Attributes:
        lower_case: share of the sources written in lower case.
        no_punctuation: share of the sources without punctuation marks, but for those inside words and numbers.
        typos: share of the sources with typing errors: letters swapped, left out, doubled or hit beside.
        typo_rate: share of the words of such a source with an error, at least one.
    """

    lower_case: float = bounded(0.0, at_least=0.0, at_most=1.0)
    no_punctuation: float = bounded(0.0, at_least=0.0, at_most=1.0)
    typos: float = bounded(0.0, at_least=0.0, at_most=1.0)
    typo_rate: float = bounded(0.08, at_least=0.0, at_most=1.0)

    def __bool__(self) -> bool:
        return bool(self.lower_case or self.no_punctuation or self.typos)


@dataclass(frozen=True, slots=True)
class AugmentationConfig:
    """What is done to both sides of some training pairs, anew in every epoch, so that a model copies and keeps form.

    Each kind is drawn by itself, so that one pair may get several. Needs one source, of text.

    Attributes:
        substitutes: share of the pairs in which a number or name that both sides have becomes something else that must
            be copied: numbers of up to 20 digits, dates, identifiers, addresses, hashes, placeholders of programs.
        names: share of the names so replaced that get a name of a person or place, in Latin script mostly. Above 0
            needs Faker, whose lists they are (the extra ``train`` has it).
        borders: share of the pairs that get quotation marks, brackets, tags or emphasis around them, a number, bullet,
            key or time in front, or a reference, sign or emoji behind.
        joins: share of the pairs that become the first entry of a menu, path or row: short pairs joined by signs.
        capitals: share of the pairs in capitals, with capitalised words, or with a capital at the beginning.
        ends: share of the pairs that lose their final stop or get another mark, on both sides.
        spelt: share of the sources in which one piece is spelt in bytes, so that a model reads what no piece has.
    """

    substitutes: float = bounded(0.0, at_least=0.0, at_most=1.0)
    names: float = bounded(0.0, at_least=0.0, at_most=1.0)
    borders: float = bounded(0.0, at_least=0.0, at_most=1.0)
    joins: float = bounded(0.0, at_least=0.0, at_most=1.0)
    capitals: float = bounded(0.0, at_least=0.0, at_most=1.0)
    ends: float = bounded(0.0, at_least=0.0, at_most=1.0)
    spelt: float = bounded(0.0, at_least=0.0, at_most=1.0)

    def __bool__(self) -> bool:
        return self.on_pairs or bool(self.spelt)

    @property
    def on_pairs(self) -> bool:
        """Whether the text of pairs is changed."""
        return bool(self.substitutes or self.borders or self.joins or self.capitals or self.ends)


@dataclass(frozen=True, slots=True)
class VocabularyConfig:
    """How the vocabularies are trained.

    Attributes:
        kind: ``"sentencepiece"`` (subwords, nothing is unknown) or ``"word"`` (white-space words, the rest unknown).
        size: entries of each vocabulary, special ones included.
        target_size: entries of the target vocabulary where they are not ``size`` (0 = they are; not if joint).
        joint: one vocabulary for all sources and the target instead of one each.
        model_type: the subword algorithm, ``"bpe"`` or ``"unigram"``; word vocabularies ignore it.
        alphabets: sets of characters that are pieces even where the text hardly has them, so that a model copies them
            instead of spelling them in bytes: some of ``"ascii"``, ``"latin"``, ``"greek"``, ``"cyrillic"`` and
            ``"signs"`` (typography, currencies, mathematics, bullets, arrows). Word vocabularies ignore them.
        model: a sentencepiece model of your own instead of one that is trained, a path like those of corpora: for all
            sides, or for the sources where not joint. It decides size and algorithm, must have byte fallback and pad,
            unk, bos and eos as 0, 1, 2 and 3, and should have ``⟨ph0⟩`` to ``⟨ph15⟩`` as user defined symbols.
        target_model: the target's, where not joint.
    """

    kind: Literal["sentencepiece", "word"] = "sentencepiece"
    size: int = bounded(8000, at_least=8)
    target_size: int = 0
    joint: bool = True
    model_type: Literal["bpe", "unigram"] = "bpe"
    alphabets: tuple[Literal["ascii", "latin", "greek", "cyrillic", "signs"], ...] = ()
    model: str = ""
    target_model: str = ""

    def __post_init__(self) -> None:
        if self.target_size < 8 and self.target_size:
            raise ConfigError(f"vocabulary: target_size must be at least 8, but is {self.target_size}")
        if self.joint and self.target_size not in (0, self.size):
            raise ConfigError("vocabulary: target_size needs joint = false")
        if self.model and self.kind != "sentencepiece":
            raise ConfigError(f"vocabulary: model needs kind = 'sentencepiece', but it is {self.kind!r}")
        if bool(self.target_model) != (bool(self.model) and not self.joint):
            raise ConfigError(
                "vocabulary: with joint = false model and target_model go together, else model is for all"
            )

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are given: of the sources, and of the target; none where they are trained."""
        return (self.model, self.target_model or self.model) if self.model else ()


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Everything a recipe says about its data.

    Attributes:
        corpora: the corpora, used together.
        filters: which pairs are left out.
        vocabulary: how the vocabularies are trained.
        max_source_tokens: longest source in tokens, the end-of-sequence token included.
        max_target_tokens: longest target in tokens, the end-of-sequence token included.
        truncate_source: cut a longer source at the limit (summarization) instead of dropping the pair. The
            evaluation text is kept whole either way.
        placeholder_share: the share of training pairs in which spans copied on both sides become placeholders.
        join_share: the share of training items that are several random pairs joined into one, so that a model
            trained on short segments has seen long ones.
        join_most: the most pairs in a joined item.
        copy_share: the share of training items whose target is a random span of their source, under a start symbol of
            its own: teaches copying, which summaries live on, long before titles alone would.
        target_form: ``"text"``, or ``"edits"`` for post-editing: the target is written as the edits (keep, delete, or a
            token to insert) that lead to it from the last source, which is the machine translation. Needs a joint
            vocabulary.
        keep_unknown: where text is decoded, leave unknown words of ``kind = "word"`` as they are instead of replacing
            them by what the model attends to (a word's translation in the aligned dictionary, or the word itself). It
            is the bundle's default; no weight depends on it.
        tagged: one model for several directions: every source begins with the tag of the language that it is to be
            translated into (Johnson et al. 2017), and corpora may have ``both_ways`` and ``languages``. Needs one
            source and a joint sentencepiece vocabulary.
        bpe_dropout_source: the probability that a merge of a source's subwords is left out (BPE dropout, Provilkov et
            al. 2020): another segmentation in every epoch. Only in training, and only for ``model_type = "bpe"``.
            Sequences get longer, by about a quarter at 0.1 and half as much at 0.05.
        bpe_dropout_target: the same for the targets.
        noise: lower case, missing punctuation and typing errors in some training sources.
        augmentation: things to copy, surroundings and other forms in some training pairs.
        rewriting_from: the epoch, counted from 0, that noise, augmentation and BPE dropout begin with. Noise and
            dropout cost least when they come late (docs/results.md).
    """

    corpora: tuple[CorpusConfig, ...]
    filters: FilterConfig = FilterConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()
    max_source_tokens: int = bounded(256, at_least=2)
    max_target_tokens: int = bounded(256, at_least=2)
    truncate_source: bool = False
    placeholder_share: float = bounded(0.05, at_least=0.0, at_most=1.0)
    join_share: float = bounded(0.0, at_least=0.0, at_most=1.0)
    join_most: int = bounded(4, at_least=2)
    copy_share: float = bounded(0.0, at_least=0.0, at_most=1.0)
    target_form: Literal["text", "edits"] = "text"
    keep_unknown: bool = False
    tagged: bool = False
    bpe_dropout_source: float = bounded(0.0, at_least=0.0, at_most=0.9)
    bpe_dropout_target: float = bounded(0.0, at_least=0.0, at_most=0.9)
    noise: NoiseConfig = NoiseConfig()
    augmentation: AugmentationConfig = AugmentationConfig()
    rewriting_from: int = bounded(0, at_least=0)

    def __post_init__(self) -> None:
        names = [corpus.name for corpus in self.corpora]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"data: corpora must be at least one, each with its own name, but are {names}")
        if len({len(corpus.source) for corpus in self.corpora}) > 1:
            raise ConfigError("data: every corpus must have the same number of sources")
        if not any("train" in corpus.splits for corpus in self.corpora):
            raise ConfigError("data: at least one corpus must have the split train")
        self._check_sources()
        self._check_tags()
        self._check_rewriting()
        if self.target_form == "edits":
            self._check_edits()

    @property
    def feature_sources(self) -> tuple[bool, ...]:
        """For each source whether it is feature vectors."""
        return self.corpora[0].feature_sources

    def _check_sources(self) -> None:
        """What several sources, and sources that are no text, exclude."""
        if len({corpus.feature_sources for corpus in self.corpora}) > 1:
            raise ConfigError("data: every corpus must have feature vectors in the same sources")
        if self.copy_share and len(self.feature_sources) > 1:
            raise ConfigError(f"data: copy_share must be 0 with several sources, but is {self.copy_share}")
        if any(self.feature_sources):
            for field in ("join_share", "copy_share"):
                if getattr(self, field):
                    raise ConfigError(
                        f"data: {field} must be 0 with a source of feature vectors, which cannot be joined or copied,"
                        f" but is {getattr(self, field)}"
                    )

    def _check_tags(self) -> None:
        """What tags before a source exclude, and what only they allow."""
        marked = self.tagged or any(corpus.back_translated for corpus in self.corpora)
        if not self.tagged:
            for corpus in self.corpora:
                if corpus.both_ways or corpus.languages:
                    raise ConfigError(f"data: corpus {corpus.name!r}: both_ways and languages need tagged = true")
        faults = [] if len(self.feature_sources) == 1 and not self.feature_sources[0] else ["one source, of text"]
        faults += [] if self.vocabulary.kind == "sentencepiece" else ["vocabulary kind = 'sentencepiece'"]
        faults += [] if self.vocabulary.joint or not self.tagged else ["vocabulary joint = true"]
        faults += [] if self.target_form == "text" else ["target_form = 'text'"]
        if marked and faults:
            raise ConfigError(f"data: tagged and back_translated need {', '.join(faults)}")

    @property
    def rewrites(self) -> bool:
        """Whether training text is rewritten in some epoch: noise, augmentation, or BPE dropout."""
        return bool(self.bpe_dropout_source or self.bpe_dropout_target or self.noise or self.augmentation)

    def _check_rewriting(self) -> None:
        """What rewriting the text in training excludes."""
        for field in ("bpe_dropout_source", "bpe_dropout_target", "noise", "augmentation"):
            value = getattr(self, field)
            faults = [] if self.vocabulary.kind == "sentencepiece" else ["vocabulary kind = 'sentencepiece'"]
            faults += [] if self.target_form == "text" else ["target_form = 'text'"]
            if field.startswith("bpe_") and self.vocabulary.model_type != "bpe":
                faults.append("model_type = 'bpe'")
            if field == "augmentation" and (len(self.feature_sources) > 1 or self.feature_sources[0]):
                faults.append("one source, of text")
            if value and faults:
                raise ConfigError(f"data: {field} needs {', '.join(faults)}")

    def _check_edits(self) -> None:
        """What edits exclude: they name every token of one translation, in the target's own vocabulary."""
        faults = [] if self.vocabulary.joint else ["vocabulary joint must be true"]
        faults += ["truncate_source must be false"] if self.truncate_source else []
        faults += ["the last source must be text"] if self.feature_sources[-1] else []
        faults += [f"copy_share must be 0, but is {self.copy_share}"] if self.copy_share else []  # spans are no edits
        if faults:
            raise ConfigError(f"data: with target_form = 'edits' {', '.join(faults)}")
