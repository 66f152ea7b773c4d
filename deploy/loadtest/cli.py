"""The `tandem loadtest` and `tandem size` commands: arguments and help here, the work in ``deploy.loadtest``."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import typer


def loadtest(
    url: Annotated[str, typer.Option(help="A service that runs, such as http://host:8000.")] = "",
    bundle: Annotated[Path | None, typer.Option(help="Or a bundle folder: a service is started with it.")] = None,
    scenario: Annotated[str, typer.Option(help="interactive (sentences), documents, bulk, or mixed.")] = "interactive",
    rates: Annotated[
        str, typer.Option(help="Requests a second to measure, such as 5,10,20. [shares of the highest rate]")
    ] = "",
    p99: Annotated[float, typer.Option(min=0.001, max=60, help="Seconds that the 99th percentile may take.")] = 1.0,
    no_search: Annotated[
        bool, typer.Option("--no-search", help="Only measure --rates, do not look for the highest that keeps the p99.")
    ] = False,
    at_least: Annotated[float, typer.Option(min=0, help="Exit status 1 where the highest rate is below this.")] = 0.0,
    most: Annotated[float, typer.Option(min=0.1, max=100_000, help="Never send more requests a second.")] = 1000.0,
    duration: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds of each run.")] = 20.0,
    arrivals: Annotated[str, typer.Option(help="poisson (as of many people), or constant: at even gaps.")] = "poisson",
    pair: Annotated[str, typer.Option(help="Pair of languages, such as de-en. [the first that is served]")] = "",
    texts: Annotated[Path | None, typer.Option(help="Real sentences, one a line. [made ones]")] = None,
    workers: Annotated[int, typer.Option(min=0, help="With --bundle: decode workers; 0 = as the service chooses.")] = 0,
    api_key: Annotated[
        str, typer.Option(envvar="LOADTEST_API_KEY", help="Key; give it in the variable, where nobody sees it.")
    ] = "",
    seed: Annotated[int | None, typer.Option(min=0, help="Of texts and arrivals. [another one every time]")] = None,
    label: Annotated[str, typer.Option(help="Name of this run in tables and pictures. [where it was measured]")] = "",
    compare: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Also show a run from its JSON; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw the curves into this folder.")] = None,
) -> None:
    """Find out what load a service bears: latency over load, and the highest rate that keeps a p99.

    Requests are sent when they are due, whatever the service does; latency counts from then. It is loaded beyond what
    it can bear: ask before you do this to a service that others use. Without --url and --bundle nothing is sent, and
    the runs of --compare are shown and drawn. The exit status is 1 where no rate kept the p99 or a request failed;
    rejections (429, 503) are no failures. docs/load-tests.md explains the figures.

    Example: tandem loadtest --url http://localhost:8000 --p99 0.5 --out today.json --plot curves
    """
    from deploy.bench.report import Output
    from deploy.loadtest.command import loadtest_command
    from deploy.loadtest.options import LoadOptions, parse_rates

    options = LoadOptions(
        url=url,
        bundle=bundle,
        workers=workers,
        scenario=scenario,
        pair=pair,
        texts=texts,
        seed=random.randrange(2**31) if seed is None else seed,
        api_key=api_key,
        arrivals=arrivals,
        rates=parse_rates(rates),
        duration=duration,
        p99=p99,
        search=not no_search,
        most=most,
        at_least=at_least,
        label=label,
    )
    wanted = options if url or bundle is not None or not compare else None
    if not loadtest_command(wanted, compare or (), Output(as_json, out, plot)):
        raise typer.Exit(1)


def size(
    load: Annotated[Path, typer.Argument(help="JSON that tandem loadtest wrote, of one replica.", metavar="FILE")],
    rates: Annotated[str, typer.Option(help="Requests a second of all replicas together.")] = "1,10,100,1000,10000",
    p99: Annotated[float, typer.Option(min=0, help="Seconds that the 99th percentile may take. [as measured]")] = 0.0,
    cores: Annotated[float, typer.Option(min=0.1, help="Cores that the measured replica had.")] = 2.0,
    use: Annotated[float, typer.Option(min=0.05, max=1, help="Share of what a replica bears to plan with.")] = 0.7,
    spare: Annotated[int, typer.Option(min=0, help="Replicas more, so that so many may be away.")] = 1,
    core_price: Annotated[float, typer.Option(min=0, help="Price of a core for an hour, with its memory.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
) -> None:
    """Tell how many replicas a load takes, with cores, memory and price, from a measured curve of one replica.

    docs/scaling.md explains the arithmetic.

    Example: tandem size today.json --rates 100,1000 --p99 0.5 --cores 2 --core-price 0.04
    """
    from deploy.bench.report import Output
    from deploy.loadtest.options import parse_rates
    from deploy.loadtest.sizing import SizingOptions, sizing_command

    options = SizingOptions(load, parse_rates(rates), p99, cores, use, spare, core_price)
    sizing_command(options, Output(as_json, out))
