"""`tandem doctor`: each check with its verdicts, its JSON and exit status."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy import doctor
from deploy.cli import app
from deploy.doctor import Check, examine, lacks_vnni
from models.bundle import Bundle, add_built
from models.search import Graphs
from service.settings import Settings
from tests.service.support import copying, tiny_bundle

ROOT = Path(__file__).resolve().parents[2]
PROOF = {"quantised": [{"runtime": "onnx int8", "passed": True}]}


def holding(folder: Path, name: str = "de-en", **changes: Any) -> Path:
    """A bundle with files where int8 graphs would lie."""
    made = tiny_bundle(folder, name, **changes)
    add_built(made.path, "onnx/int8", {"encode.onnx": b"", "step.onnx": b""})
    return made.path


@pytest.fixture
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one bundle without a fault, whose graphs open; the processor has VNNI."""

    def opener(bundle: Bundle, *_: object) -> Graphs:
        return copying(bundle)

    monkeypatch.setattr("service.bundles.loading.open_graphs", opener)
    monkeypatch.setattr(doctor, "lacks_vnni", lambda: False)
    holding(tmp_path / "bundles", proof=PROOF)
    return tmp_path / "bundles"


def checks(folder: Path, **settings: Any) -> dict[str, Check]:
    """By name."""
    given: dict[str, Any] = {"bundles": (folder,), "port": 0, "workers": 1} | settings
    found = [*examine(Settings(**given))]
    assert all(bool(check.remedy) == (check.verdict != "ok") for check in found), "a check says what to do"
    return {check.name: check for check in found}


def test_a_healthy_machine_can_serve(sound: Path) -> None:
    found = checks(sound)
    assert [*found] == ["bundle de-en", "memory", "cores", "data", "port"]
    assert {check.verdict for check in found.values()} == {"ok"}


@pytest.mark.parametrize(
    ("name", "changed", "settings", "verdict", "said"),
    [
        ("cores", {"usable_cores": 2}, {"workers": 3}, "warning", "decode workers: 3, threads of each: 1, cores: 2"),
        ("cores", {"usable_cores": 2}, {"threads": 3}, "warning", "threads of each: 3"),
        ("cores", {"usable_cores": 2}, {"workers": 2}, "ok", "cores: 2"),
        ("memory", {"memory_limit": 1 << 20}, {}, "warning", "of 1 MiB: batches come on top"),
        ("memory", {"machine_memory": 1 << 20, "memory_limit": 1 << 40}, {}, "warning", "of 1 MiB"),
        ("memory", {"machine_memory": None, "memory_limit": None}, {}, "ok", "with all bundles loaded"),
        ("bundle de-en", {"lacks_vnni": True}, {}, "warning", "lacks VNNI"),
        ("bundle de-en", {"lacks_vnni": True}, {"runtime": "torch"}, "ok", "on torch float32"),
        ("data", {}, {"data": Path("/proc/cpuinfo/data")}, "fault", "/proc/cpuinfo is no folder that this user"),
        ("port", {}, {"host": "203.0.113.1", "port": 8000}, "fault", "cannot listen at 203.0.113.1:8000"),
    ],
)
def test_verdicts(
    sound: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    changed: dict[str, Any],
    settings: dict[str, Any],
    verdict: str,
    said: str,
) -> None:
    for function, value in changed.items():
        monkeypatch.setattr(doctor, function, lambda value=value: value)
    check = checks(sound, **settings)[name]
    assert (check.verdict, said in check.message) == (verdict, True), check


@pytest.mark.parametrize(
    ("text", "lacks"),
    [("flags\t\t: fpu avx2\n", True), ("flags\t\t: fpu avx_vnni\n", False), ("flags : amx_int8 avx512f\n", False)],
)
def test_one_of_three_instructions_does(
    text: str, lacks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(text, encoding="utf-8")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert lacks_vnni(tmp_path / "cpuinfo") is lacks
    assert not lacks_vnni(tmp_path / "gone")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert not lacks_vnni(tmp_path / "cpuinfo")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_folder_that_cannot_be_written(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    assert checks(sound, data=tmp_path / "data")["data"].verdict == "fault"


def test_a_data_folder_is_looked_at_and_not_made(sound: Path, tmp_path: Path) -> None:
    assert checks(sound, data=tmp_path / "new" / "data")["data"].verdict == "ok"
    assert not (tmp_path / "new").exists()


# --- bundles --------------------------------------------------------------------------------------------------------


def test_what_cannot_be_served_is_at_fault(sound: Path) -> None:
    altered = holding(sound.parent / "a", "altered")
    (altered / "weights.safetensors").write_bytes(b"short")
    holding(sound.parent / "b", "odd", task="postedit")
    holding(sound.parent / "c", "unproven")
    found = checks(sound, bundles=tuple(sound.parent / name for name in ("a", "b", "c", "bundles")))
    assert "altered or truncated" in found["bundle altered"].message
    assert "2 sources" in found["bundle odd"].message
    assert found["bundle unproven"].verdict == "warning"
    assert "does not prove" in found["bundle unproven"].message
    assert found["bundle de-en"].verdict == "ok"
    holding(sound.parent / "d", "odd")
    twins = checks(sound, bundles=(sound.parent / "b", sound.parent / "d"))["bundles"]
    assert (twins.verdict, "is named 'odd' already" in twins.message) == ("fault", True)
    gone = checks(sound, bundles=(sound.parent / "nothing",))["bundles"]
    assert (gone.verdict, "is no folder" in gone.message) == ("fault", True)


def test_a_bundle_that_decodes_nothing_is_at_fault(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(bundle: Bundle, *_: object) -> Graphs:
        graphs = copying(bundle)
        monkeypatch.setattr(graphs, "run", lambda *_: 1 / 0)
        return graphs

    monkeypatch.setattr("service.bundles.loading.open_graphs", broken)
    check = checks(sound)["bundle de-en"]
    assert (check.verdict, "cannot decode a probe sentence" in check.message) == ("fault", True)


def test_versions_of_a_model_and_an_empty_folder_are_no_faults(sound: Path) -> None:
    """A volume for models of one's own, empty or with another version of a shipped model, before the shipped ones."""
    own = sound.parent / "own"
    own.mkdir()
    assert checks(sound, bundles=(own, sound))["bundle de-en"].verdict == "ok"
    holding(own, proof=PROOF).rename(own / "de-en@2")
    found = checks(sound, bundles=(own, sound))
    assert found["bundle de-en@2"].verdict == "ok"  # the newest is what the service starts with
    assert "bundle de-en" not in found


# --- port -----------------------------------------------------------------------------------------------------------


@contextmanager
def answering(service: bool) -> Iterator[int]:
    """The port of a server that is, or is not, this service."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if service and self.path == "/healthz" else 404)
            self.send_header("x-request-id", "1")
            self.end_headers()
            self.wfile.write(b'{"status": "ok"}')

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.skipif(sys.platform == "win32", reason="there SO_REUSEADDR lets two programs listen at one address")
@pytest.mark.parametrize(("service", "verdict"), [(True, "warning"), (False, "fault")])
def test_a_port_that_is_taken(sound: Path, service: bool, verdict: str) -> None:
    with answering(service) as port:
        taken = checks(sound, port=port)["port"]
    assert (taken.verdict, str(port) in taken.message) == (verdict, True)
    assert ("a Tandem service answers" in taken.message) is service
    assert checks(sound, port=port)["port"].message == f"127.0.0.1:{port} is free"


def test_what_listens_and_says_nothing_is_another_program(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert checks(sound, port=silent.getsockname()[1])["port"].verdict == "fault"


# --- command --------------------------------------------------------------------------------------------------------


def test_the_shipped_bundle_translates_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("TANDEM_PORT", "0")
    result = CliRunner().invoke(app, ["doctor", "--json", "--bundle", str(ROOT / "bundles" / "de-en")])
    told = json.loads(result.output)
    assert (result.exit_code, told["can_serve"]) == (0, True)
    (bundle,) = (check for check in told["checks"] if check["name"] == "bundle de-en")
    assert bundle["verdict"] != "fault" and "translates a sentence on onnx int8" in bundle["message"]


def test_the_exit_status_tells_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_PORT", "0")
    command = ["doctor", "--bundle", str(tmp_path)]
    told, as_json = (CliRunner().invoke(app, [*command, *form]) for form in ([], ["--json"]))
    assert (told.exit_code, as_json.exit_code) == (1, 1)
    assert "cannot serve here" in told.output and "set TANDEM_BUNDLES" in told.output
    assert json.loads(as_json.output)["can_serve"] is False


def test_a_setting_out_of_bounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_PRECISION", "int3")
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "precision" in str(result.exception)
