"""`tandem compare`: several bundles on one test set, in one table."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from deploy.evaluation.decoding import Decoding
from deploy.evaluation.systems import (
    UNEDITED,
    SourceFiles,
    System,
    decode_system,
    load_systems,
    read_tests,
)
from deploy.outputs import check_file, check_folder
from deploy.report import cell, console, say, table
from models.command import AsJson, command_line
from models.errors import ConfigError
from models.folders import write_text
from training.quality.metrics import corpus_metrics
from training.quality.significance import DRAWS, Counts


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

    def rows(self) -> list[dict[str, object]]:
        """A row for each system, by the columns' titles."""
        return [
            {
                "system": system.name,
                **{
                    title: text
                    for score in system.scores
                    for title, text in ((score.metric, score.shown), (f"p ({score.metric})", score.p_shown))
                },
                "parameters": system.parameters,
                "training tokens/s": system.training_speed,
                "sentences/s": system.decoding_speed,
            }
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
        head, *_ = rows = self.rows()
        lines = [head, ["---", *["--:"] * (len(head) - 1)], *(map(cell, row.values()) for row in rows)]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        notes = "\n".join(f"- {note}" for note in self.notes())
        return f"{table}\n\n{notes}\n\nMade with:\n\n    {command_line()}\n"

    def mapping(self) -> dict[str, object]:
        """Its plain form, without the output."""
        systems = {system.name: system.mapping() for system in self.systems}
        return {"systems": systems, "baseline": self.baseline, "setting": self.setting}

    def show(self) -> None:
        rows = self.rows()
        console().print(table(self.setting, {title: title for title in rows[0]}, rows))
        say(*self.notes()[1:])


def compare(
    paths: Annotated[list[Path], typer.Argument(metavar="BUNDLE...", help="Bundle folders.")],
    sources: Annotated[
        list[str],
        typer.Option("--source", metavar="[LANGUAGE=]FILE", help="Source text, one segment a line, for each language."),
    ],
    references: Annotated[
        list[Path],
        typer.Option("--references", help="Reference text, parallel to the sources; several times for several."),
    ],
    decoding: Decoding,
    baseline: Annotated[
        str | None, typer.Option(help="Name of the system that the others are tested against. [the first]")
    ] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Folder to keep every system's output in.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table as Markdown; - is standard output.")] = None,
    as_json: AsJson = False,
) -> None:
    """Decode one test set with several bundles: scores, whether they differ, parameters, speeds.

    Every bundle takes the sources of its languages out of those given, so that one that reads German can stand beside
    one that reads German, French and Czech. The sources of post-editing may also be called src and mt; leaving the
    translation as it is then is a system of its own, and the baseline. Files without a language go to the bundles'
    sources in order.

    Example: tandem compare bundles/a bundles/b --source de=test.de --source fr=test.fr --references test.en
    """
    check_folder(hypotheses, "--hypotheses")
    check_file(markdown, "--markdown")
    files = SourceFiles.parse(sources)
    bundles = load_systems(paths, decoding.target, files.languages)
    columns, (gold, *further) = read_tests(bundles, files, references, decoding.limit)
    manifest = next(iter(bundles.values())).manifest
    task, language = manifest.task, manifest.target_language
    systems = [UNEDITED, *bundles] if task == "postedit" else list(bundles)
    chosen = systems[0] if baseline is None else baseline
    if chosen not in systems:
        raise ConfigError(f"--baseline must be one of {', '.join(systems)}, but is {chosen!r}")
    unscored = [System(UNEDITED, list(next(iter(columns.values()))[-1]))] if task == "postedit" else []
    unscored += [decode_system(name, bundle, columns[name], decoding) for name, bundle in bundles.items()]
    texts = {system.name: system.texts for system in unscored}
    scores = Counts(corpus_metrics(task, language), texts, gold, further).compare(chosen)
    scored = tuple(replace(system, scores=tuple(scores[system.name])) for system in unscored)
    comparison = Comparison(scored, chosen, decoding.setting(len(gold), decoding.beam_size))
    if hypotheses is not None:
        for system in comparison.systems:
            path = hypotheses / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', system.name)}.txt"
            write_text(path, "".join(f"{text}\n" for text in system.texts))
    to_output = str(markdown) == "-"
    if markdown is not None and not to_output:
        write_text(markdown, comparison.markdown())
    if as_json:
        print(json.dumps(comparison.mapping(), indent=1, ensure_ascii=False))
    elif to_output:
        print(comparison.markdown(), end="")
    else:
        comparison.show()
