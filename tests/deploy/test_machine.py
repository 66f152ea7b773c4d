"""What a machine is found to offer, from small invented files; and who has the service's port."""

from __future__ import annotations

import platform
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy import machine
from deploy.doctor.port import find_port
from deploy.machine import (
    ARM_FEATURES,
    X86_FEATURES,
    Processor,
    find_clock,
    find_memory,
    find_processor,
    named_features,
    parse_cpuinfo,
    parse_meminfo,
)

X86 = """processor\t: 0
vendor_id\t: Maker
model name\t: Some Processor @ 2.0GHz
flags\t\t: fpu avx2 avx512f avx512_vnni amx_tile amx_int8

processor\t: 1
model name\t: Another Processor
flags\t\t: fpu
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


def processor(features: Mapping[str, bool], architecture: str = "x86_64") -> Processor:
    return Processor("invented", architecture, 4, 4, None, 4, features)


@pytest.mark.parametrize(
    ("text", "name", "flags"),
    [
        (X86, "Some Processor @ 2.0GHz", {"fpu", "avx2", "avx512f", "avx512_vnni", "amx_tile", "amx_int8"}),
        (ARM, "ARM implementer 0x41 part 0xd40", {"fp", "asimd", "asimddp", "i8mm"}),
        ("cpu\t: POWER9\n", "", set()),
        ("", "", set()),
    ],
)
def test_the_first_processor_counts(text: str, name: str, flags: set[str]) -> None:
    assert parse_cpuinfo(text) == (name, frozenset(flags))


def test_features_have_the_names_of_their_architecture() -> None:
    found = named_features(parse_cpuinfo(X86)[1], "x86_64")
    assert tuple(found) == X86_FEATURES
    assert {name for name, there in found.items() if there} == {"avx2", "avx512f", "avx512_vnni", "amx_int8"}
    of_arm = named_features(parse_cpuinfo(ARM)[1], "aarch64")
    assert of_arm == {"dotprod": True, "i8mm": True, "bf16": False}
    assert tuple(of_arm) == tuple(ARM_FEATURES)


@pytest.mark.parametrize(
    ("features", "vnni"),
    [
        ({"avx2": True, "avx512_vnni": False, "avx_vnni": True, "amx_int8": False}, True),
        ({"avx2": True, "avx512_vnni": False, "avx_vnni": False, "amx_int8": False}, False),
        ({"avx512_vnni": False}, False),
        ({"avx2": True}, None),
        ({}, None),
    ],
)
def test_vnni_is_any_of_three(features: dict[str, bool], vnni: bool | None) -> None:
    assert processor(features).has_vnni is vnni


def test_numpy_tells_what_the_system_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_processor(tmp_path)  # a system without /proc
    assert found.cores >= found.usable_cores >= 1
    assert found.name
    known = set(ARM_FEATURES) if platform.machine() in ("aarch64", "arm64") else set(X86_FEATURES)
    assert set(found.features) <= known
    monkeypatch.setattr(machine, "import_module", lambda name: object())  # not the NumPy that we know
    assert find_processor(tmp_path).features == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n", (2 << 20, 1 << 20)),
        ("MemTotal:       2048 kB\n", (2 << 20, None)),
        ("MemTotal: many kB\nMemAvailable: 7\n", (None, None)),
        ("", (None, None)),
    ],
)
def test_memory(text: str, found: tuple[int | None, int | None]) -> None:
    assert parse_meminfo(text) == found


@given(text=st.text(alphabet=st.sampled_from("MemTotal:Available flags\t\nkB0123456789 "), max_size=200))
def test_odd_files_are_read_without_an_error(text: str) -> None:
    total, available = parse_meminfo(text)
    assert total is None or total >= 0
    assert available is None or available >= 0
    name, flags = parse_cpuinfo(text)
    assert isinstance(name, str)
    assert all(flag and " " not in flag for flag in flags)


def test_a_container_is_seen_as_it_is(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": X86,
        "proc/meminfo": "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cpu.max": "100000 100000\n",
        "sys/fs/cgroup/memory.max": "268435456\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = find_processor(tmp_path)
    assert (found.name, found.quota, found.usable_cores) == ("Some Processor @ 2.0GHz", 1.0, 1)
    memory = find_memory(tmp_path)
    assert (memory.total, memory.available, memory.limit) == (1 << 30, 1 << 29, 1 << 28)
    assert memory.bound == 1 << 28
    assert find_clock(tmp_path).source == "tsc"
    assert find_clock(tmp_path / "nowhere").source == ""


def test_what_is_not_installed_or_does_not_answer_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(machine, "import_module", missing)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(machine, "_SMI", (sys.executable, "-c", "print('One GPU, 8 GiB, 1.0'); print()"))
    found = machine.find_gpu()
    assert (found.nvidia_smi, found.onnxruntime_providers, found.torch_devices) == (("One GPU, 8 GiB, 1.0",), (), None)
    monkeypatch.setattr(machine, "_SMI", (sys.executable, "-c", "raise SystemExit('no driver')"))
    assert machine.find_gpu().nvidia_smi == ()
    monkeypatch.setattr(machine, "_SMI", ("no-such-program-anywhere",))
    assert machine.find_gpu().nvidia_smi == ()


def test_versions_are_of_what_is_installed() -> None:
    versions = machine.find_versions()
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"numpy", "sentencepiece"} <= versions.keys()
    assert all(versions.values())
    assert set(machine.installed_onnx_runtimes()) <= set(machine.ONNX_RUNTIMES)


# --- port -----------------------------------------------------------------------------------------------------------


@contextmanager
def answering(body: bytes, **headers: str) -> Iterator[int]:
    """A server that gives every request this reply; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_free_port_stays_free() -> None:
    assert find_port("127.0.0.1", 0).state == "free"
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    assert [find_port("127.0.0.1", port).state for _ in range(2)] == ["free", "free"]


@pytest.mark.parametrize(
    ("body", "headers", "state"),
    [
        (b'{"status":"ok"}', {"x_request_id": "1"}, "service"),
        (b'{"status":"ok"}', {}, "taken"),
        (b"<html>", {"x_request_id": "1"}, "taken"),
    ],
)
def test_who_has_a_port(body: bytes, headers: dict[str, str], state: str) -> None:
    with answering(body, **headers) as port:
        assert find_port("127.0.0.1", port).state == state


def test_an_address_of_another_machine_is_not_usable() -> None:
    found = find_port("192.0.2.1", 80)  # reserved for documentation
    assert found.state == "unusable"
    assert found.error
