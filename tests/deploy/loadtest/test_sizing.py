"""How many replicas a load takes: arithmetic by hand, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from deploy.cli import app
from deploy.loadtest.options import SizingOptions
from deploy.loadtest.sizing import replica_at, size
from models.errors import ConfigError


def row(rate: float, p99: float | None, **changes: float) -> dict[str, Any]:
    """One run of 100 requests of 50 characters and 10 target tokens each."""
    figures = {"rejected": 0, "failed": 0, "unfinished": 0, "requests": 100, "target_tokens": 1000.0, "rss_mb": 200.0}
    return {"rate": rate, "p99_ms": p99, "requests_per_s": rate, "characters_per_s": 50 * rate, **figures, **changes}


def measured(*rows: dict[str, Any], bound: float = 1000.0) -> dict[str, Any]:
    head = {"loadtest": 1, "label": "one", "pair": "de-en", "arrivals": "poisson"}
    return {**head, "p99_bound_ms": bound, "highest": 20.0, "rows": list(rows)}


def options(**changes: Any) -> SizingOptions:
    return SizingOptions(load=Path("load.json"), **changes)


def test_by_hand() -> None:
    """20/s at the bound; 14 of them are planned with: 100/s take 8 replicas and a spare one, of 2 cores each."""
    result = size(measured(row(10, 400), row(20, 900), row(30, 2500)), options(rates="100", core_price=0.05))
    (found,) = result["rows"]
    assert (found["replicas"], found["cores"], found["memory_gb"]) == (9, 18, 1.8)
    assert found["target_tokens_per_s"] == 1000
    assert found["price_per_hour"] == pytest.approx(0.9)
    # 100 requests of 50 characters a second are 18 million characters an hour.
    assert found["price_per_million_characters"] == pytest.approx(0.9 / 18)


def test_a_tighter_bound_leaves_less() -> None:
    result = size(measured(row(10, 400), row(20, 900)), options(rates="7,8", p99=0.5, spare=0))
    assert (result["p99_ms"], [one["replicas"] for one in result["rows"]]) == (500, [1, 2])


def test_a_rate_that_was_kept_once_of_twice_was_not_borne() -> None:
    assert replica_at([row(10, 400), row(20, 300), row(20, 700), row(30, 400)], 500).rate == 10


@pytest.mark.parametrize("name", ["rejected", "failed", "unfinished"])
def test_what_was_not_answered_was_not_borne(name: str) -> None:
    assert replica_at([row(10, 400), row(20, 400, **{name: 1}), row(30, 400)], 1000).rate == 10


def test_of_a_service_seen_from_outside_memory_and_tokens_are_unknown() -> None:
    outside = {key: value for key, value in row(10, 400).items() if key not in ("rss_mb", "target_tokens")}
    (found,) = size(measured(outside), options(rates="1"))["rows"]
    assert (found["memory_gb"], found["target_tokens_per_s"], found["price_per_hour"]) == (None, None, None)


@pytest.mark.parametrize("p99", [1500.0, None])
def test_a_bound_that_nothing_kept_is_refused(p99: float | None) -> None:
    with pytest.raises(ConfigError, match=r"no rate kept a p99 of 1000 ms: the lowest that was measured is 5/s"):
        size(measured(row(5, p99)), options())


@given(st.floats(0.1, 1e6), st.floats(0.05, 1), st.integers(0, 5))
def test_replicas_without_the_spare_ones_bear_the_load(rate: float, use: float, spare: int) -> None:
    (found,) = size(measured(row(20, 900)), options(rates=str(rate), use=use, spare=spare))["rows"]
    assert (found["replicas"] - spare) * 20 * use >= rate * (1 - 1e-9)
    assert (found["replicas"] - spare - 1) * 20 * use < rate


def test_the_command_reads_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    path.write_text(json.dumps(measured(row(10, 400), row(20, 900))), encoding="utf-8")
    reply = CliRunner().invoke(app, ["size", str(path), "--rates", "100", "--core-price", "0.05"])
    assert reply.exit_code == 0, reply.output
    assert "20 requests a second of 50 characters and 10 target tokens each; 70%" in reply.output
    as_json = CliRunner().invoke(app, ["size", str(path), "--rates", "100", "--json"])
    assert json.loads(as_json.stdout)["rows"][0]["replicas"] == 9
    assert CliRunner().invoke(app, ["size", str(tmp_path / "none.json")]).exit_code
