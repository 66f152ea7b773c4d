"""The options of `tandem translate`, `tandem distil` and `tandem backtranslate`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from models.command import (
    LARGEST_BEAM,
    BeamSize,
    BundleFolder,
    Precision,
    ReadLanguage,
    Runtime,
    RuntimeThreads,
    UsedRuntime,
    Workers,
    WrittenLanguage,
)


class BadLines(StrEnum):
    """What stands in the place of a line that cannot be translated."""

    keep = "keep"
    empty = "empty"


Synthesised = Annotated[Path, typer.Option(help="Folder of the new corpus, in the folder of the recipe's corpora.")]
LengthRatio = Annotated[
    float, typer.Option(min=1.0, help="A pair is dropped whose longer side has more than so many times the words.")
]


def translate(
    bundle: BundleFolder,
    sources: Annotated[
        list[Path] | None,
        typer.Option("--source", help="Text, one line after another (.gz, .xz, .bz2, plain); - is standard input."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write (also .gz, .xz, .bz2). [standard output]")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an earlier run of this command ended.")] = False,
    sentences: Annotated[
        bool | None,
        typer.Option(
            "--sentences/--segments",
            help="Split each line into sentences, or decode it as a whole. [sentences, where a bundle translates one"
            " text]",
        ),
    ] = None,
    language: ReadLanguage = "",
    target: WrittenLanguage = "",
    bad: Annotated[BadLines, typer.Option(help="What a line that cannot be translated becomes.")] = BadLines.keep,
    report: Annotated[
        Path | None, typer.Option(help="Where bad lines are told, as JSON lines. [OUT.report.jsonl]")
    ] = None,
    fail_on_bad: Annotated[bool, typer.Option("--fail-on-bad", help="Exit status 1 where a line is bad.")] = False,
    workers: Workers = 0,
    save_every: Annotated[float, typer.Option(min=0.0, help="Seconds until lines are on disk for good.")] = 10.0,
    max_line_bytes: Annotated[int, typer.Option(min=1, help="Longer lines are bad.")] = 1 << 20,
    runtime: UsedRuntime = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: RuntimeThreads = 1,
    shortlist: Annotated[bool, typer.Option("--shortlist", help="Only tokens of the bundle's shortlist.")] = False,
) -> None:
    """Translate (or summarize) files of any size line by line, without a server.

    Lines keep their order and number; a line that cannot be translated stays in its place and is told. docs/bulk.md
    explains the rest.

    Example: tandem translate bundles/de-en --source corpus.de.gz --out corpus.en.gz    |
    echo "Wo ist der Bahnhof?" | tandem translate bundles/de-en
    """
    from deploy.bulk import BulkOptions
    from deploy.bulk.command import run_command
    from deploy.bulk.run import Request
    from service.telemetry.cgroups import usable_cores

    options = BulkOptions(
        runtime.value, precision, beam_size, threads, shortlist, sentences, language, bad.value, target
    )
    request = Request((), None, report, resume, workers or usable_cores(), save_every, max_line_bytes)
    status = run_command(bundle, sources or [Path("-")], out, options, request, fail_on_bad=fail_on_bad)
    raise typer.Exit(status)


def distil(
    bundle: BundleFolder,
    sources: Annotated[
        list[Path],
        typer.Option("--source", help="Training text for the teacher, one segment a line (.xz, .gz, plain)."),
    ],
    out: Synthesised,
    references: Annotated[
        list[Path] | None, typer.Option("--references", help="What people wrote, one file for each --source.")
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=1, max=LARGEST_BEAM, help="Hypotheses of which that nearest to the reference is taken.")
    ] = 1,
    min_chrf: Annotated[
        float, typer.Option(min=0.0, max=100.0, help="Drop translations less like their reference than this chrF.")
    ] = 0.0,
    max_length_ratio: LengthRatio = 3.0,
    language: ReadLanguage = "",
    target: WrittenLanguage = "",
    workers: Workers = 0,
    runtime: UsedRuntime = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: RuntimeThreads = 1,
) -> None:
    """Have a teacher translate the training text, for a smaller model to learn from: a corpus that a recipe can name.

    Sequence-level knowledge distillation. What is translated is kept: the same command goes on where it was ended, and
    with other bounds translates nothing again. Prints the table for the recipe.

    Example: tandem distil bundles/teacher --source corpora/tatoeba-de-en/train.de.xz --references
    corpora/tatoeba-de-en/train.en.xz --out corpora/distilled-de-en
    """
    from deploy.bulk import BulkOptions
    from deploy.bulk.synthesis import Synthesis, run_command
    from service.telemetry.cgroups import usable_cores
    from training.synthetic import Sieve

    sieve = Sieve(max_length_ratio, min_chrf)
    cores = workers or usable_cores()
    wanted = Synthesis("distilled", tuple(sources), tuple(references or ()), out, sieve, cores)
    options = BulkOptions(runtime.value, precision, beam_size, threads, language=language, target=target)
    raise typer.Exit(run_command(bundle, wanted, replace(options, candidates=candidates)))


def backtranslate(
    bundle: BundleFolder,
    texts: Annotated[
        list[Path], typer.Option("--text", help="Text in the new model's target language, one segment a line.")
    ],
    out: Synthesised,
    max_length_ratio: LengthRatio = 3.0,
    language: ReadLanguage = "",
    target: WrittenLanguage = "",
    workers: Workers = 0,
    runtime: UsedRuntime = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: RuntimeThreads = 1,
) -> None:
    """Make sources for text of which only the target side exists, with a bundle of the other direction.

    The recipe's table, which is printed, says that the sources are no people's: they get a tag (Caswell et al. 2019).
    The same command goes on where it was ended.

    Example: tandem backtranslate bundles/en-de --text news.en.xz --out corpora/back-de-en
    """
    from deploy.bulk import BulkOptions
    from deploy.bulk.synthesis import Synthesis, run_command
    from service.telemetry.cgroups import usable_cores
    from training.synthetic import Sieve

    sieve = Sieve(max_length_ratio)
    wanted = Synthesis("back-translated", tuple(texts), (), out, sieve, workers or usable_cores())
    options = BulkOptions(runtime.value, precision, beam_size, threads, language=language, target=target)
    raise typer.Exit(run_command(bundle, wanted, options))
