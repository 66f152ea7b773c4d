"""`tandem loadtest`: what a run amounts to, the search, what is written, and small runs against real services."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from tandem.extras.loadtest.client import LoadRun, RequestOutcome
from tandem.extras.loadtest.command import loadtest, verdict, warnings
from tandem.extras.loadtest.measure import SHARES, Steps, figures, measure, opened
from tandem.extras.loadtest.options import LoadOptions, parse_rates
from tandem.extras.loadtest.pictures import draw_curves
from tandem.extras.loadtest.scenarios import Call
from tandem.extras.loadtest.tests.stand_in import StandIn, running
from tandem.models.errors import ConfigError
from tests.command import fails, succeeds
from tests.shipped import ROOT, SHIPPED

PNG = b"\x89PNG\r\n\x1a\n"


def result(**changes: Any) -> dict[str, Any]:
    """A measurement as its file holds it."""
    run = {"requests": 400, "seconds": 20.0, "rejected": 0, "failed": 0, "unfinished": 0, "client_late": False}
    times = {"p50_ms": 50.0, "p95_ms": 90.0, "p99_ms": 100.0, "max_ms": 110.0}

    def row(purpose: str, rate: float, **figures: Any) -> dict[str, Any]:
        own = {"rate": rate, "offered_per_s": rate, "goodput_per_s": rate, "requests_per_s": rate, "sustained": True}
        return {"purpose": purpose, **run, **times, **own, **figures}

    over = {"rejected": 60, "sustained": False, "goodput_per_s": 12.0, "p50_ms": None, "p95_ms": None, "p99_ms": None}
    machine = {"processor": "", "features": [], "cores": 1, "usable_cores": 1, "threads": 1}
    fields: dict[str, Any] = {
        "loadtest": 1,
        "label": "here",
        "pair": "de-en",
        "scenario": "interactive",
        "arrivals": "poisson",
        "p99_bound_ms": 1000.0,
        "client": {**machine, "python": "3", "versions": {}},
        "rows": [row("curve", 10.0), row("search", 20.0), row("curve", 20.0), row("curve", 30.0, **over)],
        "highest": 20.0,
        "at_least": 0.0,
        "faults": [],
        "met": True,
    }
    return fields | changes


CALL = Call("sentence", b"", 1, 10)


def test_figures_of_a_run() -> None:
    outcomes = [RequestOutcome(0.1, "answered")] * 198 + [RequestOutcome(2.0, "answered")]
    run = LoadRun(tuple(outcomes), 4.0, 199, cpu=0.4)
    row = figures(run, [CALL] * 199, 5.0, LoadOptions(p99=1.0))
    assert (row["p50_ms"], row["max_ms"]) == (100.0, 2000.0)
    assert row["goodput_per_s"] == pytest.approx(198 / 5, abs=1e-3)  # what comes late is no good answer
    assert row["requests_per_s"] == pytest.approx(199 / 5, abs=1e-3)
    assert row["characters_per_s"] == pytest.approx(1990 / 5)
    assert (row["offered_per_s"], row["client_cores"], row["client_late"]) == (39.8, 0.1, False)
    assert row["sustained"] is True  # 99 percent of the sentences came within the bound
    assert "retry_after_s" not in row


@pytest.mark.parametrize("bad", ["rejected", "failed", "unfinished"])
def test_a_rate_at_which_one_request_gets_no_answer_is_not_sustained(bad: Any) -> None:
    outcomes = (*[RequestOutcome(0.1, "answered")] * 999, RequestOutcome(0.2, bad, fault="503", retry_after=3))
    row = figures(LoadRun(outcomes, 10.0, 999, 0.1), [CALL] * 1000, 10.0, LoadOptions())
    assert (row[bad], row["sustained"], row["retry_after_s"]) == (1, False, 3)


def test_a_late_client_is_told() -> None:
    calls = [CALL] * 10
    late = LoadRun((RequestOutcome(0.2, "answered", lag=0.06),) * 10, 1.0, 10, cpu=0.1)
    busy = LoadRun((RequestOutcome(0.2, "answered"),) * 10, 1.0, 10, cpu=0.9)
    assert figures(late, calls, 1.0, LoadOptions(p99=1.0))["client_late"]
    assert figures(busy, calls, 1.0, LoadOptions(p99=1.0))["client_late"]
    row = result()["rows"][0] | {"client_late": True}
    assert "busy or late at 10/s" in warnings(result(rows=[row]))[0]


def options(service: StandIn, **changes: Any) -> LoadOptions:
    fields: dict[str, Any] = {"url": service.url, "duration": 0.1, "rates": "100,200", "seed": 1}
    return LoadOptions(**(fields | changes))


def test_rates_are_measured_and_everything_is_sent_once() -> None:
    with running(StandIn()) as service:
        found = measure(options(service, no_search=True, api_key="secret", arrivals="constant"))
        assert service.headers["authorization"] == "Bearer secret"
        assert service.headers["content-type"] == "application/json"
    assert [row["rate"] for row in found["rows"]] == [100.0, 200.0]
    assert [row["requests"] for row in found["rows"]] == [20, 20]  # the fewest, and 0.1 s
    assert all(row["failed"] == row["rejected"] == 0 for row in found["rows"])
    assert (found["pair"], found["texts"]) == ("de-en", "made")
    assert (found["highest"], found["met"]) == (200.0, True)
    assert found["label"] == found["service"] == service.url
    assert "secret" not in json.dumps(found, allow_nan=False)
    measured = [fields["q"] for fields in service.sent][-42:]  # after the warm-up: two runs, a request after each
    assert len(set(measured)) > 35  # no cache can answer


def test_wrong_answers_fail_and_rejections_do_not() -> None:
    with running(StandIn(reply=b'{"translatedText": ""}')) as service:
        found = measure(options(service, no_search=True))
    assert found["met"] is False
    assert found["faults"] == ["1 of 1 translations are missing or empty"]
    with running(StandIn()) as service, opened(options(service)) as steps:
        steps.warm_up()
        service.rejections = 5
        row = steps.run(200.0, "curve")
        assert (row["rejected"], row["failed"], row["sustained"], row["retry_after_s"]) == (5, 0, False, 1)


def test_a_service_that_has_not_come_round_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("tandem.extras.loadtest.measure.time.sleep", waits.append)
    with running(StandIn()) as service, opened(options(service)) as steps:
        service.rejections = 22  # the run's twenty, and two more
        steps.run(200.0, "curve")
    assert waits == [1, 1]  # as Retry-After says


def test_a_service_that_is_gone_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while rates are searched; what was measured before stays."""
    waits: list[float] = []
    monkeypatch.setattr("tandem.extras.loadtest.measure.time.sleep", waits.append)
    with running(StandIn()) as service:

        def lose(steps: Steps) -> float:
            service.status = 500
            return 100.0

        monkeypatch.setattr(Steps, "warm_up", lose)
        found = measure(options(service, rates=""))
    assert sum(waits) == 60
    assert [row["failed"] for row in found["rows"]] == [20]
    assert (found["highest"], found["met"]) == (0.0, False)
    assert any("answers nothing any more: 500" in fault for fault in found["faults"])


def test_the_highest_rate_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that bears 37 requests a second, at most; nothing above ``most`` is sent."""
    rates: list[float] = []

    def run(self: Steps, rate: float, purpose: str) -> dict[str, Any]:
        rates.append(rate)
        row: dict[str, Any] = result()["rows"][0] | {"purpose": purpose, "rate": rate, "sustained": rate <= 37}
        self.rows.append(row)
        return row

    monkeypatch.setattr(Steps, "run", run)
    monkeypatch.setattr(Steps, "warm_up", lambda self: 5.0)
    with running(StandIn()) as service:
        found = measure(options(service, rates=""))
        assert 37 / 1.05 <= found["highest"] <= 37
        assert found["met"]
        assert rates[-len(SHARES) :] == pytest.approx([share * found["highest"] for share in SHARES], rel=1e-3)
        assert [row["rate"] for row in found["rows"]] == sorted(rates)
        assert not measure(options(service, rates="", at_least=38.0))["met"]
        rates.clear()
        assert 9.5 <= measure(options(service, rates="", most=10.0))["highest"] <= 10
        assert max(rates) <= 10
        rates.clear()
        assert measure(options(service, rates="30,60"))["highest"] > 30
        assert rates[:3] == [30.0, 60.0, 30.0]  # the search goes on from what was sustained


def test_a_service_that_answers_nothing_right_is_an_error() -> None:
    with running(StandIn(rejections=10**9)) as service, pytest.raises(ConfigError, match="answered none of"):
        measure(options(service))
    with running(StandIn()) as service:
        with pytest.raises(ConfigError, match="the pair must be one of de-en, but is xx-yy"):
            measure(options(service, pair="xx-yy"))
        with pytest.raises(ConfigError, match="must be a text file"):
            measure(options(service, texts=Path("none.txt")))
    with running(StandIn([{"code": "xx", "targets": ["en"]}])) as service, pytest.raises(ConfigError, match="made in"):
        measure(options(service))
    with running(StandIn(protocol=b"SSH-2.0-x")) as service, pytest.raises(ConfigError, match="must list"):
        measure(options(service))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "either --url"),
        ({"url": "http://a", "bundle": Path("b")}, "either --url"),
        ({"url": "a:8000"}, "--url must be like"),
        ({"url": "http://a/?x=1"}, "--url must be like"),
        ({"url": "http://[::1"}, "--url must be like"),
        ({"url": "http://a:99999"}, "--url must be like"),
        ({"url": "http://a", "rates": "5,2000"}, "at most --most, 1000 a second, but are up to 2000"),
        ({"url": "http://a", "no_search": True}, "there must be --rates"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        LoadOptions(**changes).check()


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.extras.loadtest.options.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"need the package aiohttp: install tandem with its extra \[loadtest\]"):
        LoadOptions(url="http://a").check()
    with pytest.raises(ConfigError, match="matplotlib"):
        loadtest(LoadOptions(url="http://a", plot=Path.cwd()))


def test_rates_are_read() -> None:
    assert parse_rates("20, 5,5,0.5") == (0.5, 5.0, 20.0)
    assert parse_rates("") == ()
    for bad in ("0", "-1", "x", "1,inf", "nan"):
        with pytest.raises(ConfigError, match="--rates must be requests a second above 0"):
            parse_rates(bad)


def test_a_password_is_not_written_down() -> None:
    assert LoadOptions(url="http://me:pass@host:8000/x").where == "http://host:8000/x"


def test_pictures_are_drawn_also_where_no_rate_was_sustained(tmp_path: Path) -> None:
    one = draw_curves(result(), tmp_path / "one.png")
    none = draw_curves(result(highest=0.0, rows=[result()["rows"][3]]), tmp_path / "none.png")
    for path in (one, none):
        assert path.read_bytes().startswith(PNG)
    assert one.read_bytes() != none.read_bytes()


def test_a_service_must_be_named() -> None:
    with pytest.raises(ConfigError, match="give either --url of a running service, or --bundle"):
        loadtest(LoadOptions())
    assert "poisson" in fails("loadtest", "--url", "http://a", "--arrivals", "x", status=2)


def test_the_verdict_says_what_failed() -> None:
    bad = result(highest=0.0, at_least=5.0, faults=["500 broken"])
    assert verdict(bad) == [
        "no rate that was tried kept p99 <= 1,000 ms and nothing rejected",
        "NOT reached: at least 5 requests a second",
        "FAILED: 500 broken",
    ]
    rows = result()["rows"]
    rows[2] |= {"sustained": False, "requests": 60}
    assert [line.split(":")[0] for line in warnings(result(rows=rows))] == [
        "the highest rate was measured twice, and kept once",
        "the p99 at the highest rate is of 60 requests",
    ]
    assert not warnings(result())
    assert warnings(result(highest=10.0))[0].startswith("20/s was kept as well")


def test_the_command_ends_with_the_status(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with running(StandIn()) as service:
        base = ["loadtest", "--url", service.url, "--duration", "0.1", "--rates", "200", "--no-search", "--seed", "1"]
        succeeds(*base, "--out", out, "--json")
        assert json.loads(out.read_text(encoding="utf-8"))["seed"] == 1
        assert "highest rate with p99 <= 1,000 ms and nothing rejected" in succeeds(*base, "--plot", tmp_path)
        assert (tmp_path / "loadtest.png").read_bytes().startswith(PNG)
        fails(*base, "--at-least", "300", status=1)


@pytest.mark.slow
def test_a_real_service_is_started_loaded_and_measured(tmp_path: Path) -> None:
    found = measure(LoadOptions(bundle=SHIPPED, rates="5", duration=4.0, seed=2, no_search=True, p99=60.0))
    assert found["met"], found["faults"]
    assert (found["label"], found["pair"]) == ("de-en", "de-en")
    for row in found["rows"]:
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"]
        assert row["sentences_per_step"] > 0
    assert draw_curves(found, tmp_path / "curve.png").read_bytes().startswith(PNG)


def test_the_image_has_all_that_the_command_imports() -> None:
    """Who loads a service at a URL has the packages of one lock: any other is hidden here."""
    lock = (ROOT / "requirements" / "loadtest.txt").read_text(encoding="utf-8")
    there = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    hidden = [
        name
        for name, owners in packages_distributions().items()
        if name not in ("deploy", "models", "service")
        and not there & {str(canonicalize_name(owner)) for owner in owners}
    ]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
        "import tandem.deploy.cli, tandem.extras.loadtest.command, tandem.extras.loadtest.measure"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_mixture_is_sent() -> None:
    with running(StandIn()) as service:
        found = measure(options(service, scenario="bulk", rates="100", no_search=True))
    assert (found["scenario"], found["met"]) == ("bulk", True)
    assert {len(fields["q"]) for fields in service.sent} == {32}
