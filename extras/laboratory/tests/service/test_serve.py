"""What service figures amount to, what is read from a service, and small runs against real ones."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.extras.laboratory.options import ServeOptions
from tandem.extras.laboratory.service import verdicts
from tandem.extras.laboratory.service.loaded import LoadedService
from tandem.extras.laboratory.service.serve import measure
from tandem.extras.laboratory.workload import forced_bodies, forced_texts, naive_bodies
from tandem.extras.loadtest.command import disturbance
from tandem.extras.loadtest.measure import highest_rate
from tandem.extras.loadtest.options import not_answered
from tandem.extras.loadtest.server import Sample, Server, answers, busy_seconds, memory_of, tandem_server
from tandem.extras.shared.report import run_measurement
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.vocabulary import WordVocabulary
from tandem.service.engine import Engine
from tandem.service.telemetry.metrics import Metrics
from tests.command import fails, succeeds
from tests.service.support import tiny_bundle
from tests.shipped import SHIPPED


def row(**figures: Any) -> dict[str, Any]:
    return {"rejected": 0, "failed": 0, "unfinished": 0, "p50_ms": 100.0, "p99_ms": 200.0, "rate": 65.0, **figures}


def test_the_service_target_is_a_share_of_the_naive_ones_tail() -> None:
    peers = [row(requests_per_s=50.0, p99_ms=900.0), row(requests_per_s=52.0, p99_ms=1000.0)]
    reached = verdicts.service_verdict(peers, [row(p99_ms=300.0), row(p99_ms=300.0)], 1.3).mapping()
    assert reached["met"] is True
    assert reached["value"] == pytest.approx((300 / 900 + 300 / 1000) / 2, abs=1e-4)
    assert (reached["naive_requests_per_s"], reached["naive_p99_ms"]) == (51.0, 950.0)
    slow = verdicts.service_verdict(peers, [row(p99_ms=400.0), row(p99_ms=400.0)], 1.3)
    assert slow.met is False


@pytest.mark.parametrize("spoiled", [{"rejected": 1}, {"failed": 1}, {"unfinished": 1}, {"p99_ms": None}])
def test_one_request_without_an_answer_misses_the_target(spoiled: dict[str, Any]) -> None:
    peers = [row(requests_per_s=50.0, p99_ms=9000.0)]
    verdict = verdicts.service_verdict(peers, [row(**spoiled)], 1.3)
    assert verdict.met is False
    assert "NOT reached" in verdicts.in_words(verdict.mapping())
    json.dumps(verdict.mapping(), allow_nan=False)


def test_the_tail_is_the_ratio_of_two_percentiles() -> None:
    verdict = verdicts.tail_verdict(100.0, [row(p99_ms=290.0), row(p99_ms=310.0), row(p99_ms=250.0)])
    assert (verdict.value, verdict.met) == (2.9, True)
    assert verdict.mapping()["rate"] == 70.0
    assert verdicts.tail_verdict(100.0, [row(p99_ms=310.0)]).met is False
    assert verdicts.tail_verdict(0.0, []).met is False  # no capacity, no figure


def test_memory_and_start_have_bounds() -> None:
    assert verdicts.memory_verdict({"rss_mb": 249.0}).met is True
    assert verdicts.memory_verdict({"rss_mb": 251.0}).met is False
    assert verdicts.memory_verdict({}).met is False  # a system that does not tell proves nothing
    assert verdicts.ready_verdict(4.0).met is True
    assert verdicts.ready_verdict(6.0).met is False


def test_others_at_work_are_told() -> None:
    assert disturbance([row(others_cores=0.1), row()]) == ""
    assert "up to 1.5 cores" in disturbance([row(others_cores=0.1), row(others_cores=1.5)])


@given(st.floats(1, 1000), st.floats(0.2, 5))
def test_capacity_is_found_from_below_or_above(true: float, start: float) -> None:
    tried: list[float] = []

    def sustains(rate: float) -> bool:
        tried.append(rate)
        return rate <= true

    found = highest_rate(sustains, start * true, 1.3)
    assert true / 1.05 <= found <= true
    assert found in tried
    assert len(tried) <= 12


def test_a_service_that_sustains_nothing_has_no_capacity() -> None:
    assert highest_rate(lambda rate: False, 100.0, 1.3) == 0.0


def test_metrics_are_read_as_the_service_writes_them() -> None:
    engine, metrics = Engine(), Metrics()
    metrics.watch(engine)

    def sample() -> Sample:
        return Sample.of(metrics.render()[0].decode())

    before = sample()
    assert before.since(before)["sentences_per_step"] is None
    counters = engine.dispatcher.counters
    counters.steps, counters.sentence_steps, counters.rows, counters.dead_rows = 10, 40, 200, 20
    counters.source_cells, counters.source_padding, counters.slot_cells, counters.slot_padding = 100, 25, 80, 60
    counters.target_tokens = 70
    middle = sample()
    assert middle.since(before) == {
        "target_tokens": 70.0,
        "sentences_per_step": 4.0,
        "source_padding": 0.25,
        "slot_padding": 0.75,
        "dead_rows": 0.1,
    }
    counters.steps, counters.sentence_steps = 20, 120
    assert sample().since(middle)["sentences_per_step"] == 8.0


def test_labelled_metrics_are_summed() -> None:
    found = Sample.of('# TYPE a counter\na_total{x="1"} 2\na_total{x="2"} 3\n')
    assert found.values["a_total"] == 5.0


def test_forced_texts_are_distinct_sentences_within_the_limits(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path)
    found = forced_texts(bundle, 100)
    vocabulary = bundle.source_vocabularies[0]
    assert len({one.text for one in found}) == len(found) > 50
    assert all(one.tokens == len(vocabulary.encode(one.text)) <= 40 for one in found)
    body = json.loads(forced_bodies(bundle, found, beam_size=3)[0])
    assert (body["min_length"], body["max_length"], body["beam_size"]) == (found[0].tokens, found[0].tokens, 3)
    wanted = {"q": found[0].text, "length": found[0].tokens, "beam_size": 3}
    assert json.loads(naive_bodies(found, 3)[0]) == wanted


def test_a_service_that_does_not_start_shows_its_log() -> None:
    with pytest.raises(ConfigError, match=r"ended with status 3: no bundle here"), _failing():
        pass


def _failing() -> Server:
    return Server(("-c", "import sys; print('no bundle here'); sys.exit(3)"), "/readyz")


def test_options_out_of_bounds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--rate must be above 0"):
        measure(ServeOptions(bundle=tmp_path, rates=[5.0, math.inf]))
    with pytest.raises(ConfigError, match="--out must be a file"):
        run_measurement(ServeOptions(bundle=tmp_path, out=tmp_path), measure, print)


def test_memory_and_processor_are_read_where_the_system_tells() -> None:
    memory = memory_of(os.getpid())
    if not Path("/proc/self/status").exists():
        assert memory == {}
        return
    assert 1 < memory["anonymous_mb"] < memory["rss_mb"]
    assert (busy_seconds() or 0) > 0
    assert memory_of(2**30) == {}  # no such process


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with tandem_server(SHIPPED, workers=1) as server:
        yield server


def test_a_service_under_load_leaves_rows(served: Server) -> None:
    bundle = Bundle.load(SHIPPED)
    forced = forced_texts(bundle, 50)
    trial = LoadedService("tandem", served, "/translate", forced_bodies(bundle, forced[:20], 2), 2, 0.4)
    trial.warm_up()
    closed, opened = trial.closed("closed loop"), trial.open(20.0, "given rate", number=1)
    assert trial.rows == [closed, opened]
    for found in trial.rows:
        assert found["requests"] > 0
        assert (not_answered(found), found.get("fault")) == (0, None)
        assert 0 < found["p50_ms"] <= found["p99_ms"] <= found["max_ms"]
        assert found["sentences_per_step"] > 0
    assert (closed["clients"], opened["rate"], opened["pass"]) == (2, 20.0, 1)
    assert served.ready_seconds > 0
    json.dumps(trial.rows, allow_nan=False)


def test_the_forced_length_is_what_the_service_decodes(served: Server) -> None:
    """What makes the work equal for every system: as many target tokens as asked for."""
    bundle = Bundle.load(SHIPPED)
    forced = forced_texts(bundle, 5)
    trial = LoadedService("tandem", served, "/translate", forced_bodies(bundle, forced, 2), 1, 0.01)
    before = Sample.fetch(served.url).values["tandem_target_tokens_total"]
    trial.closed("closed loop")  # of one client and a hundredth of a second: one request at least, from the first on
    sent = trial.rows[0]["requests"]
    expected = sum(forced[number % 5].tokens for number in range(sent))
    assert Sample.fetch(served.url).values["tandem_target_tokens_total"] - before == expected


def test_a_route_that_is_not_there_is_no_capacity(served: Server) -> None:
    trial = LoadedService("tandem", served, "/none", [b"{}"], 1, 0.05)
    assert trial.capacity(50.0) == 0.0
    assert trial.rows[0]["failed"] > 0


@pytest.mark.parametrize("command", ["serve", "reliability"])
def test_the_commands_explain_themselves_with_an_example(command: str) -> None:
    assert f"tandem bench {command} --bundle" in succeeds("bench", command, "--help")


def test_a_peer_that_nobody_knows_is_refused() -> None:
    assert "--peers must be of naive" in fails("bench", "serve", "--bundle", "none", "--peers", "marian", status=2)


def test_a_server_ends_with_its_block() -> None:
    with Server(("-m", "http.server", "{port}", "--bind", "127.0.0.1"), "/") as server:
        assert answers(server.url)
    assert not answers(server.url)


@pytest.mark.slow
def test_the_naive_service_translates_to_the_length_asked_for(tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2", reason="the naive service stands on ctranslate2")
    from tandem.extras.laboratory.decoding.conversion import write_random
    from tandem.extras.laboratory.service import naive
    from tandem.extras.laboratory.workload import TransformerSize

    folder = tmp_path / "model"
    folder.mkdir()
    write_random(folder, TransformerSize(layers=1, width=16, hidden=32, heads=2, positions=64), 40, "int8")
    words = naive.words_of(folder)
    assert len(words) == 40
    vocabulary = WordVocabulary([f"w{number}" for number in range(100)])  # more types than the model has
    translator = ctranslate2.Translator(str(folder), compute_type="int8", inter_threads=1, intra_threads=1)
    transport = httpx.ASGITransport(naive.create_app(translator, vocabulary, vocabulary, words))

    async def talk() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://naive") as client:
            assert (await client.get("/healthz")).status_code == 200
            for length in (1, 7):
                fields = {"q": "w1 w2 w90", "length": length, "beam_size": 2}
                reply = await client.post("/translate", json=fields)
                assert reply.status_code == 200
                assert reply.json()["tokens"] == length
            assert (await client.post("/translate", json={"q": "w1"})).status_code == 422

    asyncio.run(talk())


@pytest.mark.slow
def test_both_services_in_one_run(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="the naive service stands on ctranslate2")
    load: dict[str, Any] = {"clients": 4, "duration": 1.0, "passes": 1, "rates": [5.0], "beam_size": 2}
    result = measure(ServeOptions(bundle=SHIPPED, peers="naive", **load))
    assert {row["system"] for row in result["rows"]} == {"naive", "tandem"}
    assert set(result["targets"]) == {"memory_after_load", "cold_start", "service", "service_aim", "tail"}
    factor = result["targets"]["service"]["rate"] / result["targets"]["service"]["naive_requests_per_s"]
    assert factor == pytest.approx(1.3, rel=0.01)
    small = ["--clients", "2", "--duration", "0.3", "--passes", "1", "--beam", "1", "--out", str(tmp_path / "out.json")]
    succeeds("bench", "serve", "--bundle", SHIPPED, *small)
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["targets"]["tail"]["bound"] == 3.0
