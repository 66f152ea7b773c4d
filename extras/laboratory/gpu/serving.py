"""The service with the device under load, and beside it the naive one around CTranslate2."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tandem.extras.laboratory.gpu.lines import Found, Missing
from tandem.extras.laboratory.gpu.peers import ctranslate2_lacks
from tandem.extras.laboratory.gpu.subjects import open_bundle

_NEEDED = ("aiohttp", "fastapi", "prometheus_client", "pydantic_settings", "structlog", "uvicorn")
_TEXTS = 4096
_TYPES = 10_000  # of the naive service's model


def load(*, bundle: str, device: str, clients: int, seconds: float) -> Found:
    """Closed loops of clients against one server, each request one sentence of a forced length; then the other's."""
    read = open_bundle(bundle)
    if absent := [name for name in _NEEDED if find_spec(name) is None]:
        raise Missing(f"not installed: {', '.join(absent)}")
    from tandem.extras.laboratory.service.loaded import LoadedService
    from tandem.extras.laboratory.service.serve import naive_server
    from tandem.extras.laboratory.workload import forced_bodies, forced_texts, naive_bodies, tandem_path
    from tandem.extras.loadtest.server import tandem_server

    settings = {"TANDEM_RUNTIME": "torch", "TANDEM_DEVICE": device}
    beam_size, forced = read.manifest.decoding.beam_size, forced_texts(read, _TEXTS)
    with tandem_server(Path(bundle), 1, settings) as server:
        bodies = forced_bodies(read, forced, beam_size)
        loaded = LoadedService("tandem", server, tandem_path(read), bodies, clients, seconds)
        loaded.warm_up()
        row = loaded.closed("device")
        ready = server.ready_seconds
    summary = f"{_rates(row)}, ready {ready:.1f} s"
    if lacking := ctranslate2_lacks(device):
        return Found(f"{summary}; naive: {lacking}", {**row, "ready_s": ready})
    with ExitStack() as stack, naive_server(Path(bundle), _TYPES, 1, stack, device) as server:
        bodies = naive_bodies(forced, beam_size)
        loaded = LoadedService("naive", server, "/translate", bodies, clients, seconds)
        loaded.warm_up()
        beside = loaded.closed("device")
    return Found(f"{summary}; naive {_rates(beside)}", {**row, "ready_s": ready, "naive": beside})


def _rates(row: Mapping[str, Any]) -> str:
    return f"{row['requests_per_s']:g} requests/s, p50 {row['p50_ms']} ms, p99 {row['p99_ms']} ms"
