"""The image as it was built: size, user, labels, and what is not in it."""

from __future__ import annotations

import json
import tomllib

import pytest

from tests.docker.engine import SHIPPED, Engine
from tests.shipped import ROOT

pytestmark = pytest.mark.docker

LARGEST = 600_000_000  # bytes of the CPU image, bundles included
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "make", "cmake", "rustc", "cargo", "nvcc")
PYTHON = ("--entrypoint", "/opt/tandem/bin/python")
GPU = ("torch", "nvidia", "cuda", "cudnn", "triton", "onnxruntime-gpu")


def test_image_is_small(engine: Engine, image: str) -> None:
    size = engine.inspect(image, "image")["Size"]
    assert size <= LARGEST, f"{size / 1e6:.0f} MB, which is over {LARGEST / 1e6:.0f}"


def test_image_says_how_it_runs(engine: Engine, image: str) -> None:
    config = engine.inspect(image, "image")["Config"]
    assert config["User"].partition(":")[0] in ("tandem", "10001")
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"][0] in ("CMD", "CMD-SHELL")
    assert (config["Entrypoint"][-1].rpartition("/")[2], config["Cmd"]) == ("tandem", ["serve"])
    assert "8000/tcp" in config["ExposedPorts"]
    assert "ORT_DISABLE_TELEMETRY=1" in config["Env"]


def test_labels_follow_the_open_containers_specification(engine: Engine, image: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    labels = engine.inspect(image, "image")["Config"]["Labels"]
    prefix = "org.opencontainers.image."
    assert labels[f"{prefix}version"] == project["version"]
    assert labels[f"{prefix}licenses"] == project["license"]
    assert labels[f"{prefix}title"] and labels[f"{prefix}description"]


def test_nobody_is_root(engine: Engine, image: str) -> None:
    assert engine.shell(image, "id -u; id -g").split() == ["10001", "10001"]


def test_there_is_no_compiler(engine: Engine, image: str) -> None:
    found = engine.shell(image, f"for name in {' '.join(COMPILERS)}; do command -v $name; done; true")
    assert not found.split()


def test_native_operators_load(engine: Engine, image: str) -> None:
    """Where the build had a compiler and the header, as a build with a network has."""
    program = (
        "from tandem.extras.native.library import library; from tandem.models.bundle import Bundle;"
        "from tandem.service.runtimes import open_graphs;"
        "print(library() is None or open_graphs(Bundle.load('/opt/tandem/bundles/de-fr-en')).fused.keys())"
    )
    assert engine.run_image(image, "-c", program, options=PYTHON).stdout.strip() in (
        "True",
        "dict_keys(['encode', 'step'])",
    )


def test_cpu_image_has_nothing_of_a_gpu(engine: Engine, image: str) -> None:
    program = "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"
    names = engine.run_image(image, "-c", program, options=PYTHON).stdout.split()
    assert {"tandem", "onnxruntime", "redis"} <= {name.lower() for name in names}
    assert not [name for name in names if name.lower().startswith(GPU)]
    files = engine.shell(
        image, "find / -xdev \\( -name 'libcu*.so*' -o -name 'libtorch*' -o -name '*_cuda.so' \\) 2>/dev/null; true"
    )
    assert not files.split()


def test_packages_are_those_of_the_lock(engine: Engine, image: str) -> None:
    program = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}))"
    )
    found = json.loads(engine.run_image(image, "-c", program, options=PYTHON).stdout)
    lock = (ROOT / "requirements" / "image-cpu.txt").read_text(encoding="utf-8")
    pins = dict(line.split(" ")[0].split("==") for line in lock.splitlines() if "==" in line)
    others = {name: version for name, version in found.items() if pins.get(name) != version}
    assert set(others) <= {"tandem", "pip", "setuptools"}


def test_nothing_but_the_program_is_in_it(engine: Engine, image: str) -> None:
    """No tests, history, environments or settings of the checkout, and nothing that its user may change."""
    strays = ("-name .git", "-name .env", "-name '.venv*'", "-name test_repository.py", "-path '*/docs/adr'")
    assert not engine.shell(image, f"find / -xdev \\( {' -o '.join(strays)} \\) 2>/dev/null; true").split()
    writable = engine.shell(image, "find /opt/tandem -xdev -writable ! -type l -print | head; true")
    assert not writable.split()


def test_bundles_are_shipped(engine: Engine, image: str) -> None:
    assert set(engine.shell(image, "ls /opt/tandem/bundles").split()) == SHIPPED


def test_wrong_setting_ends_with_status_2_and_one_line(engine: Engine, image: str) -> None:
    done = engine.run_image(image, options=("--env", "TANDEM_MAX_TEXTS=0"), check=False)
    assert done.status == 2
    assert done.stderr.startswith("tandem: ") and "max_texts" in done.stderr.lower()
    assert "Traceback" not in done.text
