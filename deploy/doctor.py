"""`tandem doctor`: whether `tandem serve` can serve here, and what to do where it cannot."""

from __future__ import annotations

import errno
import http.client
import json
import os
import platform
import re
import socket
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from models.command import AsJson
from models.errors import ConfigError, TandemError
from service.bundles.backend import proven
from service.bundles.loading import at_start, list_bundles, open_bundle, prove
from service.configuration import read_configuration
from service.settings import Settings
from service.telemetry.cgroups import machine_memory, memory_limit, usable_cores

_COMFORT = 2  # batches and queues need room beside what is loaded
_SECONDS = 2.0  # for an answer from this machine


@dataclass(frozen=True, slots=True)
class Check:
    """One result: ``fault`` keeps the service from serving, ``warning`` does not; ``remedy`` is what to do."""

    name: str
    verdict: Literal["ok", "warning", "fault"]
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:8}{self.name}: {self.message}" + (f"\n        {self.remedy}" if self.remedy else "")


def doctor(
    bundles: Annotated[
        list[Path] | None,
        typer.Option("--bundle", metavar="BUNDLE", help="Bundle folder, or folder of bundles. [those of the settings]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at this machine as `tandem serve` would find it: settings, bundles, memory, cores, data folder, port.

    Each bundle's files are checked, and it translates a sentence. Every check ends in ok, warning or fault and says
    what to do. The exit status is 0 where the service can serve, 1 where there is a fault. Settings come from the same
    TANDEM_* variables as those of `tandem serve`.

    Example: tandem doctor --bundle bundles/de-en
    """
    settings = read_configuration({"bundles": tuple(bundles)} if bundles else {}).settings
    checks = [*examine(settings)]
    can_serve = all(check.verdict != "fault" for check in checks)
    if as_json:
        print(json.dumps({"can_serve": can_serve, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        print(*checks, f"tandem serve {'can' if can_serve else 'cannot'} serve here", sep="\n")
    raise typer.Exit(0 if can_serve else 1)


def examine(settings: Settings) -> Iterator[Check]:
    """Every check's result. Loads the bundles; memory is looked at once they are."""
    yield from _bundles(settings)
    yield _memory()
    yield _cores(settings)
    yield _data(settings)
    yield _port(settings.host, settings.port)


def _bundles(settings: Settings) -> Iterator[Check]:
    """Each bundle that would be served: its files as the manifest has them, its graphs, and a sentence translated."""
    try:
        served = at_start(list_bundles(settings.bundles), settings)
    except ConfigError as error:
        yield Check("bundles", "fault", str(error), "set TANDEM_BUNDLES, or --bundle, to bundles or folders of them")
        return
    for found in served:
        name = f"bundle {found.name}"
        try:
            loaded = open_bundle(found, settings)
            prove(loaded, settings.probe_timeout)
        except TandemError as error:
            yield Check(name, "fault", str(error), "fetch or export it again, or leave it out of TANDEM_BUNDLES")
            continue
        backend, message = loaded.backend, f"sound, translates a sentence on {loaded.backend}"
        if backend.precision != "int8":
            yield Check(name, "ok", message)
        elif not proven(loaded.bundle, "int8"):
            told = f"{message}, whose accuracy the bundle does not prove"
            yield Check(name, "warning", told, f"prove it: tandem verify {found.path} --record")
        elif lacks_vnni():
            told = (
                f"{message}, but the processor lacks VNNI: pairs of 8-bit products may saturate, which loses accuracy"
            )
            yield Check(name, "warning", told, "compare with tandem evaluate --precision float32")
        else:
            yield Check(name, "ok", message)


def lacks_vnni(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this is an x86 processor known to have no instructions that sum 8-bit products without saturation."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not cpuinfo.is_file():
        return False
    return not re.search(r"^flags\s*:.*\b(avx512_vnni|avx_vnni|amx_int8)\b", cpuinfo.read_text("utf-8"), re.MULTILINE)


def _memory() -> Check:
    """What this process has needed so far, the bundles included, and what it can have at most."""
    if sys.platform == "win32":
        return Check("memory", "ok", "not looked at on this system")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    bound = min(filter(None, (machine_memory(), memory_limit())), default=None)
    message = f"{peak >> 20:,} MiB with all bundles loaded" + ("" if bound is None else f", of {bound >> 20:,} MiB")
    if bound is None or bound >= _COMFORT * peak:
        return Check("memory", "ok", message)
    remedy = "raise the limit, serve fewer bundles, or lower TANDEM_MAX_BATCH_TOKENS and TANDEM_MAX_QUEUE_TOKENS"
    return Check("memory", "warning", f"{message}: batches come on top", remedy)


def _cores(settings: Settings) -> Check:
    cores = usable_cores()
    message = f"decode workers: {settings.decode_workers}, threads of each: {settings.threads}, cores: {cores}"
    if settings.decode_workers * settings.threads <= cores:
        return Check("cores", "ok", message)
    return Check("cores", "warning", message, "lower TANDEM_WORKERS (0 = chosen from the cores) or TANDEM_THREADS")


def _data(settings: Settings) -> Check:
    if settings.data is None:
        return Check("data", "ok", "TANDEM_DATA is not set: nothing outlives a restart")
    folder = settings.data.absolute()
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Check("data", "ok", f"{folder} can be written")
    remedy = "set TANDEM_DATA to a folder of the user that runs the service"
    return Check("data", "fault", f"{there} is no folder that this user can write to", remedy)


def _port(host: str, port: int) -> Check:
    """Whether `tandem serve` could listen there; nothing stays open."""
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in places:
            with socket.socket(family, kind, protocol) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(1)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            remedy = "set TANDEM_HOST and TANDEM_PORT to an address of this machine"
            return Check("port", "fault", f"cannot listen at {host}:{port}: {error.strerror or error}", remedy)
        if _is_service(host, port):
            remedy = "nothing, if it is this service that runs; a second one needs another TANDEM_PORT"
            return Check("port", "warning", f"a Tandem service answers at {host}:{port} already", remedy)
        remedy = "stop the other program, or set TANDEM_PORT (0 = any free one)"
        return Check("port", "fault", f"another program listens at {host}:{port}", remedy)
    return Check("port", "ok", f"{host}:{port} is free" if port else f"any free port at {host}")


def _is_service(host: str, port: int) -> bool:
    """Whether what listens there answers ``/healthz`` as this service does."""
    here = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    try:
        with urllib.request.urlopen(f"http://{here}:{port}/healthz", timeout=_SECONDS) as reply:
            return json.loads(reply.read(4096)) == {"status": "ok"} and "x-request-id" in reply.headers
    except (OSError, http.client.HTTPException, ValueError):
        return False
