"""`tandem loadtest`: measure; table, JSON, picture, exit status."""

from __future__ import annotations

from deploy.loadtest.options import LoadOptions, require
from deploy.loadtest.pictures import draw
from deploy.loadtest.results import title, verdict, warnings
from deploy.report import ResultOutput, console, say, show_environment, table

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


def loadtest_command(options: LoadOptions) -> bool:
    """Measure, and print a table or JSON; draw a picture.

    Returns:
        Whether the highest rate is what was asked for, and nothing failed.

    Raises:
        ConfigError: an option is out of bounds, or the service does not answer.
    """
    output = ResultOutput.of(options)
    if output.plot is not None:
        require("matplotlib")
    options.check()
    from deploy.loadtest.measure import measure  # its packages are the extra's, which the check has looked for

    result = measure(options)
    output.write(result)
    if output.plot is not None:
        say(str(draw(result, output.plot / PICTURE)), error=True)
    if not output.as_json:
        say(f"client: {show_environment(result['client'])}")
        rows = [{**row, "lost": row["failed"] + row["unfinished"]} for row in result["rows"]]
        console().print(table(title(result), _COLUMNS, rows))
        say(*verdict(result), *warnings(result))
    return bool(result["met"])
