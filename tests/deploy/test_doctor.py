"""`tandem doctor`: every check with each of its verdicts, the bundles that it examines, its JSON and exit status."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from rich.console import Console
from typer.testing import CliRunner

from deploy.cli import app
from deploy.doctor import report
from deploy.doctor.bundles import Examined, Measurement, examine, examine_all
from deploy.doctor.checks import (
    PROCESS_BYTES,
    TORCH_BYTES,
    Check,
    Facts,
    SettingsFacts,
    all_checks,
    can_serve,
    memory_need,
)
from deploy.doctor.port import PortFacts
from deploy.machine import ClockFacts, Gpu, MemoryFacts, Processor
from models.bundle import Bundle, add_built
from models.search import Graphs
from service.bundles.probe import BatchTiming, Effort
from service.engine import Backend
from service.runtimes.choice import Wish
from tests.service.support import copying, tiny_bundle

ROOT = Path(__file__).resolve().parents[2]
INT8, FLOAT32, EAGER = Backend("onnx", "int8"), Backend("onnx", "float32"), Backend("torch", "float32")
PROOF = {"quantised": [{"runtime": "onnx int8", "passed": True}]}
MEBIBYTE = 1 << 20
QUICK = Effort((1, 2), repetitions=1, seconds=0.0)

SOUND = Examined(
    path="bundles/one",
    name="one",
    task="translate",
    precisions=("int8",),
    proven=("int8",),
    graph_bytes={"int8": 10 * MEBIBYTE},
    bytes=30 * MEBIBYTE,
    served=INT8,
    why="the only one that the bundle holds",
)
X86 = Processor("invented", "x86_64", 4, 4, None, 4, {"avx2": True, "avx512_vnni": True, "avx_vnni": False})
NO_VNNI = replace(X86, features={"avx2": True, "avx512_vnni": False, "avx_vnni": False})
ARM = replace(X86, architecture="aarch64", features={"dotprod": False, "i8mm": False, "bf16": True})
SETTINGS = SettingsFacts("onnx", "auto", 1, 3, ("bundles",), "127.0.0.1", 8000)
FREE = PortFacts("127.0.0.1", 8000, "free")
HEALTHY = Facts(
    processor=X86,
    memory=MemoryFacts(8 << 30, 4 << 30, None),
    gpu=Gpu((), ("CPUExecutionProvider",), None),
    clock=ClockFacts("tsc", 1e-9),
    versions={"python": "3.11.0"},
    onnx_runtimes=("onnxruntime",),
    telemetry_off=True,
    settings=SETTINGS,
    port=FREE,
    bundles=(SOUND,),
)
NEED = memory_need(HEALTHY)


def check(name: str, **changes: Any) -> Check:
    """The one check of that name, where the healthy machine is changed so."""
    (found,) = (one for one in all_checks(replace(HEALTHY, **changes)) if one.name == name)
    return found


# --- checks ---------------------------------------------------------------------------------------------------------


def test_a_healthy_machine_can_serve() -> None:
    checks = all_checks(HEALTHY)
    assert {one.verdict for one in checks} == {"ok"}
    assert len({one.name for one in checks}) == len(checks)
    assert can_serve(checks)


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "said"),
    [
        ("onnxruntime", {"onnx_runtimes": ("onnxruntime", "onnxruntime-gpu")}, "warning", "overwrite each other"),
        ("onnxruntime", {"onnx_runtimes": ()}, "fault", "not installed"),
        ("onnxruntime", {"onnx_runtimes": (), "settings": replace(SETTINGS, runtime="torch")}, "ok", "not installed"),
        ("int8", {"processor": NO_VNNI}, "warning", "saturate"),
        ("int8", {"processor": NO_VNNI, "bundles": (replace(SOUND, served=FLOAT32),)}, "ok", "no bundle"),
        ("int8", {"processor": replace(X86, features={})}, "ok", "does not tell"),
        ("int8", {"processor": ARM}, "ok", "without saturation"),
        ("workers", {"settings": replace(SETTINGS, workers=5)}, "warning", "5 decode workers of 1 thread each"),
        ("workers", {"settings": replace(SETTINGS, threads=2)}, "warning", "4 usable cores"),
        ("workers", {"processor": replace(X86, usable_cores=2)}, "warning", "2 usable cores"),
        ("threads", {"settings": replace(SETTINGS, threads=2)}, "warning", "may depend on"),
        ("memory", {"memory": MemoryFacts(8 << 30, 4 << 30, NEED - 1)}, "fault", "the memory limit is"),
        ("memory", {"memory": MemoryFacts(NEED - 1, None, None)}, "fault", "the machine's memory is"),
        ("memory", {"memory": MemoryFacts(8 << 30, 4 << 30, NEED + 1)}, "warning", "batches come on top"),
        ("memory", {"memory": MemoryFacts(8 << 30, NEED - 1, None)}, "warning", "available now"),
        ("memory", {"memory": MemoryFacts(None, None, None)}, "ok", "does not say"),
        ("port", {"port": replace(FREE, state="taken")}, "fault", "another program listens at 127.0.0.1:8000"),
        ("port", {"port": replace(FREE, state="service")}, "warning", "answers at 127.0.0.1:8000 already"),
        ("port", {"port": replace(FREE, state="unusable", error="no such address")}, "fault", "no such address"),
        ("port", {"port": replace(FREE, port=0)}, "ok", "any free port"),
        ("clock", {"clock": ClockFacts("hpet", 1e-9)}, "warning", "hpet"),
        ("clock", {"clock": ClockFacts("", 1e-9)}, "ok", "does not name"),
        ("telemetry", {"telemetry_off": False}, "warning", "ORT_DISABLE_TELEMETRY"),
        ("accelerators", {"processor": ARM}, "ok", "no bf16 graphs"),
        ("accelerators", {"gpu": Gpu(("Big GPU",), (), None)}, "ok", "Big GPU) and not used"),
        ("accelerators", {}, "ok", "no GPU"),
        ("bundles", {"path_faults": ("there is no folder; set it",)}, "fault", "there is no folder"),
        ("bundle one", {"bundles": (replace(SOUND, faults=("weights are short",)),)}, "fault", "weights are short"),
        ("bundle one", {"bundles": (replace(SOUND, proven=()),)}, "warning", "does not prove"),
        ("bundle one", {"bundles": (replace(SOUND, proven=(), served=FLOAT32),)}, "ok", "served on onnx float32"),
        ("bundle one", {"bundles": (replace(SOUND, served=None),)}, "ok", "served on the fastest"),
    ],
)
def test_verdicts(name: str, changes: dict[str, Any], verdict: str, said: str) -> None:
    found = check(name, **changes)
    assert (found.verdict, said in found.message) == (verdict, True), found
    assert bool(found.remedy) == (verdict != "ok"), "a finding says what to do, and only a finding"
    assert can_serve(all_checks(replace(HEALTHY, **changes))) == (verdict != "fault")


def test_a_runtime_that_fails_beside_the_served_one_is_a_warning() -> None:
    failed = Measurement("torchscript", "float32", error="it was built by another version")
    checks = all_checks(replace(HEALTHY, bundles=(replace(SOUND, measurements=(failed,)),)))
    assert [one.verdict for one in checks if "another version" in one.message] == ["warning"]
    assert can_serve(checks)


def test_memory_is_counted_by_what_is_served() -> None:
    two = replace(HEALTHY, bundles=(SOUND, replace(SOUND, name="two")))
    assert PROCESS_BYTES < NEED < memory_need(two) < 2 * NEED
    torch = replace(HEALTHY, bundles=(replace(SOUND, served=EAGER),))
    assert memory_need(torch) > NEED + TORCH_BYTES
    open_choice = replace(SOUND, served=None, graph_bytes={"int8": 10 * MEBIBYTE, "float32": 40 * MEBIBYTE})
    assert memory_need(replace(HEALTHY, bundles=(open_choice,))) > NEED


# --- bundles --------------------------------------------------------------------------------------------------------


def holding(folder: Path, *precisions: str, **changes: Any) -> Bundle:
    """A bundle with files where graphs of these precisions would lie."""
    made = tiny_bundle(folder, **changes)
    for precision in precisions:
        add_built(made.path, f"onnx/{precision}", {"encode.onnx": b"", "step.onnx": b"12345"})
    return made


def only_onnx(bundle: Bundle, runtime: str, precision: str, threads: int) -> Graphs:
    if runtime != "onnx":
        raise RuntimeError("not built for this machine")
    return copying(bundle)


def test_a_bundle_is_measured_on_everything_that_runs_it(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", "float32", proof=PROOF)
    found = examine(bundle.path, Wish(), effort=QUICK, opener=only_onnx)
    assert (found.name, found.faults, found.precisions) == ("de-en", (), ("float32", "int8"))
    assert (found.proven, found.languages, found.task) == (("int8",), "de-en", "translate")
    assert found.graph_bytes is not None
    assert found.bytes > sum(found.graph_bytes.values()) > 0
    timed = {f"{one.runtime} {one.precision}": [b.sentences for b in one.batches] for one in found.measurements}
    assert timed["onnx int8"] == timed["onnx float32"] == [1, 2]
    assert found.served in (INT8, FLOAT32)
    errors = [one.error for one in found.measurements if one.runtime == "torch"]
    assert all(error == "RuntimeError: not built for this machine" for error in errors)


def test_what_the_settings_name_is_served_whatever_is_faster(tmp_path: Path) -> None:
    bundle = holding(tmp_path, "int8", "float32", proof=PROOF)
    for precision, backend in (("int8", INT8), ("float32", FLOAT32)):
        found = examine(bundle.path, Wish(precision=precision), effort=QUICK, opener=only_onnx)
        assert (found.served, found.why) == (backend, "as the settings say")


def test_without_measuring_only_what_may_be_served_is_opened(tmp_path: Path) -> None:
    opened: list[tuple[str, str]] = []

    def opener(bundle: Bundle, runtime: str, precision: str, threads: int) -> Graphs:
        opened.append((runtime, precision))
        return copying(bundle)

    one = examine(holding(tmp_path, "int8").path, Wish(), effort=None, opener=opener)
    assert (one.served, opened) == (INT8, [("onnx", "int8")])
    assert [m.batches for m in one.measurements] == [()]
    both = examine(
        holding(tmp_path, "int8", "float32", name="two", proof=PROOF).path, Wish(), effort=None, opener=opener
    )
    assert (both.served, both.faults, both.why) == (None, (), "measured when the service starts")


def test_what_cannot_be_served_is_at_fault(tmp_path: Path) -> None:
    altered = holding(tmp_path / "a", "int8", name="altered")
    (altered.path / "weights.safetensors").write_bytes(b"short")
    bare = tiny_bundle(tmp_path / "b", "bare")
    odd = holding(tmp_path / "c", "int8", name="odd", task="postedit")
    twin = holding(tmp_path / "d", "int8", name="odd")
    folders = [*(tmp_path / name for name in "abcd"), tmp_path / "nothing"]
    examined, faults = examine_all(folders, Wish(), effort=None, opener=only_onnx)
    found = {one.path: "; ".join(one.faults) for one in examined}
    assert "altered or truncated" in found[str(altered.path)]
    assert "2 sources" in found[str(odd.path)]
    assert f"{odd.path} is named 'odd' already" in found[str(twin.path)]
    assert found[str(bare.path)] == ""  # its graphs open here
    assert ["is no folder" in fault for fault in faults] == [True]
    really, _ = examine_all([tmp_path / "b"], Wish(), effort=None)
    assert "build it with `tandem export`" in "; ".join(really[0].faults)


# --- report and command ---------------------------------------------------------------------------------------------


def test_tables_show_faults_figures_and_brackets() -> None:
    timed = Measurement("onnx", "int8", (BatchTiming(32, 12.5, 3.25, 5),))
    broken = Measurement("onnx", "float32", error="[LIB] : 2 : broken")
    sick = replace(SOUND, name="sick", faults=("[LIB] : 2 : broken",), served=None)
    facts = replace(HEALTHY, bundles=(replace(SOUND, measurements=(timed, broken)), sick))
    console = Console(width=180, record=True, file=io.StringIO())
    console.print(report.as_tables(facts, all_checks(facts)))
    text = console.export_text()
    for shown in ("12.5", "3.25", "[LIB] : 2 : broken", "FAULTY", "cannot serve here: 1 fault, 1 warning"):
        assert shown in text


def test_json_holds_every_fact_by_its_name() -> None:
    found = json.loads(report.as_json(HEALTHY, all_checks(HEALTHY)))
    assert found.pop("can_serve") is True
    checks = TypeAdapter(list[Check]).validate_python(found.pop("checks"))
    assert checks == all_checks(HEALTHY)
    assert TypeAdapter(Facts).validate_json(json.dumps(found)) == HEALTHY


def test_the_shipped_bundle_is_examined_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_PORT", "0")
    result = CliRunner().invoke(app, ["doctor", "--json", "--no-measure", "--bundle", str(ROOT / "bundles" / "de-en")])
    found = json.loads(result.output)
    assert (result.exit_code == 0) == found["can_serve"]
    (bundle,) = found["bundles"]
    assert (bundle["name"], bundle["faults"]) == ("de-en", [])
    assert "int8" in bundle["proven"]
    assert bundle["served"]["runtime"] == "onnx"
    TypeAdapter(Facts).validate_python({key: found[key] for key in found if key not in ("can_serve", "checks")})


def test_the_shipped_bundle_is_timed() -> None:
    pytest.importorskip("onnxruntime")
    found = examine(ROOT / "bundles" / "de-en", Wish(), effort=QUICK)
    onnx = next(one for one in found.measurements if one.runtime == "onnx")
    assert [timing.sentences for timing in onnx.batches] == [1, 2]
    assert all(timing.encode_ms > 0 and timing.step_ms > 0 for timing in onnx.batches)


def test_versions_of_a_model_and_an_empty_folder_are_no_faults(tmp_path: Path) -> None:
    """A volume for models of one's own, empty or with another version of a shipped model, before the shipped ones."""
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    own.mkdir()
    holding(shipped, "int8", name="odd")
    (only,), faults = examine_all([own, shipped], Wish(), effort=None, opener=only_onnx)
    assert (only.name, only.faults, faults) == ("odd", (), [])
    path = holding(own, "int8", name="odd").path
    path.rename(path.with_name("odd@2"))
    both, faults = examine_all([own, shipped], Wish(), effort=None, opener=only_onnx)
    assert ([(one.name, one.faults) for one in both], faults) == ([("odd@2", ()), ("odd", ())], [])


def test_the_exit_status_tells_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_PORT", "0")
    command = ["doctor", "--no-measure", "--bundle", str(tmp_path)]
    told, as_json = (CliRunner().invoke(app, [*command, *form]) for form in ([], ["--json"]))
    assert (told.exit_code, as_json.exit_code) == (1, 1)
    assert "cannot serve here" in told.output
    assert "holds no bundle" in as_json.output


def test_a_setting_out_of_bounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_PRECISION", "int3")
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "precision" in str(result.exception)
