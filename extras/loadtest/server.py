"""Services in processes of their own, and what they cost: seconds until ready, memory, processor time, metrics."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from prometheus_client.parser import text_string_to_metric_families

from tandem.extras.loadtest.client import LoadRun
from tandem.extras.loadtest.scenarios import DIRECT
from tandem.models.errors import ConfigError

_ROOT = Path(__file__).absolute().parents[3]  # what `tandem` lies in
_STARTS_WITHIN = 120.0  # seconds
_ENDS_WITHIN = 40.0  # seconds: the service lets running work finish for 30
_SHOWN_LOG = 2_000  # characters of the log of a service that did not start
_MEMORY = {"VmRSS": "rss_mb", "RssAnon": "anonymous_mb", "VmHWM": "peak_mb"}


class Server:
    """A service in a process of its own, from ``with`` on: started, waited for until it is ready, and ended.

    Attributes:
        url: ``http://127.0.0.1:PORT``.
        ready_seconds: from the start of the process until it was ready.
    """

    def __init__(self, arguments: Sequence[str], ready: str, environment: Mapping[str, str] | None = None) -> None:
        """
        Args:
            arguments: of the Python interpreter; ``{port}`` in them is replaced by a free port.
            ready: path that answers 200 once the service is ready.
            environment: variables besides those of this process.
        """
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.ready_seconds = 0.0
        self._command = [sys.executable, *(argument.replace("{port}", str(port)) for argument in arguments)]
        self._ready = self.url + ready
        self._environment = {**os.environ, "PYTHONPATH": _python_path(), **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Server:
        self._log = tempfile.TemporaryFile()
        started = time.perf_counter()
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        try:
            self._wait(started)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.ready_seconds = time.perf_counter() - started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._log is not None:
            self._log.close()

    @property
    def pid(self) -> int:
        """Of the process. Raises RuntimeError outside of ``with``."""
        if self._process is None:
            raise RuntimeError("the service has not been started")
        return self._process.pid

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float) -> int | None:
        """The exit status once the process has ended; None where it has not within so many seconds."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def log(self) -> str:
        """What it has logged so far."""
        assert self._log is not None
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def memory(self) -> dict[str, float]:
        """Resident memory of the process: ``rss_mb`` and ``anonymous_mb`` of :func:`memory_of`."""
        return {name: value for name, value in memory_of(self.pid).items() if name in ("rss_mb", "anonymous_mb")}

    def processor_seconds(self) -> float | None:
        """Processor time of the process since its start; None where the system has no /proc."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime

    def _wait(self, started: float) -> None:
        """Until it is ready. Raises ConfigError, with the end of its log, where it ends or takes too long."""
        assert self._process is not None and self._log is not None
        while time.perf_counter() - started < _STARTS_WITHIN:
            if answers(self._ready):
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        log = self.log()[-_SHOWN_LOG:].strip()
        state = self._process.poll()
        what = f"did not answer within {_STARTS_WITHIN:g} s" if state is None else f"ended with status {state}"
        raise ConfigError(f"the service {' '.join(self._command[1:])} {what}: {log or 'it wrote no log'}")


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of Tandem's /metrics at one moment: values by name, summed over labels."""

    values: Mapping[str, float]

    @classmethod
    def of(cls, exposition: str) -> Sample:
        """Read the text of /metrics."""
        values: dict[str, float] = {}
        for family in text_string_to_metric_families(exposition):
            for sample in family.samples:
                if not sample.name.endswith("_bucket"):
                    values[sample.name] = values.get(sample.name, 0.0) + sample.value
        return cls(values)

    @classmethod
    def fetch(cls, url: str) -> Sample:
        """Ask a running service. Raises ConfigError where it does not answer."""
        try:
            with DIRECT.open(f"{url}/metrics", timeout=10) as response:
                return cls.of(response.read().decode())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{url}/metrics must be the metrics of a running service: {error}") from error

    def since(self, earlier: Sample) -> dict[str, float | None]:
        """How batches were filled between two moments; None where nothing was decoded.

        Returns:
            ``target_tokens`` of the best hypotheses, ``sentences_per_step``, and shares of 1: ``source_padding`` and
            ``slot_padding`` of the positions read, ``dead_rows`` of the rows decoded.
        """

        def ratio(part: str, whole: str) -> float | None:
            parts, wholes = (self._delta(earlier, f"tandem_{name}_total") for name in (part, whole))
            return round(parts / wholes, 4) if wholes else None

        return {
            "target_tokens": self._delta(earlier, "tandem_target_tokens_total"),
            "sentences_per_step": ratio("decode_sentence_steps", "decode_steps"),
            "source_padding": ratio("source_padding", "source_cells"),
            "slot_padding": ratio("slot_padding", "slot_cells"),
            "dead_rows": ratio("decode_dead_rows", "decode_rows"),
        }

    def _delta(self, earlier: Sample, name: str) -> float:
        return self.values.get(name, 0.0) - earlier.values.get(name, 0.0)


def tandem_server(bundle: Path, workers: int, settings: Mapping[str, str] | None = None) -> Server:
    """`tandem serve` with the result cache off.

    Args:
        bundle: its folder.
        workers: decode workers; 0 = as the service chooses.
        settings: further ``TANDEM_*`` variables.
    """
    arguments = ("-m", "tandem", "serve", str(bundle), "--host", "127.0.0.1", "--port", "{port}")
    environment = {"TANDEM_CACHE_SENTENCES": "0", **(settings or {})}
    return Server((*arguments, "--workers", str(workers)), "/readyz", environment)


def watched(server: Server, load: Callable[[], LoadRun], *, metrics: bool = True) -> tuple[LoadRun, dict[str, Any]]:
    """Load a service, and look at it before and after.

    Args:
        server: running.
        load: it.
        metrics: whether it has those of Tandem.

    Returns:
        The run, and figures: of :meth:`Sample.since`, processor time of the service for a request, how many cores
        others kept busy meanwhile, and the service's memory; without those that this system does not tell.
    """
    earlier = Sample.fetch(server.url) if metrics else None
    served, busy, began = server.processor_seconds(), busy_seconds(), time.perf_counter()
    run = load()
    seconds, served_now, busy_now = time.perf_counter() - began, server.processor_seconds(), busy_seconds()
    figures: dict[str, Any] = {} if earlier is None else Sample.fetch(server.url).since(earlier)
    if served is not None and served_now is not None:
        used = served_now - served
        figures["server_cpu_ms"] = round(1e3 * used / max(1, len(run.outcomes)), 2)
        if busy is not None and busy_now is not None:
            figures["others_cores"] = round(max(0.0, busy_now - busy - used - run.cpu) / seconds, 2)
    return run, figures | {name: round(value, 1) for name, value in server.memory().items()}


def memory_of(process: int | str = "self") -> dict[str, float]:
    """Memory of a process in MB (10^6 bytes); empty where the system has no /proc.

    Returns:
        ``rss_mb`` resident in all, ``anonymous_mb`` of it the process's own, and ``peak_mb``, the most that was
        ever resident.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return {ours: int(fields[theirs][0]) * 1024 / 1e6 for theirs, ours in _MEMORY.items() if fields.get(theirs)}


def busy_seconds() -> float | None:
    """Processor time that everything on the machine has used since it started; None where there is no /proc.

    Others who use the cores beside a service make its figures worse: this tells how much they did.
    """
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(int, fields[:8])
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


def answers(url: str) -> bool:
    """Whether a GET is answered with 200."""
    try:
        with DIRECT.open(url, timeout=30) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def settings_in_force() -> dict[str, Any]:
    """The ``TANDEM_*`` variables that a service started here gets from outside: they belong to a figure."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("TANDEM_")}


def _python_path() -> str:
    """This checkout first, so that the service is the one beside this client."""
    return os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
