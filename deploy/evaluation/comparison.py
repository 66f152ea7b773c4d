"""`tandem compare`: several bundles on one test set, in one table."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from deploy.commands.outputs import check_file, check_folder
from deploy.evaluation.decoding import Decoding
from deploy.evaluation.systems import (
    UNEDITED,
    Sources,
    System,
    decode_system,
    load_systems,
    read_test,
    same_translation,
)
from deploy.report import console as report_console
from models.errors import ConfigError
from training.data.corpus import read_parallel
from training.significance import DRAWS, compare_systems


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
        metrics = [title for score in self.systems[0].scores for title in (score.metric, f"p ({score.metric})")]
        return ["system", *metrics, "parameters", "training tokens/s", "sentences/s"]

    def rows(self) -> list[list[str]]:
        """The cells."""
        return [
            [
                system.name,
                *(cell for score in system.scores for cell in (score.shown, score.p_shown)),
                _number(system.parameters, ",d"),
                _number(system.training_speed, ",.0f"),
                _number(system.decoding_speed, ",.1f"),
            ]
            for system in self.systems
        ]

    def notes(self) -> list[str]:
        """What the numbers mean."""
        scores = self.systems[0].scores
        test = f'paired bootstrap against "{self.baseline}", {DRAWS:,} draws'
        lines = [f"{self.setting}.", f"±: half of the 95% bootstrap interval. p: {test}."]
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
    bundles = load_systems(paths, decoding.target)
    files = Sources.parse(sources)
    reads = {name: files.of(bundle.manifest) for name, bundle in bundles.items()}
    task = next(iter(bundles.values())).manifest.task
    systems = [UNEDITED, *bundles] if task == "postedit" else list(bundles)
    chosen = systems[0] if baseline is None else baseline
    if chosen not in systems:
        raise ConfigError(f"--baseline must be one of {', '.join(systems)}, but is {chosen!r}")
    unscored = []
    if task == "postedit":
        translation, _ = read_parallel([files.paths[same_translation(reads)], references])
        unscored.append(System(UNEDITED, translation[: decoding.limit]))
    for name, bundle in bundles.items():
        columns, gold = read_test(bundle, files, references, decoding.limit)
        unscored.append(decode_system(name, bundle, columns, decoding))
    scores = compare_systems(task, {system.name: system.texts for system in unscored}, gold, baseline=chosen)
    scored = tuple(replace(system, scores=tuple(scores[system.name])) for system in unscored)
    setting = decoding.setting(len(gold), decoding.beam_size)
    _print(Comparison(scored, chosen, setting), output)


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
        console = report_console()
        table = Table(title=comparison.setting)
        for index, title in enumerate(comparison.head()):
            table.add_column(title, justify="right" if index else "left")
        for row in comparison.rows():
            table.add_row(*row)
        console.print(table)
        for note in comparison.notes()[1:]:
            console.print(note, highlight=False, markup=False)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
