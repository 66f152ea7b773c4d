"""The service with the device under load."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from benchmarks.gpu.lines import Found, Missing

_NEEDED = ("aiohttp", "fastapi", "prometheus_client", "pydantic_settings", "structlog", "uvicorn")
_TEXTS = 4096


def load(*, bundle: str, device: str, clients: int, seconds: float) -> Found:
    """Closed loops of clients against one server, each request one sentence of a forced length."""
    if not bundle:
        raise Missing("needs --bundle")
    if absent := [name for name in _NEEDED if find_spec(name) is None]:
        raise Missing(f"not installed: {', '.join(absent)}")
    from benchmarks.service.loaded import LoadedService
    from benchmarks.workload import forced_bodies, forced_texts, tandem_path
    from deploy.loadtest.server import tandem_server
    from models.bundle import Bundle

    settings = {"TANDEM_RUNTIME": "torch", "TANDEM_DEVICE": device}
    read = Bundle.load(bundle)
    bodies = forced_bodies(read, forced_texts(read, _TEXTS), read.manifest.decoding.beam_size)
    with tandem_server(Path(bundle), 1, settings) as server:
        loaded = LoadedService("tandem", server, tandem_path(read), bodies, clients, seconds)
        loaded.warm_up()
        row = loaded.closed("device")
        ready = server.ready_seconds
    figures = {**row, "ready_s": ready}
    summary = (
        f"{row['requests_per_s']:g} requests/s, p50 {row['p50_ms']} ms, p99 {row['p99_ms']} ms, ready {ready:.1f} s"
    )
    return Found(summary, figures)
