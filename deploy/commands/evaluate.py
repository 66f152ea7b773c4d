"""The options of `tandem evaluate`, `tandem compare`, `tandem analyse` and `tandem robustness`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from models.command import (
    AsJson,
    BeamSize,
    BundleFolder,
    Limit,
    Precision,
    ReadLanguage,
    Runtime,
    RuntimeThreads,
    UsedRuntime,
    WrittenLanguage,
)


def evaluate(
    bundle: BundleFolder,
    sources: Annotated[
        list[str],
        typer.Option(
            "--source", metavar="[LANGUAGE=]FILE", help="Source text, one segment a line (.xz, .gz, plain), in order."
        ),
    ],
    references: Annotated[Path, typer.Option("--references", help="Reference text, parallel to the source.")],
    against: Annotated[
        Path | None, typer.Option(help="Another bundle, or a file of hypotheses: is the difference significant?")
    ] = None,
    runtime: UsedRuntime = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    limit: Limit = None,
    threads: RuntimeThreads = 1,
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokens already.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the bootstrap. [sacreBLEU's]")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the hypotheses to this file.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a report with examples.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="Segments of each kind in the report.")] = 20,
    heat_maps: Annotated[int, typer.Option(min=0, help="Segments there whose attention is drawn.")] = 3,
    record: Annotated[str, typer.Option(help="Store the scores in the manifest under this test set's name.")] = "",
    shortlist: Annotated[bool, typer.Option("--shortlist", help="Also with the bundle's shortlist.")] = False,
    target: WrittenLanguage = "",
    as_json: AsJson = False,
) -> None:
    """Decode a test set and score it: BLEU, chrF, TER and the papers' BLEU of translations, ROUGE of summaries.

    Every score has a bootstrap interval, and the task's own ones are given by source length too. Summaries stand beside
    the beginning of their text, post-edited translations beside the translation as it is (the last source), and all
    beside another system with `--against`: with differences and p-values of the paired bootstrap. The report shows
    examples, sorted by gain and loss where there is another system, with heat maps of attention.

    Example: tandem evaluate bundles/de-en --source test.de --references test.en --against bundles/old --report new.html
    """
    from deploy.evaluation.decoding import Decoding
    from deploy.evaluation.evaluation import Wanted, evaluate_command

    decoding = Decoding(runtime.value, precision, beam_size, limit, threads, target)
    wanted = Wanted(
        against=against,
        with_shortlist=shortlist,
        tokenised=tokenised,
        seed=seed,
        out=out,
        record=record,
        as_json=as_json,
        report=report,
        examples=examples,
        heat_maps=heat_maps,
    )
    evaluate_command(bundle, sources, references, decoding, wanted)


def compare(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE...", help="Bundle folders.")],
    sources: Annotated[
        list[str],
        typer.Option("--source", metavar="[LANGUAGE=]FILE", help="Source text, one segment a line, for each language."),
    ],
    references: Annotated[Path, typer.Option("--references", help="Reference text, parallel to the sources.")],
    baseline: Annotated[
        str | None, typer.Option(help="Name of the system that the others are tested against. [the first]")
    ] = None,
    runtime: UsedRuntime = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    limit: Limit = None,
    threads: RuntimeThreads = 1,
    hypotheses: Annotated[Path | None, typer.Option(help="Folder to keep every system's output in.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table as Markdown; - is standard output.")] = None,
    target: WrittenLanguage = "",
    as_json: AsJson = False,
) -> None:
    """Decode one test set with several bundles: scores, whether they differ, parameters, speeds.

    Every bundle takes the sources of its languages out of those given, so that one that reads German can stand beside
    one that reads German, French and Czech. The sources of post-editing may also be called src and mt; leaving the
    translation as it is then is a system of its own, and the baseline. Files without a language go to the bundles'
    sources in order.

    Example: tandem compare bundles/a bundles/b --source de=test.de --source fr=test.fr --references test.en
    """
    from deploy.evaluation.comparison import Output, compare_command
    from deploy.evaluation.decoding import Decoding

    decoding = Decoding(runtime.value, precision, beam_size, limit, threads, target)
    compare_command(bundles, sources, references, baseline, decoding, Output(hypotheses, markdown, as_json))


def analyse(
    bundle: BundleFolder,
    sources: Annotated[list[Path], typer.Option("--source", help="Source text, one segment a line (.xz, .gz, plain).")],
    references: Annotated[Path | None, typer.Option(help="Reference text, for scores by length and beam size.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures. [analysis/NAME]")] = None,
    runtime: UsedRuntime = Runtime.onnx,
    precision: Precision = "int8",
    threads: RuntimeThreads = 1,
    limit: Limit = None,
    attention_sentences: Annotated[int, typer.Option(min=1, help="Segments whose attention is averaged.")] = 200,
    heat_maps: Annotated[int, typer.Option(min=0, help="Segments whose attention is drawn.")] = 3,
    longest: Annotated[int, typer.Option(min=1, help="Tokens of a drawn segment, on any side.")] = 25,
    beam_sizes: Annotated[str, typer.Option(help="Beam sizes to time, such as 1,2,5,10; empty for none.")] = "",
    passes: Annotated[int, typer.Option(min=1, help="Passes over the text for each beam size.")] = 3,
) -> None:
    """Draw what the papers plot: attention entropies, alignments, encoder weights, scores by length, speed by beam.

    Example: tandem analyse bundles/de-en --source test.de --references test.en --beam-sizes 1,5
    """
    from deploy.evaluation.analysis import Scope, analyse_command, parse_beam_sizes
    from deploy.evaluation.decoding import Decoding

    scope = Scope(attention_sentences, heat_maps, longest, parse_beam_sizes(beam_sizes), passes)
    analyse_command(bundle, sources, references, out, Decoding(runtime.value, precision, None, limit, threads), scope)


def robustness(
    bundle: BundleFolder,
    source: Annotated[Path, typer.Option(help="Source text, one segment a line (.xz, .gz, plain).")],
    references: Annotated[Path, typer.Option(help="Reference translations.")],
    language: ReadLanguage = "",
    target: WrittenLanguage = "",
    sentences: Annotated[
        bool, typer.Option("--sentences/--segments", help="Split each line as the service does, or decode it whole.")
    ] = False,
    limit: Limit = None,
    max_lost: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Exit status 1 where a larger share of a state's translations has a symptom."
        ),
    ] = None,
    runtime: UsedRuntime = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: RuntimeThreads = 1,
    as_json: AsJson = False,
) -> None:
    """Show what a bundle makes of untidy text: lower case, no punctuation, typing errors, long lines.

    Every state of the test set is scored beside the untouched one, and translations that loop, break off or are empty
    are counted and shown.

    Example: tandem robustness bundles/de-en --source test.de --references test.en --max-lost 0.01
    """
    from deploy.bulk import BulkOptions
    from deploy.evaluation.robustness import Shown, robustness_command

    options = BulkOptions(
        runtime.value, precision, beam_size, threads, sentences=sentences, language=language, target=target
    )
    shown = Shown(limit, max_lost, as_json)
    raise typer.Exit(robustness_command(bundle, (source, references), options, shown))
