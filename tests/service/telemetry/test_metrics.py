"""What the metrics show beyond counts of requests: batches, padding, models, refusals, memory."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.http.test_operations import metrics
from tests.service.support import Served, served

pytestmark = pytest.mark.anyio
CONTRACT = (
    *("tandem_http_requests_total", "tandem_http_requests_in_flight", "tandem_http_request_seconds_bucket"),
    *("tandem_queue_tokens", "tandem_queue_sentences", "tandem_wait_seconds_bucket", "tandem_batch_rows_bucket"),
    *("tandem_padding_share", "tandem_decode_steps_total", "tandem_step_seconds_bucket", "tandem_source_tokens_total"),
    *("tandem_target_tokens_total", "tandem_cache_hits_total", "tandem_rejected_total", "tandem_sentences_total"),
    *("tandem_bundles_loaded", "tandem_engine_info", "tandem_model", "process_resident_memory_bytes"),
)


async def test_every_metric_of_the_contract_is_there(service: Served) -> None:
    await service.translate("guten morgen", alternatives=1)
    await service.translate("guten morgen", api_key="tnd_no-such-key" + "x" * 30)
    await service.translate("x" * 100_000)
    found = await metrics(service.client)
    if sys.platform != "linux":
        found["process_resident_memory_bytes"] = 1  # prometheus_client reads it where there is /proc
    missing = [name for name in CONTRACT if not any(key.partition("{")[0] == name for key in found)]
    assert missing == []
    bounds = {float(key.split("le=")[1].strip("}").split(",")[0]) for key in found if "wait_seconds_bucket" in key}
    assert {0.001, 10.0} <= bounds


async def test_batches_and_padding_are_measured(service: Served) -> None:
    await service.translate("guten morgen wie geht es dir. das haus.")
    found = await metrics(service.client)
    assert found["tandem_batch_rows_count"] == found["tandem_decode_steps_total"]
    assert found["tandem_batch_rows_sum"] == found["tandem_decode_rows_total"]
    assert 0 < found["tandem_padding_share{of=source}"] < 1
    share = found["tandem_source_padding_total"] / found["tandem_source_cells_total"]
    assert found["tandem_padding_share{of=source}"] == pytest.approx(share)


async def test_models_and_refusals_are_named(bundles: dict[str, Bundle]) -> None:
    async with served(bundles, Settings(max_characters=10, shutdown_timeout=5)) as service:
        assert (await service.translate("das haus ist gross")).status_code == 413
        assert (await service.translate("das haus ist gross")).status_code == 413
        service.engine.dispatcher.close()
        assert (await service.translate("haus")).status_code == 503
        found = await metrics(service.client)
        assert found["tandem_rejected_total{reason=too_large}"] == 2
        assert found["tandem_rejected_total{reason=draining}"] == 1
        assert found["tandem_model{alias=de-en,model=de-en,precision=int8,runtime=onnx,state=draining}"] == 1


async def test_the_memory_of_a_gpu_is_shown_where_torch_uses_one(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = {"captures": 3, "capture_failures": 0, "evictions": 0, "replays": 21, "eager_steps": 3}
    counted = {"sentences": 9, "routed": {"sampling": 1}, "unlisted": 4, "out_of_memory": 0}
    work = SimpleNamespace(**graphs, **counted, step_seconds=0.25)
    runtime = SimpleNamespace(
        device_memory=lambda: {("cuda:0", "allocated"): 5},
        device_work=lambda: [("cuda:0", work), ("cuda:0", work)],  # two models on one device
    )
    monkeypatch.setitem(sys.modules, "tandem.service.runtimes.torch", runtime)
    found = await metrics(service.client)
    assert found["tandem_gpu_memory_bytes{device=cuda:0,kind=allocated}"] == 5
    assert found["tandem_device_steps_total{device=cuda:0,how=replayed}"] == 42
    assert found["tandem_device_graphs_total{device=cuda:0,event=captured}"] == 6
    assert found["tandem_device_step_seconds_total{device=cuda:0}"] == 0.5
    assert found["tandem_device_routed_sentences_total{device=cuda:0,option=sampling}"] == 2
    assert found["tandem_device_unlisted_sentences_total{device=cuda:0}"] == 8
    monkeypatch.delitem(sys.modules, "tandem.service.runtimes.torch")
    assert not [name for name in await metrics(service.client) if "gpu" in name or "tandem_device" in name]


def test_memory_is_asked_for_of_the_devices_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking any other would make this process take some of it."""
    torch = pytest.importorskip("torch")
    from tandem.service.runtimes import torch as runtime

    class Opened:
        device = torch.device("cuda:1")

    opened = {Opened(), Opened()}
    monkeypatch.setattr(runtime, "_opened", opened)
    for name, found in (("memory_allocated", 1), ("memory_reserved", 2), ("mem_get_info", (3, 4))):
        monkeypatch.setattr(torch.cuda, name, {Opened.device: found}.__getitem__)
    expected = {"allocated": 1, "reserved": 2, "free": 3}
    assert runtime.device_memory() == {("cuda:1", kind): size for kind, size in expected.items()}
    opened.clear()
    assert runtime.device_memory() == {}
