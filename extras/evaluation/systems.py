"""Systems that are measured on one test set: which files each reads, what it writes, and how fast."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tandem.extras.evaluation.decoding import Decoding, timed_lines, translate_texts
from tandem.extras.evaluation.describe import bundle_parameters
from tandem.extras.shared.runtime import check_shortlist, directed, translates_text
from tandem.models.bundle import Bundle, Manifest
from tandem.models.errors import ConfigError
from tandem.models.translation.rendering import with_unknown_words
from tandem.models.translation.translator import Column
from tandem.service.ports import stage_readers
from tandem.training.data.features import read_columns

UNEDITED = "as it is"
"""The row of post-editing that leaves every translation as it is."""

TRANSLATION, ORIGINAL = "mt", "src"
"""What the sources of post-editing may be called instead of by their languages."""

_NAMED = re.compile(r"([a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Source files, each for one language, or all of them without one.

    Attributes:
        languages: of each file, or its role in post-editing; empty where files stand in the order of the bundles'
            sources.
        paths: the files.
    """

    languages: tuple[str, ...]
    paths: tuple[Path, ...]

    @classmethod
    def parse(cls, given: Sequence[str]) -> SourceFiles:
        """From ``--source`` values: ``FILE`` or ``LANGUAGE=FILE``.

        Raises:
            ConfigError: only some of them name a language.
        """
        named = [_NAMED.fullmatch(value) for value in given]
        if not any(named):
            return cls((), tuple(map(Path, given)))
        if not all(named):
            raise ConfigError("--source: either all or none may name a language (de=FILE)")
        pairs = [match.groups() for match in named if match]
        return cls(tuple(language for language, _ in pairs), tuple(Path(path) for _, path in pairs))

    def of(self, manifest: Manifest) -> tuple[int, ...]:
        """Which files a bundle reads, in its own order; of several of one language each is read once.

        Raises:
            ConfigError: a language is missing, or unnamed files are more or fewer than the bundle's sources.
        """
        wanted = manifest.source_languages
        count = len(manifest.vocabularies.features or manifest.vocabularies.sources)
        if not self.languages:
            if len(self.paths) != count:
                raise ConfigError(
                    f"{manifest.name} reads {count} source{'s' if count > 1 else ''} ({', '.join(wanted)}), but"
                    f" {len(self.paths)} files are given without a language: give as many, or name the language of"
                    f" each, --source {wanted[0]}=FILE"
                )
            return tuple(range(count))
        if count == 1 and len(wanted) > 1:  # one source, in any of these languages
            wanted = tuple(language for language in wanted if language in self.languages)[:1] or wanted[:1]
        roles = [ORIGINAL] * (count - 1) + [TRANSLATION] if manifest.task == "postedit" else wanted
        chosen: list[int] = []
        for names in zip(wanted, roles, strict=True):
            left = [index for index, one in enumerate(self.languages) if one in names and index not in chosen]
            if not left:
                raise ConfigError(
                    f"{manifest.name} reads {', '.join(manifest.source_languages)}, but --source is given for"
                    f" {', '.join(self.languages)}: add --source {names[0]}=FILE"
                )
            chosen.append(left[0])
        return tuple(chosen)


@dataclass(frozen=True, slots=True)
class System:
    """What one system wrote.

    Attributes:
        name: of the bundle, or of what needs none.
        texts: its output.
        parameters: of the model, as `tandem describe` counts them; None where there is no model.
        training_speed: target tokens a second; None where the bundle does not say.
        decoding_speed: segments a second, loading not counted.
        beam_size: that it was decoded with.
    """

    name: str
    texts: list[str] = field(repr=False)
    parameters: int | None = None
    training_speed: float | None = None
    decoding_speed: float | None = None
    beam_size: int | None = None

    def costs(self) -> dict[str, float | None]:
        """What it takes, by names with units."""
        return {
            "parameters": self.parameters,
            "training_tokens_per_s": self.training_speed,
            "segments_per_s": self.decoding_speed,
            "beam_size": self.beam_size,
        }


def load_systems(paths: Sequence[Path], target: str = "", languages: Sequence[str] = ()) -> dict[str, Bundle]:
    """The bundles by name, or by folder where several have one name.

    Args:
        paths: their folders.
        target: language to translate into, where one has several; empty for the first that fits ``languages``.
        languages: of the texts, where they are named.

    Raises:
        ConfigError: they cannot be compared, or one does not translate into that language.
    """
    loaded = [_directed(Bundle.load(path, readers=stage_readers()), target, languages) for path in paths]
    counts = Counter(bundle.manifest.name for bundle in loaded)
    names = [str(b.path) if counts[b.manifest.name] > 1 else b.manifest.name for b in loaded]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"every bundle is compared once, but {twice[0]} is given twice")
    for what in ("task", "target_language"):
        found = {name: getattr(bundle.manifest, what) for name, bundle in zip(names, loaded, strict=True)}
        if len(set(found.values())) > 1:
            told = ", ".join(f"{name}: {value}" for name, value in found.items())
            raise ConfigError(f"bundles are compared on one {what.replace('_', ' ')}, but have {told}")
    return dict(zip(names, loaded, strict=True))


def _directed(bundle: Bundle, target: str, languages: Sequence[str]) -> Bundle:
    read = (source for source, into in bundle.manifest.pairs if source in languages and target in ("", into))
    return directed(bundle, next(read, ""), target)


def read_tests(
    bundles: Mapping[str, Bundle], files: SourceFiles, references: Sequence[Path], limit: int | None
) -> tuple[dict[str, list[Column]], list[list[str]]]:
    """Each bundle's own sources out of the files, and the references, file by file; only the first segments where there
    is a limit.

    Of post-editing the last source is the translation that is edited: the same for all.

    Raises:
        ConfigError: a bundle reads other languages, or more or fewer files; they edit different translations.
        CorpusError: a file cannot be read, or is not parallel to the others.
    """
    reads = {name: files.of(bundle.manifest) for name, bundle in bundles.items()}
    edited = {name: chosen[-1] for name, chosen in reads.items() if bundles[name].manifest.task == "postedit"}
    if len(set(edited.values())) > 1:
        raise ConfigError(f"the bundles must edit the same translation, but read it from files {edited}")
    columns: dict[str, list[Column]] = {}
    for name, bundle in bundles.items():
        own = [files.paths[index] for index in reads[name]]
        read = [column[:limit] for column in read_columns([*own, *references], bundle.feature_widths)]
        columns[name], gold = read[: len(own)], [list(column) for column in read[len(own) :]]
    return columns, gold


def decode_system(
    name: str,
    bundle: Bundle,
    columns: Sequence[Column],
    decoding: Decoding,
    *,
    languages: Sequence[str] = (),
    with_shortlist: bool = False,
    channel: Bundle | None = None,
) -> System:
    """What a bundle writes, with the bundle's shortlist or a channel model where asked, and how fast.

    ``languages``: of the texts, where they are named.

    Raises:
        ConfigError: the bundle has no shortlist, or its graphs read none.
    """
    bundle = with_unknown_words(bundle, decoding.keep_unknown)
    graphs, options = decoding.prepare(bundle)
    shortlist = check_shortlist(bundle, graphs) if with_shortlist else None
    if translates_text(bundle) and not decoding.segments:
        known = bundle.manifest.source_languages
        source = next((one for one in known if one in languages), known[0])
        texts, decoding_speed = translate_texts(
            bundle, graphs, decoding, columns[0], source, shortlist=with_shortlist, channel=channel
        )
    else:
        texts, decoding_speed = timed_lines(bundle, graphs, options, columns, shortlist)
    training = bundle.manifest.training
    speed = round(training.target_tokens / training.seconds, 1) if training.seconds else None
    return System(name, texts, bundle_parameters(bundle.manifest), speed, decoding_speed, options.beam_size)
