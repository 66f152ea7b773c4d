"""`tandem loadtest`: measure, or read what was measured before; tables, JSON, pictures, exit status."""

from __future__ import annotations

from collections.abc import Sequence

from deploy.loadtest.options import LoadOptions, require
from deploy.loadtest.pictures import draw
from deploy.loadtest.results import Result, kinds_at_highest, read_result, summary, title, verdict, warnings
from deploy.report import ResultOutput, console, say, show_environment, table
from models.errors import ConfigError

PICTURE = "loadtest.png"
_COLUMNS = {
    "purpose": "for",
    "offered_per_s": "offered/s",
    "requests": "requests",
    "requests_per_s": "answered/s",
    "goodput_per_s": "good/s",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "rejected": "rejected",
    "lost": "lost",
    "sustained": "kept p99",
    "client_lag_ms": "client lag ms",
    "client_cores": "client cores",
    "server_cpu_ms": "CPU ms",
    "others_cores": "others' cores",
    "rss_mb": "MB",
}
_KINDS = {
    "kind": "kind",
    "requests": "requests",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "not_answered": "not answered",
}
_RUNS = {
    "label": "run",
    "scenario": "scenario",
    "pair": "pair",
    "arrivals": "arrivals",
    "bound": "p99 bound ms",
    "highest": "highest/s",
    "p50_ms": "p50 ms there",
    "p99_ms": "p99 ms there",
    "good": "most good/s",
}


def loadtest_command(options: LoadOptions) -> bool:
    """Measure, or only show what was measured before, and print a table or JSON; draw pictures.

    Returns:
        Whether the highest rate is what was asked for, and nothing failed; True where nothing was measured.

    Raises:
        ConfigError: an option is out of bounds, an earlier file is not such a file, or the service does not answer.
    """
    output = ResultOutput.of(options)
    if output.plot is not None:
        require("matplotlib")
    results = [read_result(path) for path in options.compare or ()]
    measures = bool(options.url or options.bundle is not None or not results)
    if measures:
        options.check()
        from deploy.loadtest.measure import measure

        results.append(measure(options))
        output.write(results[-1])
    elif output.file is not None or output.as_json:
        raise ConfigError("--out and --json are for a measurement: give --url or --bundle")
    if output.plot is not None:
        say(str(draw(results, output.plot / PICTURE)), error=True)
    if not output.as_json:
        show(results, measured=measures)
    return not measures or bool(results[-1]["met"])


def show(results: Sequence[Result], *, measured: bool) -> None:
    """Tables: the runs of the last result where it was measured now or is the only one; all results side by side."""
    last = results[-1]
    if measured or len(results) == 1:
        say(f"client: {show_environment(last['client'])}")
        rows = [{**row, "lost": row["failed"] + row["unfinished"]} for row in last["rows"]]
        console().print(table(title(last), _COLUMNS, rows))
        if kinds := kinds_at_highest(last):
            console().print(table(f"by kind, at {kinds['rate']:g}/s", _KINDS, kinds["rows"]))
        say(*verdict(last), *warnings(last))
    if len(results) > 1:
        console().print(table("compared", _RUNS, [summary(result) for result in results]))
