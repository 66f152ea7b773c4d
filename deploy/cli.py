"""The `tandem` command: arguments and help here, the work in ``deploy.commands`` (imported when it is needed)."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from deploy.bench.cli import bench
from deploy.commands import COMMON_TARGETS, LARGEST_BEAM, TARGETS_PER_WORD
from deploy.commands.keys import app as keys
from deploy.flags import SettingsCommand, given_settings
from deploy.loadtest.cli import loadtest, size
from models.errors import ConfigError, OptionError, TandemError

app = typer.Typer(
    help="Train, prove, ship and serve translation and summarization models.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # brackets are text, and paragraphs flow
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench, name="bench")
app.add_typer(keys, name="keys")
app.command()(loadtest)
app.command()(size)

_SERVING = (
    *("fastapi", "onnxruntime", "prometheus_client", "pydantic", "pydantic_settings", "sentencex", "structlog"),
    "uvicorn",
)
_FULL = (errno.ENOSPC, errno.EDQUOT)  # a write that finds no room names no file


class Runtime(StrEnum):
    """What runs a bundle's graphs."""

    onnx = "onnx"
    torchscript = "torchscript"
    torch = "torch"


class BadLines(StrEnum):
    """What stands in the place of a line that cannot be translated."""

    keep = "keep"
    empty = "empty"


class Device(StrEnum):
    """Where training runs."""

    cpu = "cpu"
    cuda = "cuda"


RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe file (TOML), see training/recipes/.")]
RunFolder = Annotated[
    Path | None, typer.Option("--run", help="Folder of the run: prepared data, checkpoints, logs. [runs/NAME]")
]
BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="Bundle folder, such as bundles/de-en.")]
BeamSize = Annotated[int | None, typer.Option(min=1, max=LARGEST_BEAM, help="Beam size. [the bundle's]")]
Precision = Annotated[str, typer.Option(help="Which of the bundle's graphs: int8 or float32.")]
Threads = Annotated[int, typer.Option(min=0, help="Threads of one computation (0 = as the library chooses).")]


@app.command()
def corpus(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A corpus of the papers. [list them]")] = None,
    raw: Annotated[
        Path | None, typer.Option(help="Folder of the files that you fetched. [only say which these are]")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of corpora; NAME is made in it.")] = Path("corpora"),
    force: Annotated[bool, typer.Option(help="Replace the corpus that is there.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that tokenise.")] = 1,
) -> None:
    """Prepare a corpus of the papers from files that you fetched: check, normalise, split.

    Example: tandem corpus iwslt14-de-en --raw fetched --out corpora
    """
    from deploy.commands.corpora import corpus_command

    corpus_command(name, raw, out, force=force, workers=workers)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the corpus, the recipe, the run and the bundle.")],
    source: Annotated[Path, typer.Option(help="Your texts, one segment a line (plain, .xz, .gz; UTF-8).")],
    target: Annotated[Path, typer.Option(help="Their translations, line by line.")],
    start: Annotated[
        Path | None, typer.Option("--from", metavar="BUNDLE", help="Fine-tune this bundle. [train from scratch]")
    ] = None,
    source_language: Annotated[
        str, typer.Option(help="Code of the texts' language. [end of the file's name, or the bundle's]")
    ] = "",
    target_language: Annotated[
        str, typer.Option(help="Code of the translations' language. [end of the file's name, or the bundle's]")
    ] = "",
    corpora: Annotated[Path, typer.Option(help="Folder of corpora; NAME is made in it.")] = Path("corpora"),
    recipe: Annotated[Path | None, typer.Option(help="Recipe to write. [NAME.toml]")] = None,
    architecture: Annotated[
        str, typer.Option(help="convs2s, dpn or transformer, for a model from scratch.")
    ] = "convs2s",
    valid: Annotated[int | None, typer.Option(min=1, help="Pairs held out for validation. [by amount]")] = None,
    test: Annotated[int | None, typer.Option(min=1, help="Pairs held out for the test. [by amount]")] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="Length of the training. [by amount]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of what is held out, and of the training.")] = 1,
    licence: Annotated[str, typer.Option(help="Of the text, for the bundle's manifest.")] = "",
    attribution: Annotated[str, typer.Option(help="Whom to name there.")] = "",
    force: Annotated[bool, typer.Option(help="Replace an earlier corpus and recipe of this name.")] = False,
) -> None:
    """Begin with text of your own: two parallel files become corpora/NAME and a recipe that suits their size.

    The files are checked; what is held out for validation and test shares no sentence with what is trained on.
    docs/training.md goes on from there.

    Example: tandem new mine --source mine.de --target mine.en    |
    tandem new mine --source mine.de --target mine.en --from bundles/de-en
    """
    from deploy.commands.new import new_command
    from training.starter.corpus import Job

    job = Job(
        name=name,
        source=source,
        target=target,
        languages=(source_language, target_language),
        corpora=corpora,
        recipe=recipe or Path(f"{name}.toml"),
        architecture=architecture,
        valid=valid,
        test=test,
        updates=updates,
        seed=seed,
        licence=licence,
        attribution=attribution,
        force=force,
    )
    new_command(job, start)


@app.command()
def prepare(
    recipe: RecipeFile,
    run: RunFolder = None,
    corpora: Annotated[Path, typer.Option(help="Folder that the recipe's corpus files lie in.")] = Path("corpora"),
    start: Annotated[Path | None, typer.Option("--from", help="Use this bundle's vocabularies.")] = None,
    force: Annotated[bool, typer.Option(help="Replace data that was prepared differently.")] = False,
) -> None:
    """Turn corpora into batches' raw material: filter, train vocabularies, encode.

    Example: tandem prepare training/recipes/tatoeba-de-en/dpn.toml --corpora corpora
    """
    from deploy.commands.training import prepare_command

    prepare_command(recipe, run, corpora, start, force)


@app.command()
def train(
    recipe: RecipeFile,
    run: RunFolder = None,
    resume: Annotated[bool, typer.Option(help="Continue from the newest checkpoint of the run.")] = False,
    start: Annotated[Path | None, typer.Option("--from", help="Start from this bundle's weights.")] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="Train to this update instead of the recipe's.")] = None,
    threads: Threads = 0,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.cpu,
) -> None:
    """Train what `tandem prepare` has prepared. Ctrl-C saves a checkpoint first; `--resume` continues exactly.

    Example: tandem train training/recipes/tatoeba-de-en/dpn.toml
    """
    from deploy.commands.training import train_command

    train_command(recipe, run, resume=resume, start=start, updates=updates, threads=threads, device=device.value)


@app.command()
def export(
    source: Annotated[Path, typer.Argument(metavar="RUN|BUNDLE", help="A run to make a bundle of, or a bundle.")],
    out: Annotated[Path | None, typer.Option(help="Bundle folder to write, for a run. [bundles/NAME]")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="One checkpoint instead of the run's newest.")] = None,
    average: Annotated[int | None, typer.Option(min=1, help="Average this many newest checkpoints.")] = None,
    add: Annotated[
        str | None, typer.Option(help="For a bundle: build float32 ONNX graphs, or torchscript, from its weights.")
    ] = None,
    renew: Annotated[
        list[Path] | None,
        typer.Option(metavar="TEXT", help="For a bundle: make its graphs again, calibrated on lines like its sources."),
    ] = None,
    force: Annotated[bool, typer.Option(help="Replace a bundle that is already there.")] = False,
) -> None:
    """Make a bundle of a run (weights, vocabularies, int8 ONNX graphs), add graphs to a bundle, or renew those it has.

    Examples: tandem export runs/de-en --out bundles/de-en    |    tandem export bundles/de-en --add float32    |
    tandem export bundles/de-en --renew valid.de
    """
    from deploy.commands.bundles import export_command, renew_command

    if renew:
        renew_command(source, renew)
    else:
        export_command(source, out, checkpoint, average, add, force)


@app.command()
def verify(
    bundle: BundleFolder,
    texts: Annotated[
        list[Path] | None, typer.Option("--text", help="Source sentences to prove on, one a line. [built-in ones]")
    ] = None,
    references: Annotated[Path | None, typer.Option(help="Their references, for the loss by quantisation.")] = None,
    record: Annotated[bool, typer.Option(help="Store the proof in the bundle's manifest.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove a bundle: files intact, and every runtime gives PyTorch's beam search results.

    Example: tandem verify bundles/de-en --text valid.de --references valid.en
    """
    from deploy.commands.bundles import verify_command

    verify_command(bundle, texts or [], references, record, as_json)


@app.command()
def ensemble(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE BUNDLE...", help="Bundles to put together.")],
    out: Annotated[Path, typer.Option(help="Bundle folder to write.")],
    name: Annotated[str, typer.Option(help="Name of the new bundle. [of its folder]")] = "",
    texts: Annotated[
        list[Path] | None,
        typer.Option("--text", help="Sentences to calibrate int8 graphs on, one a line, for each source. [built-in]"),
    ] = None,
    force: Annotated[bool, typer.Option(help="Replace a bundle that is already there.")] = False,
) -> None:
    """Make one bundle of several that share task, languages and vocabularies: the mean of their probabilities.

    Example: tandem ensemble bundles/seed-1 bundles/seed-2 bundles/seed-3 --out bundles/three
    """
    from deploy.commands.ensemble import ensemble_command

    ensemble_command(bundles, out, name, texts or [], force)


@app.command()
def shortlist(
    bundle: BundleFolder,
    sources: Annotated[
        list[Path],
        typer.Option("--source", help="Training text, one segment a line (.xz, .gz, plain); one for each text source."),
    ],
    targets: Annotated[
        list[Path], typer.Option("--target", help="Its other side. Further corpora: --source and --target again.")
    ],
    per_word: Annotated[int, typer.Option(min=1, help="Likely targets of each source piece.")] = TARGETS_PER_WORD,
    common: Annotated[int, typer.Option(min=0, help="Most frequent target pieces, in every list.")] = COMMON_TARGETS,
    out: Annotated[Path | None, typer.Option(help="Folder of a copy of the bundle that gets the shortlist.")] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Change the bundle itself.")] = False,
) -> None:
    """Give a bundle a lexical shortlist: for each source word the target words that its training text makes likely.

    Decoding with it leaves the other words out of the output layer, which is faster. `tandem evaluate --shortlist`
    measures what that costs.

    Example: tandem shortlist bundles/de-en --source train.de.xz --target train.en.xz --in-place
    """
    from deploy.commands.shortlist import shortlist_command

    shortlist_command(bundle, sources, targets, (per_word, common), out, in_place=in_place)


@app.command()
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
    runtime: Annotated[Runtime, typer.Option(help="What runs the model.")] = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many segments.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtime.")] = 1,
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokens already.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the bootstrap. [sacreBLEU's]")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the hypotheses to this file.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a report with examples.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="Segments of each kind in the report.")] = 20,
    heat_maps: Annotated[int, typer.Option(min=0, help="Segments there whose attention is drawn.")] = 3,
    record: Annotated[str, typer.Option(help="Store the scores in the manifest under this test set's name.")] = "",
    shortlist: Annotated[bool, typer.Option("--shortlist", help="Also with the bundle's shortlist.")] = False,
    target: Annotated[
        str, typer.Option(help="Language to translate into, where a bundle has several. [its first]")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Decode a test set and score it: BLEU, chrF, TER and the papers' BLEU of translations, ROUGE of summaries.

    Every score has a bootstrap interval, and the task's own ones are given by source length too. Summaries stand beside
    the beginning of their text, post-edited translations beside the translation as it is (the last source), and all
    beside another system with `--against`: with differences and p-values of the paired bootstrap. The report shows
    examples, sorted by gain and loss where there is another system, with heat maps of attention.

    Example: tandem evaluate bundles/de-en --source test.de --references test.en --against bundles/old --report new.html
    """
    from deploy.commands.decoding import Decoding
    from deploy.commands.evaluation import Wanted, evaluate_command

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


@app.command()
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
    runtime: Annotated[Runtime, typer.Option(help="What runs the models.")] = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many segments.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtime.")] = 1,
    hypotheses: Annotated[Path | None, typer.Option(help="Folder to keep every system's output in.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table as Markdown; - is standard output.")] = None,
    target: Annotated[
        str, typer.Option(help="Language to translate into, where a bundle has several. [its first]")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Decode one test set with several bundles: scores, whether they differ, parameters, speeds.

    Every bundle takes the sources of its languages out of those given, so that one that reads German can stand beside
    one that reads German, French and Czech. The sources of post-editing may also be called src and mt; leaving the
    translation as it is then is a system of its own, and the baseline. Files without a language go to the bundles'
    sources in order.

    Example: tandem compare bundles/a bundles/b --source de=test.de --source fr=test.fr --references test.en
    """
    from deploy.commands.comparison import Output, compare_command
    from deploy.commands.decoding import Decoding

    decoding = Decoding(runtime.value, precision, beam_size, limit, threads, target)
    compare_command(bundles, sources, references, baseline, decoding, Output(hypotheses, markdown, as_json))


@app.command()
def describe(
    target: Annotated[Path, typer.Argument(metavar="RECIPE|BUNDLE", help="A recipe file or a bundle folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show architecture, configuration and parameter counts.

    Example: tandem describe training/recipes/iwslt14-de-en/dpn.toml --json
    """
    from deploy.commands.description import describe_command

    describe_command(target, as_json)


@app.command()
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
    language: Annotated[str, typer.Option(help="Language of the text, where the bundle reads several.")] = "",
    target: Annotated[str, typer.Option(help="Language to translate into, where the bundle writes several.")] = "",
    bad: Annotated[BadLines, typer.Option(help="What a line that cannot be translated becomes.")] = BadLines.keep,
    report: Annotated[
        Path | None, typer.Option(help="Where bad lines are told, as JSON lines. [OUT.report.jsonl]")
    ] = None,
    fail_on_bad: Annotated[bool, typer.Option("--fail-on-bad", help="Exit status 1 where a line is bad.")] = False,
    workers: Annotated[int, typer.Option(min=0, help="Processes that translate; 0 = one per core.")] = 0,
    save_every: Annotated[float, typer.Option(min=0.0, help="Seconds between saves, at whole windows.")] = 10.0,
    max_line_bytes: Annotated[int, typer.Option(min=1, help="Longer lines are bad.")] = 1 << 20,
    runtime: Annotated[Runtime, typer.Option(help="What runs the model.")] = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtime, in each process.")] = 1,
    shortlist: Annotated[bool, typer.Option("--shortlist", help="Only tokens of the bundle's shortlist.")] = False,
) -> None:
    """Translate (or summarize) files of any size line by line, without a server.

    Lines keep their order and number; a line that cannot be translated stays in its place and is told. docs/bulk.md
    explains the rest.

    Example: tandem translate bundles/de-en --source corpus.de.gz --out corpus.en.gz    |
    echo "Wo ist der Bahnhof?" | tandem translate bundles/de-en
    """
    from deploy.bulk import BulkOptions
    from deploy.bulk.run import Request
    from deploy.commands.translation import run_command
    from service.telemetry.cgroups import usable_cores

    options = BulkOptions(
        runtime.value, precision, beam_size, threads, shortlist, sentences, language, bad.value, target
    )
    request = Request((), None, report, resume, workers or usable_cores(), save_every, max_line_bytes)
    status = run_command(bundle, sources or [Path("-")], out, options, request, fail_on_bad=fail_on_bad)
    raise typer.Exit(status)


Synthesised = Annotated[Path, typer.Option(help="Folder of the new corpus, in the folder of the recipe's corpora.")]
Language = Annotated[str, typer.Option(help="Language of the text, where the bundle reads several.")]
Target = Annotated[str, typer.Option(help="Language to translate into, where the bundle writes several.")]
Workers = Annotated[int, typer.Option(min=0, help="Processes that translate; 0 = one per core.")]
LengthRatio = Annotated[
    float, typer.Option(min=1.0, help="A pair is dropped whose longer side has more than so many times the words.")
]


@app.command()
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
    language: Language = "",
    target: Target = "",
    workers: Workers = 0,
    runtime: Annotated[Runtime, typer.Option(help="What runs the model.")] = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtime, in each process.")] = 1,
) -> None:
    """Have a teacher translate the training text, for a smaller model to learn from: a corpus that a recipe can name.

    Sequence-level knowledge distillation. What is translated is kept: the same command goes on where it was ended, and
    with other bounds translates nothing again. Prints the table for the recipe.

    Example: tandem distil bundles/teacher --source corpora/tatoeba-de-en/train.de.xz --references
    corpora/tatoeba-de-en/train.en.xz --out corpora/distilled-de-en
    """
    from deploy.bulk import BulkOptions
    from deploy.commands.synthesis import Synthesis, run_command
    from service.telemetry.cgroups import usable_cores
    from training.synthetic import Sieve

    sieve = Sieve(max_length_ratio, min_chrf)
    cores = workers or usable_cores()
    wanted = Synthesis("distilled", tuple(sources), tuple(references or ()), out, sieve, cores)
    options = BulkOptions(runtime.value, precision, beam_size, threads, language=language, target=target)
    raise typer.Exit(run_command(bundle, wanted, replace(options, candidates=candidates)))


@app.command()
def backtranslate(
    bundle: BundleFolder,
    texts: Annotated[
        list[Path], typer.Option("--text", help="Text in the new model's target language, one segment a line.")
    ],
    out: Synthesised,
    max_length_ratio: LengthRatio = 3.0,
    language: Language = "",
    target: Target = "",
    workers: Workers = 0,
    runtime: Annotated[Runtime, typer.Option(help="What runs the model.")] = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtime, in each process.")] = 1,
) -> None:
    """Make sources for text of which only the target side exists, with a bundle of the other direction.

    The recipe's table, which is printed, says that the sources are no people's: they get a tag (Caswell et al. 2019).
    The same command goes on where it was ended.

    Example: tandem backtranslate bundles/en-de --text news.en.xz --out corpora/back-de-en
    """
    from deploy.bulk import BulkOptions
    from deploy.commands.synthesis import Synthesis, run_command
    from service.telemetry.cgroups import usable_cores
    from training.synthetic import Sieve

    sieve = Sieve(max_length_ratio)
    wanted = Synthesis("back-translated", tuple(texts), (), out, sieve, workers or usable_cores())
    options = BulkOptions(runtime.value, precision, beam_size, threads, language=language, target=target)
    raise typer.Exit(run_command(bundle, wanted, options))


@app.command()
def robustness(
    bundle: BundleFolder,
    source: Annotated[Path, typer.Option(help="Source text, one segment a line (.xz, .gz, plain).")],
    references: Annotated[Path, typer.Option(help="Reference translations.")],
    language: Language = "",
    target: Target = "",
    sentences: Annotated[
        bool, typer.Option("--sentences/--segments", help="Split each line as the service does, or decode it whole.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many segments.")] = None,
    max_lost: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Exit status 1 where a larger share of a state's translations has a symptom."
        ),
    ] = None,
    runtime: Annotated[Runtime, typer.Option(help="What runs the model.")] = Runtime.onnx,
    precision: Precision = "int8",
    beam_size: BeamSize = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtime.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a bundle makes of untidy text: lower case, no punctuation, typing errors, long lines.

    Every state of the test set is scored beside the untouched one, and translations that loop, break off or are empty
    are counted and shown.

    Example: tandem robustness bundles/de-en --source test.de --references test.en --max-lost 0.01
    """
    from deploy.bulk import BulkOptions
    from deploy.commands.robustness import Shown, robustness_command

    options = BulkOptions(
        runtime.value, precision, beam_size, threads, sentences=sentences, language=language, target=target
    )
    shown = Shown(limit, max_lost, as_json)
    raise typer.Exit(robustness_command(bundle, (source, references), options, shown))


@app.command()
def analyse(
    bundle: BundleFolder,
    sources: Annotated[list[Path], typer.Option("--source", help="Source text, one segment a line (.xz, .gz, plain).")],
    references: Annotated[Path | None, typer.Option(help="Reference text, for scores by length and beam size.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures. [analysis/NAME]")] = None,
    runtime: Annotated[Runtime, typer.Option(help="What runs the model when decoding.")] = Runtime.onnx,
    precision: Precision = "int8",
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtime.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many segments.")] = None,
    attention_sentences: Annotated[int, typer.Option(min=1, help="Segments whose attention is averaged.")] = 200,
    heat_maps: Annotated[int, typer.Option(min=0, help="Segments whose attention is drawn.")] = 3,
    longest: Annotated[int, typer.Option(min=1, help="Tokens of a drawn segment, on any side.")] = 25,
    beam_sizes: Annotated[str, typer.Option(help="Beam sizes to time, such as 1,2,5,10; empty for none.")] = "",
    passes: Annotated[int, typer.Option(min=1, help="Passes over the text for each beam size.")] = 3,
) -> None:
    """Draw what the papers plot: attention entropies, alignments, encoder weights, scores by length, speed by beam.

    Example: tandem analyse bundles/de-en --source test.de --references test.en --beam-sizes 1,5
    """
    from deploy.commands.analysis import Scope, analyse_command, parse_beam_sizes
    from deploy.commands.decoding import Decoding

    scope = Scope(attention_sentences, heat_maps, longest, parse_beam_sizes(beam_sizes), passes)
    analyse_command(bundle, sources, references, out, Decoding(runtime.value, precision, None, limit, threads), scope)


ServedBundles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="BUNDLE", help="Bundle folders, or folders of bundles; as --bundles."),
]


@app.command(cls=SettingsCommand)
def serve(context: typer.Context, paths: ServedBundles = None) -> None:
    """Serve bundles over HTTP. Flags go before TANDEM_* variables, these before the file of --config.

    docs/configuration.md has a table of all settings, and says what the exit status means.

    Example: tandem serve bundles --port 8000
    """
    from deploy.commands.serving import serve_command

    serve_command(paths, given_settings(context))


@app.command(cls=SettingsCommand)
def config(
    context: typer.Context,
    paths: ServedBundles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print a file for --config.")] = False,
) -> None:
    """Show the settings as `tandem serve` would have them with the same flags, and where each comes from.

    Secrets are masked. The exit status is 2 where a setting is unknown or out of bounds.

    Example: tandem config --json
    """
    from deploy.commands.configuration import config_command

    config_command(paths, given_settings(context), as_json=as_json, as_toml=as_toml)


@app.command()
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to, a new folder.")],
    data: Annotated[Path | None, typer.Option(help="The server's data folder. [TANDEM_DATA]")] = None,
) -> None:
    """Copy what a server keeps (keys, quotas, glossaries, file jobs), also while it runs.

    Example: tandem backup backups/2030-12-31
    """
    from deploy.commands.backup import backup_command

    backup_command(folder, data)


@app.command()
def doctor(
    bundles: Annotated[
        list[Path] | None,
        typer.Option("--bundle", metavar="BUNDLE", help="Bundle folder, or folder of bundles. [those of the settings]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at this machine as `tandem serve` would find it: settings, bundles, memory, cores, data folder, port.

    Each bundle's files are checked, and it translates a sentence. Every check ends in ok, warning or fault and says
    what to do. The exit status is 0 where the service can serve, 1 where there is a fault. Settings come from the same
    TANDEM_* variables as those of `tandem serve`.

    Example: tandem doctor --bundle bundles/de-en
    """
    from deploy.doctor import doctor_command

    raise typer.Exit(doctor_command(bundles, as_json=as_json))


def main() -> None:
    """Entry point: errors that were raised on purpose are one line, not a traceback.

    The exit status is 0 where all went well, 1 where the command failed, 2 where it was called or configured wrongly,
    so that doing it again is of no use, and 130 where it was interrupted.
    """
    if _trains_on_cpu(sys.argv[1:]):
        from training.allocator import restart_with_faster_allocator

        restart_with_faster_allocator()
    try:
        app()
    except TandemError as error:
        _fail(str(error), 2 if isinstance(error, ConfigError | OptionError) else 1)
    except ModuleNotFoundError as error:
        extra = "[serve]" if error.name in _SERVING else "[train] (make install)"
        _fail(f"this command needs the package {error.name!r}: install tandem with its extra {extra}", 1)
    except OSError as error:
        if error.filename is None and error.errno not in _FULL:  # of the network or the system, not of a path
            raise
        _fail(f"{error.filename}: {error.strerror}" if error.filename is not None else str(error.strerror), 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _trains_on_cpu(arguments: Sequence[str]) -> bool:
    """Whether they ask for training that another allocator makes faster: not on a GPU, and not for help."""
    elsewhere = any(one in ("-h", "--help") or one.removeprefix("--device=").startswith("cuda") for one in arguments)
    return arguments[:1] == ["train"] and not elsewhere


def _fail(message: str, status: int) -> NoReturn:
    typer.secho(f"tandem: {message}", err=True, fg="red" if sys.stderr.isatty() else None)
    sys.exit(status)
