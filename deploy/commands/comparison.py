"""`tandem compare`: several bundles on one test set, in one table."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deploy.commands.description import bundle_parameters
from deploy.commands.evaluation import Decoding, decode_lines
from deploy.commands.outputs import check_file, check_folder
from models.bundle import Bundle, Manifest
from models.errors import ConfigError
from models.translator import Column
from training.data.corpus import read_parallel
from training.data.features import read_columns
from training.significance import DRAWS, ComparedScore, compare_systems

UNEDITED = "as it is"
"""The row of post-editing that leaves every translation as it is."""

TRANSLATION, ORIGINAL = "mt", "src"
"""What the sources of post-editing may be called instead of by their languages."""

_NAMED = re.compile(r"([a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sources:
    """Source files, each for one language, or all of them without one.

    Attributes:
        languages: of each file, or its role in post-editing; empty where files stand in the order of the bundles'
            sources.
        paths: the files.
    """

    languages: tuple[str, ...]
    paths: tuple[Path, ...]

    @classmethod
    def parse(cls, given: Sequence[str]) -> Sources:
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
    """One row of the table.

    Attributes:
        name: of the bundle, or of what needs none.
        texts: its output.
        parameters: of the model, as `tandem describe` counts them; None where there is no model.
        training_speed: target tokens a second; None where the bundle does not say.
        decoding_speed: segments a second, loading not counted.
        scores: in the order of the metrics.
    """

    name: str
    texts: list[str] = field(repr=False)
    parameters: int | None = None
    training_speed: float | None = None
    decoding_speed: float | None = None
    scores: tuple[ComparedScore, ...] = ()

    def mapping(self) -> dict[str, object]:
        """Its plain form, without the output."""
        numbers = {"parameters": self.parameters, "training_tokens_per_s": self.training_speed}
        return {
            "scores": [asdict(score) for score in self.scores],
            **numbers,
            "segments_per_s": self.decoding_speed,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is printed.

    Attributes:
        systems: the rows.
        baseline: the name of the system that the others are compared with.
        setting: how was decoded, in words.
    """

    systems: tuple[System, ...]
    baseline: str
    setting: str

    def head(self) -> list[str]:
        """The column titles."""
        metrics = [title for score in self.systems[0].scores for title in _titles(score)]
        return ["system", *metrics, "parameters", "training tokens/s", "sentences/s"]

    def rows(self) -> list[list[str]]:
        """The cells."""
        return [
            [
                system.name,
                *(cell for score in system.scores for cell in _cells(score)),
                _number(system.parameters, ",d"),
                _number(system.training_speed, ",.0f"),
                _number(system.decoding_speed, ",.1f"),
            ]
            for system in self.systems
        ]

    def notes(self) -> list[str]:
        """What the numbers mean."""
        scores = self.systems[0].scores
        lines = [f"{self.setting}."]
        if any(score.interval is not None for score in scores):
            test = f'paired bootstrap against "{self.baseline}", {DRAWS:,} draws'
            lines.append(f"±: half of the 95% bootstrap interval. p: {test}.")
        return [*lines, *(f"{score.metric}: {score.signature}" for score in scores)]

    def markdown(self) -> str:
        """The table, its notes and the command that makes it again."""
        head = self.head()
        lines = [head, ["---", *["--:"] * (len(head) - 1)], *self.rows()]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        notes = "\n".join(f"- {note}" for note in self.notes())
        command = shlex.join(["tandem", *sys.argv[1:]])
        return f"{table}\n\n{notes}\n\nMade with:\n\n    {command}\n"


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go.

    Attributes:
        hypotheses: folder for every system's output, one file each; None to keep none.
        markdown: file for the table, ``-`` for standard output; None for none.
        as_json: print JSON instead of the table.
    """

    hypotheses: Path | None
    markdown: Path | None
    as_json: bool


def compare_command(
    paths: Sequence[Path],
    sources: Sequence[str],
    references: Path,
    baseline: str | None,
    decoding: Decoding,
    output: Output,
) -> None:
    """Decode one test set with every bundle and print how they compare."""
    check_folder(output.hypotheses, "--hypotheses")
    check_file(output.markdown, "--markdown")
    bundles = _load(paths)
    files = Sources.parse(sources)
    reads = {name: files.of(bundle.manifest) for name, bundle in bundles.items()}
    task = next(iter(bundles.values())).manifest.task
    systems = [UNEDITED, *bundles] if task == "postedit" else list(bundles)
    chosen = systems[0] if baseline is None else baseline
    if chosen not in systems:
        raise ConfigError(f"--baseline must be one of {', '.join(systems)}, but is {chosen!r}")
    unscored = []
    if task == "postedit":
        translation, _ = read_parallel([files.paths[_same_translation(reads)], references])
        unscored.append(System(UNEDITED, translation[: decoding.limit]))
    for name, bundle in bundles.items():
        own = [files.paths[index] for index in reads[name]]
        *columns, gold = (c[: decoding.limit] for c in read_columns([*own, references], bundle.feature_widths))
        unscored.append(_decode(name, bundle, columns, decoding))
    scores = compare_systems(task, {system.name: system.texts for system in unscored}, gold, baseline=chosen)
    scored = tuple(replace(system, scores=tuple(scores[system.name])) for system in unscored)
    beam = "the bundles' own beam sizes" if decoding.beam_size is None else f"beam {decoding.beam_size}"
    threads = f"{decoding.threads} thread{'s' if decoding.threads > 1 else ''}"
    precision = decoding.precision if decoding.runtime == "onnx" else "float32"
    setting = f"{len(gold):,} segments, {decoding.runtime} {precision}, {beam}, {threads}"
    _print(Comparison(scored, chosen, setting), output)


def _load(paths: Sequence[Path]) -> dict[str, Bundle]:
    """The bundles by name, or by folder where several have one name.

    Raises:
        ConfigError: they cannot be compared.
    """
    loaded = [Bundle.load(path) for path in paths]
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


def _same_translation(reads: Mapping[str, Sequence[int]]) -> int:
    """Which file holds the translation that all bundles edit: each has it as its last source.

    Raises:
        ConfigError: they edit different ones.
    """
    edited = {name: chosen[-1] for name, chosen in reads.items()}
    if len(set(edited.values())) > 1:
        raise ConfigError(f"the bundles must edit the same translation, but read it from files {edited}")
    return next(iter(edited.values()))


def _decode(name: str, bundle: Bundle, columns: Sequence[Column], decoding: Decoding) -> System:
    graphs, options = decoding.prepare(bundle)
    decode_lines(bundle, graphs, options, [column[:4] for column in columns])  # what only the first sentences cost
    started = time.perf_counter()
    texts = decode_lines(bundle, graphs, options, columns)
    seconds = time.perf_counter() - started
    training = bundle.manifest.training
    speed = round(training.target_tokens / training.seconds, 1) if training.seconds else None
    return System(name, texts, bundle_parameters(bundle.manifest), speed, round(len(texts) / seconds, 2))


def _print(comparison: Comparison, output: Output) -> None:
    if output.hypotheses is not None:
        for system in comparison.systems:
            path = output.hypotheses / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', system.name)}.txt"
            path.write_text("".join(f"{text}\n" for text in system.texts), encoding="utf-8")
    if output.markdown is not None and str(output.markdown) != "-":
        output.markdown.write_text(comparison.markdown(), encoding="utf-8")
    if output.as_json:
        systems = {system.name: system.mapping() for system in comparison.systems}
        found = {"systems": systems, "baseline": comparison.baseline, "setting": comparison.setting}
        print(json.dumps(found, indent=1, ensure_ascii=False))
    elif output.markdown is not None and str(output.markdown) == "-":
        print(comparison.markdown(), end="")
    else:
        console = Console()
        table = Table(title=comparison.setting)
        for index, title in enumerate(comparison.head()):
            table.add_column(title, justify="right" if index else "left")
        for row in comparison.rows():
            table.add_row(*row)
        console.print(table)
        for note in comparison.notes()[1:]:
            console.print(note, highlight=False, markup=False)


def _titles(score: ComparedScore) -> list[str]:
    return [score.metric] if score.interval is None else [score.metric, f"p ({score.metric})"]


def _cells(score: ComparedScore) -> list[str]:
    if score.interval is None:
        return [f"{score.value:.2f}"]
    p_value = "–" if score.p_value is None else "< 0.001" if score.p_value < 0.001 else f"{score.p_value:.3f}"
    return [f"{score.value:.2f} ± {score.interval:.2f}", p_value]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
