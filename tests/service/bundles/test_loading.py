"""Settings, bundles on disk and runtimes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle, Vocabularies, VocabularyFile
from tandem.models.errors import BundleError, ConfigError
from tandem.models.search import GraphSpec, TensorSpec
from tandem.service.bundles.loading import build_engine, find_bundles
from tandem.service.engine import Engine
from tandem.service.runtimes import open_graphs
from tandem.service.settings import Settings
from tests.service.support import copying, tiny_bundle


def test_every_setting_is_described_and_bounded() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        if field.annotation in (int, float):
            assert any(hasattr(bound, "ge") or hasattr(bound, "gt") for bound in field.metadata), name


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_BUNDLES", os.pathsep.join(("one", "two/three")))
    monkeypatch.setenv("TANDEM_PORT", "9000")
    monkeypatch.setenv("TANDEM_RUNTIME", "torch")
    settings = Settings()
    assert settings.bundles == (Path("one"), Path("two/three"))
    assert settings.port == 9000
    assert settings.runtime == "torch"
    assert settings.decode_workers >= 1


@pytest.mark.parametrize(
    "fields", [{"port": 70_000}, {"runtime": "magic"}, {"bundles": ()}, {"unknown": 1}, {"threads": 0}]
)
def test_settings_out_of_bounds_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**fields)


def test_bundles_are_found_as_folders_or_below_them(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    folder = bundles["de-en"].path.parent
    assert [path.name for path in find_bundles([folder])] == ["de-en", "titles"]
    assert find_bundles([folder / "titles", folder / "titles"]) == [folder / "titles"]
    with pytest.raises(ConfigError, match=r"no bundle; .*no folder"):
        find_bundles([tmp_path, tmp_path / "missing"])


def test_a_folder_may_be_empty_beside_others(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    """A volume for models of one's own, next to the shipped ones, before there are any."""
    folder, own = bundles["de-en"].path.parent, tmp_path / "own"
    (own / "lost+found").mkdir(parents=True)
    assert find_bundles([own, folder]) == find_bundles([folder])
    with pytest.raises(ConfigError, match="own holds no bundle"):
        find_bundles([own])
    (own / "de-en" / "onnx").mkdir(parents=True)  # a bundle that lost its manifest is none to pass over
    with pytest.raises(ConfigError, match="own holds no bundle"):
        find_bundles([own, folder])


def test_a_folder_without_a_manifest_beside_bundles_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that is not finished, or that this user may not read, is a pair that nobody can ask for."""
    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", lambda bundle, *_: copying(bundle))
    tiny_bundle(tmp_path)
    for other in ("en-de", "lost+found", ".pull-en-de"):
        (tmp_path / other).mkdir()
    with capture_logs() as lines:
        build_engine(Settings(bundles=(tmp_path,)))
    passed_over = [line["folder"] for line in lines if line["event"] == "no_bundle"]
    assert passed_over == [str(tmp_path / "en-de")]


def test_a_broken_bundle_stops_the_start(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path)
    (bundle.path / "weights.safetensors").write_bytes(b"short")
    with pytest.raises(BundleError, match="altered or truncated"):
        build_engine(Settings(bundles=(tmp_path,)))


def test_two_bundles_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", lambda bundle, *_: copying(bundle))
    first, second = tmp_path / "first", tmp_path / "second"
    tiny_bundle(first)
    tiny_bundle(second)
    assert isinstance(build_engine(Settings(bundles=(first,))), Engine)
    with pytest.raises(ConfigError, match="named 'de-en' already"):
        build_engine(Settings(bundles=(first, second)))


@pytest.mark.parametrize(
    ("task", "languages", "sources", "fault"),
    [
        ("postedit", ("en",), 1, "must have 2 sources, text and translation, to be served, but has 1"),
        ("postedit", ("en", "de", "fr"), 3, "must have 2 sources, text and translation, to be served, but has 3"),
        ("summarize", ("en", "de"), 2, "must have 1 source to be served, but has 2"),
        ("translate", ("de", "de"), 2, "of 2 sources must name a language for each to be served, but names 1"),
        ("postedit", ("en", "de"), 2, ""),
        ("summarize", ("en", "de"), 1, ""),
        ("translate", ("en", "de"), 1, ""),
        ("translate", ("en", "de"), 2, ""),
    ],
)
def test_a_bundle_that_no_route_can_serve_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, languages: tuple[str, ...], sources: int, fault: str
) -> None:
    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", lambda bundle, *_: copying(bundle))
    file = VocabularyFile("source.model")
    vocabularies = Vocabularies((file,) * sources, file)
    tiny_bundle(tmp_path, task=task, source_languages=languages, vocabularies=vocabularies)
    settings = Settings(bundles=(tmp_path,))
    if not fault:
        assert list(build_engine(settings).bundles) == ["de-en"]
        return
    with pytest.raises(BundleError, match=f"{fault}; decode files with `tandem translate`"):
        build_engine(settings)


def test_a_bundle_without_graphs_says_how_to_make_them(bundles: dict[str, Bundle]) -> None:
    with pytest.raises(BundleError, match="tandem export"):
        open_graphs(bundles["de-en"], "onnx")
    with pytest.raises(ConfigError, match="runtime must be one of onnx, torchscript, torch"):
        open_graphs(bundles["de-en"], "magic")


def test_a_runtime_that_is_not_installed_is_named(bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tandem.service.runtimes.torchscript", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigError, match="'torchscript' needs the package 'torch'"):
        open_graphs(bundles["de-en"], "torchscript")


def test_onnx_inputs_go_by_name_and_outputs_by_order(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    tensor = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, ["n"])
    doubled = onnx.helper.make_tensor_value_info("next.y", onnx.TensorProto.INT64, ["n"])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["next.y"])], "g", [tensor], [doubled])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    spec = TensorSpec("x", "int64", ("sentence",), 0, "source")
    for name in ("encode", "step", "align"):
        onnx.save(model, str(tmp_path / f"{name}.onnx"))

    class Stub:
        opened: list[str] = []  # noqa: RUF012
        shortlist = None

        def graph_specs(self, _: str) -> dict[str, GraphSpec]:
            one = GraphSpec((spec, replace(spec, name="unused")), (replace(spec, name="memory.y"),))
            return dict.fromkeys(("encode", "step", "align"), one)

        def graph_path(self, precision: str, graph: str) -> Path:
            self.opened.append(graph)
            return tmp_path / f"{graph}.onnx"

    stub = Stub()
    graphs = open_graphs(stub, "onnx", "int8")  # type: ignore[arg-type]
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
    assert stub.opened == ["encode", "step"]
    outputs = graphs.run("encode", {"x": np.array([1, 2]), "unused": np.array([0])})
    assert outputs["memory.y"].tolist() == [2, 4]
    graphs.run("align", {"x": np.array([1])})
    graphs.run("align", {"x": np.array([1])})
    assert stub.opened == ["encode", "step", "align"]
    (tmp_path / "step.onnx").write_bytes(b"no graph")
    with pytest.raises(BundleError, match="cannot load the graph"):
        open_graphs(stub, "onnx", "int8")  # type: ignore[arg-type]


@pytest.mark.slow  # tests/test_repository.py imports every module without torch every day
def test_serving_with_onnx_needs_no_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from tandem.service import app, server; "
        "from tandem.service.runtimes import onnx; "
        "assert sys.modules['torch'] is None"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_torchscript_passes_tensors_by_position(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Swap(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, a: Any, b: Any) -> Any:
            return b + 1, a + 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(Swap(), (torch.ones(1), torch.ones(1))).save(str(tmp_path / "module.pt"))
    x, y = (TensorSpec(name, "float32", ("sentence",), 0, "source") for name in "xy")

    class Stub:
        def graph_specs(self, _: str) -> dict[str, GraphSpec]:
            return {
                name: GraphSpec((x, y), (replace(x, name="p"), replace(y, name="q"))) for name in ("encode", "step")
            }

        def file(self, relative: str) -> Path:
            assert relative in ("torchscript/encode.pt", "torchscript/step.pt")
            return tmp_path / "module.pt"

    graphs = open_graphs(Stub(), "torchscript")  # type: ignore[arg-type]
    outputs = graphs.run("step", {"y": np.array([5.0], np.float32), "x": np.array([1.0], np.float32)})
    assert {name: value.tolist() for name, value in outputs.items()} == {"p": [6.0], "q": [3.0]}


def test_log_lines_are_json_and_tracebacks_hold_no_texts() -> None:
    program = (
        "import logging, structlog\n"
        "from tandem.service.telemetry.logs import configure_logging\n"
        "from tandem.service.settings import Settings\n"
        "configure_logging(Settings())\n"
        "structlog.contextvars.bind_contextvars(request_id='r1')\n"
        "def work(text):\n"
        "    raise ValueError('broken')\n"
        "try:\n"
        "    work('geh' + 'eim')\n"
        "except ValueError:\n"
        "    structlog.get_logger('tandem').exception('failed')\n"
        "    logging.getLogger('uvicorn.error').warning('plain %s', 'line')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    first, second = (json.loads(line) for line in done.stderr.splitlines())
    assert (first["event"], first["level"], first["request_id"]) == ("failed", "error", "r1")
    assert (second["event"], second["logger"]) == ("plain line", "uvicorn.error")
    assert "geheim" not in done.stderr
