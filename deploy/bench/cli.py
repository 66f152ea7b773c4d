"""The `tandem bench` commands: arguments and help here, the work in ``deploy.bench`` (imported when it is needed)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from models.command import LARGEST_BEAM

bench = typer.Typer(
    help="Measure speed, beside other programs in the same run; docs/performance.md says what the figures mean.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@bench.command()
def decode(
    bundle: Annotated[Path, typer.Option(help="Bundle folder, such as bundles/de-en.")],
    batch_sizes: Annotated[str, typer.Option(help="Sentences of a batch; 1 = one sentence alone, one thread.")] = (
        "1,32,64"
    ),
    workers: Annotated[int, typer.Option(min=0, help="Threads that decode batches; 0 = one per core.")] = 0,
    beam_size: Annotated[int, typer.Option("--beam", min=1, max=LARGEST_BEAM, help="Beam size.")] = 5,
    passes: Annotated[int, typer.Option(min=1, help="Passes over the work, of which medians are taken.")] = 5,
    sentences: Annotated[int, typer.Option(min=1, help="Sentences of the forced-length work.")] = 2048,
    single: Annotated[int, typer.Option(min=1, help="Sentences decoded alone, at batch size 1.")] = 256,
    precision: Annotated[str, typer.Option(help="Which of the bundle's graphs: int8 or float32.")] = "int8",
    shortlist: Annotated[
        bool | None, typer.Option(help="Also with the bundle's lexical shortlist. [where it has one]")
    ] = None,
    peers: Annotated[str, typer.Option(help="Of ctranslate2 and huggingface those to measure too; a,b.")] = (
        "ctranslate2"
    ),
    peer_precisions: Annotated[str, typer.Option(help="Of CTranslate2: int8, float32 or both.")] = "int8",
    peer_vocabulary: Annotated[int, typer.Option(min=8, help="Types of the peers' random models.")] = 10_000,
    source: Annotated[Path | None, typer.Option(help="Real text, one sentence a line (.xz, .gz, plain).")] = None,
    references: Annotated[Path | None, typer.Option(help="Its reference translations.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many lines of real text.")] = None,
    ct2_from: Annotated[
        Path | None, typer.Option(metavar="BUNDLE", help="Transformer bundle that CTranslate2 runs on real text.")
    ] = None,
    rescore: Annotated[int, typer.Option(min=0, help="Sentences whose search is checked in float32; 0 = none.")] = 256,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw curves into this folder, as PNG.")] = None,
) -> None:
    """Measure decoding: sentences a second of batches, latency of one sentence, search quality, memory.

    The work is made of sentences with a fixed distribution of lengths, each batch decoded to its mean source length,
    so that the speed does not depend on the weights; and, where it is given, of real text that stops by itself.

    Example: tandem bench decode --bundle bundles/de-en --batch-sizes 1,32,64 --peers ctranslate2 --json
    """
    from deploy.bench.decode import decode_command
    from deploy.bench.options import DecodeOptions, RealText, names, numbers
    from deploy.bench.report import Output

    options = DecodeOptions(
        bundle=bundle,
        batch_sizes=numbers(batch_sizes, "--batch-sizes"),
        workers=workers,
        beam_size=beam_size,
        passes=passes,
        sentences=sentences,
        single=single,
        precision=precision,
        shortlist=shortlist,
        peers=names(peers, "--peers", ("ctranslate2", "huggingface")),
        peer_precisions=names(peer_precisions, "--peer-precisions", ("int8", "float32")),
        peer_vocabulary=peer_vocabulary,
        rescore=rescore,
        text=RealText(source, references, limit, ct2_from),
    )
    decode_command(options, Output(as_json, out, plot))


@bench.command()
def serve(
    bundle: Annotated[Path, typer.Option(help="Bundle folder, such as bundles/de-en.")],
    clients: Annotated[int, typer.Option(min=1, max=1024, help="Requests in flight in closed loops.")] = 64,
    duration: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds of each run.")] = 20.0,
    rates: Annotated[
        list[float] | None, typer.Option("--rate", help="Also load it with so many requests a second; may be repeated.")
    ] = None,
    beam_size: Annotated[int, typer.Option("--beam", min=1, max=LARGEST_BEAM, help="Beam size.")] = 5,
    workers: Annotated[int, typer.Option(min=0, help="Decode workers of each service; 0 = one per core.")] = 0,
    passes: Annotated[int, typer.Option(min=1, help="Passes over the runs of which medians are taken.")] = 3,
    peers: Annotated[str, typer.Option(help="naive: a service around CTranslate2, one call per request.")] = "",
    texts: Annotated[Path | None, typer.Option(help="Texts, one a line (.xz, .gz, plain). [pseudo-text]")] = None,
    peer_vocabulary: Annotated[int, typer.Option(min=8, help="Types of the peers' random model.")] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw curves into this folder, as PNG.")] = None,
) -> None:
    """Measure the service under load: rates, latencies, rejections, memory, its capacity.

    It runs in a process of its own with the result cache off. Clients send their next request when the last one was
    answered (closed loop), or requests arrive at random moments whatever the service does (open loop), and latency
    counts from the moment at which a request was due. Target lengths are those of the texts.

    Example: tandem bench serve --bundle bundles/de-en --peers naive --json
    """
    from deploy.bench.options import names
    from deploy.bench.report import Output
    from deploy.bench.serve import PEERS, ServeOptions, serve_command

    options = ServeOptions(
        bundle=bundle,
        clients=clients,
        duration=duration,
        rates=tuple(rates or ()),
        beam_size=beam_size,
        workers=workers,
        passes=passes,
        peers=names(peers, "--peers", PEERS),
        texts=texts,
        peer_vocabulary=peer_vocabulary,
    )
    serve_command(options, Output(as_json, out, plot))


@bench.command()
def soak(
    bundle: Annotated[Path, typer.Option(help="Bundle folder; with --url, one that the service has loaded.")],
    requests: Annotated[int, typer.Option(min=2, help="Requests after the warm-up.")] = 20_000,
    warm_up: Annotated[int, typer.Option("--warmup", min=1, help="Requests before memory is watched.")] = 5_000,
    clients: Annotated[int, typer.Option(min=1, max=1024, help="Requests in flight.")] = 16,
    workers: Annotated[int, typer.Option(min=0, help="Decode workers; 0 = as the service chooses.")] = 0,
    url: Annotated[str, typer.Option(help="A service that runs already. [one is started]")] = "",
    texts: Annotated[Path | None, typer.Option(help="Texts, one a line (.xz, .gz, plain). [pseudo-text]")] = None,
    limit: Annotated[float, typer.Option(min=0, help="MB per 10,000 requests that memory may grow.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
) -> None:
    """Watch the service's memory over many different requests; exit status 1 where it grows or a request fails.

    Example: tandem bench soak --bundle bundles/de-en --requests 20000
    """
    from deploy.bench.report import Output
    from deploy.bench.soak import SoakOptions, soak_command

    options = SoakOptions(bundle, requests, warm_up, clients, workers, url, texts, limit)
    if not soak_command(options, Output(as_json, out)):
        raise typer.Exit(1)


@bench.command()
def profile(
    bundle: Annotated[Path, typer.Option(help="Bundle folder, such as bundles/de-en.")],
    batch: Annotated[int, typer.Option(min=1, help="Sentences of the batch.")] = 32,
    beam_size: Annotated[int, typer.Option("--beam", min=1, max=LARGEST_BEAM, help="Beam size.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="Times that the step is run.")] = 50,
    precision: Annotated[str, typer.Option(help="Which of the bundle's graphs: int8 or float32.")] = "int8",
    shortlist: Annotated[bool, typer.Option("--shortlist", help="Profile the step that reads the shortlist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show where the time of one decoder step goes, by operator, and what its matrix products alone would take.

    Example: tandem bench profile --bundle bundles/de-en --batch 32
    """
    from deploy.bench.profile import ProfileOptions, profile_command

    profile_command(bundle, ProfileOptions(batch, beam_size, repeats, precision, shortlist), json_wanted=as_json)


@bench.command()
def reliability(
    bundle: Annotated[Path, typer.Option(help="Bundle folder, such as bundles/de-en.")],
    only: Annotated[str, typer.Option(help="Trials to run, such as overload,kill. [all]")] = "",
    duration: Annotated[float, typer.Option(min=1, max=600, help="Seconds of each load.")] = 20.0,
    clients: Annotated[int, typer.Option(min=1, max=1024, help="Requests in flight in closed loops.")] = 64,
    workers: Annotated[int, typer.Option(min=0, help="Decode workers; 0 = as the service chooses.")] = 0,
    fuzzing: Annotated[int, typer.Option(min=1, max=3600, help="Seconds of generated requests.")] = 300,
    requests: Annotated[int, typer.Option(min=8, help="Requests of the soak, after a quarter as many.")] = 12_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
) -> None:
    """Put the service through overload, abuse, faults and sudden death; exit status 1 where something is lost.

    docs/reliability.md explains the trials and holds what they found.

    Example: tandem bench reliability --bundle bundles/de-en --only overload,kill
    """
    from deploy.bench.options import names
    from deploy.bench.reliability.command import TRIALS, reliability_command
    from deploy.bench.reliability.trials import Setting
    from deploy.bench.report import Output

    setting = Setting(bundle, duration, clients, workers, fuzzing=fuzzing, requests=requests)
    wanted = names(only, "--only", tuple(TRIALS)) if only else ()
    if not reliability_command(setting, wanted, Output(as_json, out)):
        raise typer.Exit(1)


@bench.command()
def footprint(
    bundle: Annotated[Path, typer.Option(help="Bundle folder, such as bundles/de-en.")],
    counts: Annotated[str, typer.Option(help="Numbers of bundles, each for servers of their own.")] = "1,2,4,8",
    workers: Annotated[int, typer.Option(min=0, help="Decode workers; 0 = as the service chooses.")] = 0,
    passes: Annotated[int, typer.Option(min=1, help="Servers started for each number.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
) -> None:
    """Measure what each further bundle costs a server in memory and in seconds until it is ready.

    Example: tandem bench footprint --bundle bundles/de-en
    """
    from deploy.bench.footprint import FootprintOptions, footprint_command
    from deploy.bench.options import numbers
    from deploy.bench.report import Output

    footprint_command(FootprintOptions(bundle, numbers(counts, "--counts"), workers, passes), Output(as_json, out))
