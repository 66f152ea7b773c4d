"""The repository keeps its own promises: layers, locks, documented commands, nothing of one machine."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tandem.models.architectures.registry import ARCHITECTURES
from tests.hiding import hiding
from tests.shipped import ROOT

pytestmark = pytest.mark.xdist_group("repository")  # they share what is parsed
PACKAGES = ("models", "training", "service", "deploy", "extras")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

NUMPY_ONLY = ("bundle", "config", "errors", "folders", "search", "text", "translation", "vocabulary")
HTTP = ("fastapi", "pydantic", "pydantic_settings", "starlette", "uvicorn")
TORCH_RUNTIMES = ("tandem.service.runtimes.torch", "tandem.service.runtimes.torchscript")


# --- layers ---------------------------------------------------------------------------------------------------------


def dotted(path: Path) -> str:
    """A module's name, from its path in the repository."""
    return ".".join(("tandem", *path.with_suffix("").parts)).removesuffix(".__init__")


def modules_under(*names: str) -> list[str]:
    """The dotted names of modules, given without `tandem`, and of every module inside them."""
    found: list[str] = []
    for name in names:
        path = ROOT.joinpath(*name.split("."))
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        found += [dotted(file.relative_to(ROOT)) for file in files]
    return found


def modules_of(package: str) -> list[Path]:
    """The files of a package; tests of extras are of ``tests``."""
    own = [path for path in (ROOT / package).rglob("*.py") if package == "tests" or "tests" not in path.parts]
    return sorted([*own, *(ROOT.glob("extras/*/tests/**/*.py") if package == "tests" else ())])


def test_a_class_name_stands_for_one_concept() -> None:
    files = [path for package in PACKAGES for path in modules_of(package)]
    classes = [re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.M) for path in files]
    counted = Counter(name for names in classes for name in names)
    assert not {name for name, count in counted.items() if count > 1}


@pytest.mark.parametrize(
    ("modules", "blocked"),
    [
        pytest.param(
            modules_under(*(f"models.{name}" for name in NUMPY_ONLY)),
            ("torch", "onnxruntime", *HTTP),
            id="the NumPy half of models",
        ),
        pytest.param(
            modules_under("service.engine", "service.text", "service.translation", "service.errors"),
            ("torch", "onnxruntime", "tandem.training", *HTTP),
            id="the domain and the engine",
        ),
        pytest.param(
            [name for name in modules_under("service") if not name.startswith(TORCH_RUNTIMES)],
            ("torch", "onnx", "onnxscript", "tandem.training", "sacrebleu", "tensorboard"),
            id="serving with ONNX Runtime",
        ),
        pytest.param(
            ["tandem.deploy.cli"],
            ("torch", "onnx", "onnxruntime", "onnxscript", "sacrebleu", "tensorboard", *HTTP),
            id="the command before it knows what to do",
        ),
    ],
)
def test_modules_load_without(modules: list[str], blocked: tuple[str, ...]) -> None:
    """Imports alone, whatever they reach, need neither the blocked packages nor any environment variable."""
    assert modules
    program = (
        f"import importlib, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        f"sys.modules.update(dict.fromkeys({blocked!r}))\n"
        f"for name in {modules!r}:\n"
        f"    importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@cache
def sources(package: str) -> list[tuple[Path, ast.Module]]:
    """The modules of a package."""
    return [(path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))) for path in modules_of(package)]


def package_of(module: str) -> str:
    top, *rest = module.split(".")
    return f"{top}.{rest[0]}" if top == "tandem" and rest else top


def imported(tree: ast.AST) -> Iterator[str]:
    """The packages that a module imports, wherever in it: their top-level names, but ``tandem.models`` of ours."""
    for node in ast.iter_child_nodes(tree):  # within expressions there are none
        if isinstance(node, ast.Import):
            yield from (package_of(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "tandem":
            yield from (f"tandem.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield package_of(node.module)
        elif not isinstance(node, ast.expr):
            yield from imported(node)


@cache
def imports(package: str) -> dict[Path, frozenset[str]]:
    """What each module of a package imports."""
    return {path: frozenset(imported(tree)) for path, tree in sources(package)}


def imported_modules(tree: ast.AST, known: Container[str]) -> Iterator[str]:
    """The modules, of those that are known, that a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in known else node.module


def test_no_circle_of_modules() -> None:
    """Not even one that types or functions alone close. Those of folders are import-linter's (pyproject.toml)."""
    trees = {dotted(path): tree for package in PACKAGES for path, tree in sources(package)}
    graph = {name: {*imported_modules(tree, trees)} & trees.keys() - {name} for name, tree in trees.items()}
    TopologicalSorter(graph).prepare()  # a CycleError names the modules


OF_ALL = {Path("tests/deploy/test_reference.py"), Path("tests/docker/test_files.py")}
"""Tests of pages that describe every extra, and of the image, which has them all."""


def test_the_tests_of_the_core_import_no_extra() -> None:
    """They pass where an extra is deleted, with its tests."""
    importing = {
        path for path, names in imports("tests").items() if path.parts[0] == "tests" and "tandem.extras" in names
    }
    assert importing <= OF_ALL


distributions = cache(packages_distributions)


UNPICKLING = ("weights_only", "allow_pickle")


def test_nothing_is_unpickled() -> None:
    """Weights and checkpoints come from strangers: no pickle, and torch.load restricted to tensors."""
    faults = []
    for path, tree in (module for package in PACKAGES for module in sources(package)):
        for name in imports(path.parts[0])[path] & {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}:
            faults.append(f"{path} imports {name}")
        if not re.search(r"\bload\b|allow_pickle", (ROOT / path).read_text(encoding="utf-8")):
            continue  # looking at every call of everything takes seconds
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            options = {one.arg: ast.unparse(one.value) for one in call.keywords if one.arg in UNPICKLING}
            if (
                getattr(call.func, "attr", "") == "load"
                and ast.unparse(call.func) == "torch.load"
                and options.get("weights_only") != "True"
            ):
                faults.append(f"{path}:{call.lineno} torch.load without weights_only=True")
            if options.get("allow_pickle", "False") != "False":
                faults.append(f"{path}:{call.lineno} allow_pickle")
    assert not faults


def test_search_export_and_service_name_no_architecture() -> None:
    """What they need to know stands in records, specs and manifests."""
    names = {*ARCHITECTURES, *(cls.__name__ for pair in ARCHITECTURES.values() for cls in pair)}
    word = re.compile(rf"\b({'|'.join(names)})\b")
    folders = [ROOT / "models" / "search", ROOT / "training" / "export", ROOT / "service"]
    faults = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if word.search(line)
    ]
    assert not faults


# --- dependencies ---------------------------------------------------------------------------------------------------


_CUDA = ("cuda-", "nvidia-", "torch", "triton")  # distributions of which a CPU needs none


def declared(*extras: str) -> set[str]:
    """Distributions that pyproject.toml names for a plain install with these extras, on any platform."""
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in PROJECT["optional-dependencies"][extra])]
    requirements = [Requirement(line) for line in lines]
    return {str(canonicalize_name(requirement.name)) for requirement in requirements if requirement.name != "tandem"}


@cache
def locked(name: str) -> dict[str, Requirement]:
    """The pins of a lock; every one exact and hashed."""
    pins = {}
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    for entry in re.sub(r"\s*#.*", "", text.replace("\\\n", " ")).splitlines():
        if entry.strip():
            line, *hashes = entry.split("--hash=sha256:")
            requirement = Requirement(line.strip())
            assert hashes, f"{requirement} has no hash"
            assert [specifier.operator for specifier in requirement.specifier] == ["=="], str(requirement)
            assert str(canonicalize_name(requirement.name)) not in pins, str(requirement)
            pins[str(canonicalize_name(requirement.name))] = requirement
    return pins


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("models", declared() | {"torch"}),
        ("training", declared("train")),
        ("service", declared("http", "telemetry", "serve") | {"torch"}),
        ("deploy", declared("http", "serve", "train", "loadtest", "ray", "dev")),
        ("extras", declared("http", "hf", "mcp", "telemetry", "serve", "train", "bench", "loadtest", "ray", "dev")),
        ("tests", declared("http", "mcp", "telemetry", "serve", "train", "bench", "loadtest", "ray", "dev")),
    ],
)
def test_what_the_code_imports_is_declared(package: str, allowed: set[str]) -> None:
    ours = {"tandem", "tests", *(["docs"] if package == "tests" else [])}
    for path, names in imports(package).items():
        for name in {name.partition(".")[0] for name in names} - ours - sys.stdlib_module_names:
            owners = {str(canonicalize_name(owner)) for owner in distributions().get(name, [name])}
            assert owners & allowed, f"{path} imports {name}, which pyproject.toml does not name"


GPU_TESTS = ("extras/gpu/tests", "tests/training/loop/test_training_gpu.py")
COMMANDS_OF_A_GPU = ("prepare", "train", "export", "bench")


def closure(names: set[str]) -> set[str]:
    """Distributions with those that they need here, extras aside."""
    found: set[str] = set()
    while names:
        found |= names
        lines = (line for name in names for line in requires(name) or ())
        needed = (one for one in map(Requirement, lines) if one.marker is None or one.marker.evaluate({"extra": ""}))
        names = {str(canonicalize_name(one.name)) for one in needed} - found
    return found


@pytest.fixture(scope="module")
def little() -> set[str]:
    """Modules that a plain install with torch and pytest lacks, as a machine that is lent for an hour may have it."""
    present = closure(declared() | {"torch", "pytest"})
    absent = {
        module
        for module, owners in distributions().items()
        if not present.intersection(str(canonicalize_name(owner)) for owner in owners)
    } - {"tandem", "tests"}
    assert {
        "fastapi",
        "hypothesis",
        "onnx",
        "onnxscript",
        "pydantic_settings",
        "structlog",
        "tomlkit",
        "xdist",
    } <= absent
    return absent


def run_without(absent: set[str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python, which does not find those modules."""
    environment = hiding(absent, folder) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_tests_of_a_gpu_are_collected_where_there_is_little_else(little: set[str], tmp_path: Path) -> None:
    """With pydantic, which Typer brings, and without."""
    options = ("--collect-only", "-q", "-m", "gpu", "-p", "no:cacheprovider")
    done = run_without(little | {"pydantic", "pydantic_core"}, tmp_path, "-m", "pytest", *options, *GPU_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    for file in ("extras/gpu/tests/test_device_gpu.py", "tests/training/loop/test_training_gpu.py"):
        assert f"{file}::" in done.stdout


COMMAND_LINES = {
    "train --help": (0, "Ctrl-C saves a checkpoint first"),
    "train": (2, "Missing argument 'RECIPE'"),
    "train none.toml --device cuda": (2, "none.toml: cannot read the recipe"),
    "prepare none.toml": (2, "none.toml: cannot read the recipe"),
    "export none --weights none.safetensors": (1, "none holds no checkpoint"),
    "bench gpu --device cpu --minutes 1 --only device": (0, "1 of 1 lines ok"),
}


@pytest.fixture(scope="module")
def ended(little: set[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """How each of those command lines ends where there is little, and what it says: in one process."""
    program = f"""
import io, json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch
from tandem.deploy.cli import main

def ends(line):
    said = io.StringIO()
    with patch("sys.argv", ["tandem", *line.split()]), redirect_stdout(said), redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            return end.code or 0, said.getvalue()

if __name__ == "__main__":  # lines are run in processes that import this
    Path(__file__).with_name("ended").write_text(json.dumps({{line: ends(line) for line in {[*COMMAND_LINES]!r}}}))
"""
    folder = tmp_path_factory.mktemp("little")
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = run_without(little, folder, str(folder / "program.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads((folder / "ended").read_text(encoding="utf-8")))


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_gpu_is_proved_and_trained_on_where_there_is_little_else(
    line: str, ended: dict[str, tuple[int, str]]
) -> None:
    status, said = COMMAND_LINES[line]
    assert ended[line][0] == status
    assert said in ended[line][1]


@pytest.mark.slow
def test_a_run_is_prepared_trained_and_taken_home_where_there_is_little_else(little: set[str], tmp_path: Path) -> None:
    """By loss: scores of a validation need sacreBLEU."""
    import tomlkit

    from tandem.training.recipe import recipe_mapping
    from tests.training.toy import toy_recipe, write_lines

    for split in ("train", "valid", "test"):
        for side in ("de", "en"):
            write_lines(tmp_path / f"corpora/toy/{split}.{side}", ["a b c d", "d c b", "a c d b a"] * 8)
    mapping = recipe_mapping(toy_recipe(updates=2, validate_every=1))
    mapping["data"]["filters"], mapping["decoding"] = {"deduplicate": False}, {"max_length": 12}  # TOML has no null
    (tmp_path / "toy.toml").write_text(tomlkit.dumps(mapping), encoding="utf-8")
    recipe, run = (str(tmp_path / "toy.toml"), "--run", str(tmp_path / "run")), str(tmp_path / "run")
    for arguments in (
        ("prepare", *recipe, "--corpora", str(tmp_path / "corpora")),
        ("train", *recipe),
        ("export", run, "--weights", str(tmp_path / "toy.safetensors")),
    ):
        done = run_without(little, tmp_path, "-m", "tandem", *arguments)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "toy.safetensors").stat().st_size > 0


def test_pydantic_is_nothing_that_training_or_a_proof_of_a_gpu_needs(little: set[str], tmp_path: Path) -> None:
    """Typer reads command lines with it from 0.29 on, so what it would call is called here without a command line."""
    program = f"""
from pathlib import Path
from tandem.deploy.cli import load_command
for name in {COMMANDS_OF_A_GPU!r}:
    load_command(name)
from tandem.deploy.training import train
from tandem.extras.laboratory.gpu.loan import measure
from tandem.extras.laboratory.options import GpuOptions
from tandem.models.errors import ConfigError
from tandem.training.loop.commands import TrainOptions
if __name__ == "__main__":  # lines are run in processes that import this
    try:
        train(TrainOptions(recipe_file=Path("none.toml")))
    except ConfigError as error:
        assert "cannot read the recipe" in str(error)
    (line,) = measure(GpuOptions(device="cpu", minutes=1, only="device"))["lines"]
    assert line["status"] == "ok", line
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = run_without(little | {"pydantic", "pydantic_core"}, tmp_path, str(tmp_path / "program.py"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", ["train", "http", "serve", "loadtest", "bench", "ray"])
def test_a_missing_package_is_named_with_an_extra_that_brings_it(extra: str) -> None:
    from tandem.deploy.cli import extra_of

    for name in {name for package in PACKAGES for names in imports(package).values() for name in names}:
        owners = {str(canonicalize_name(owner)) for owner in distributions().get(name, [name])}
        if owners & (declared(extra) - declared()):
            told = re.findall(r"\[(\w+)\]", extra_of(name))
            assert owners & declared(*told, *(["http"] if told == ["serve"] else [])), name


@pytest.mark.parametrize(
    ("lock", "extras"),
    [
        ("serve", ("http", "serve", "build")),
        ("dev", ("http", "mcp", "serve", "train", "loadtest", "ray", "dev", "build")),
        ("image-cpu", ("http", "serve-cpu", "mcp", "redis", "telemetry", "build")),
    ],
)
def test_locks_cover_what_is_declared(lock: str, extras: tuple[str, ...]) -> None:
    assert declared(*extras) - {"torch"} <= locked(lock).keys()


@pytest.mark.parametrize("lock", ["serve", "image-cpu", "image-gpu", "loadtest"])
def test_locks_agree(lock: str) -> None:
    """What is tested is what is served, whatever it is installed from."""
    found, dev = locked(lock), locked("dev")
    assert {name: str(pin.specifier) for name, pin in found.items() if name in dev} == {
        name: str(dev[name].specifier) for name in found if name in dev
    }
    assert {name for name in found if name not in dev} <= {name for name in found if name.startswith(_CUDA)}


def test_locks_keep_torch_out() -> None:
    for lock in ("serve", "dev", "image-cpu", "loadtest"):
        assert not [name for name in locked(lock) if name.startswith(_CUDA)]
    (torch,) = (ROOT / "requirements" / "torch.txt").read_text(encoding="utf-8").splitlines()
    (wanted,) = (line for line in map(Requirement, PROJECT["optional-dependencies"]["train"]) if line.name == "torch")
    assert Version(torch.removeprefix("torch==")) in wanted.specifier
    assert str(locked("image-gpu")["torch"].specifier) == torch.removeprefix("torch")


@pytest.mark.parametrize("lock", ["serve", "dev", "image-cpu", "image-gpu", "loadtest"])
def test_locks_name_no_source(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.findall(r"^--.*", text, re.MULTILINE)


@pytest.mark.parametrize(("lock", "runtime"), [("image-cpu", "onnxruntime"), ("image-gpu", "onnxruntime-gpu")])
def test_one_runtime_in_each_image(lock: str, runtime: str) -> None:
    assert [name for name in locked(lock) if name.startswith("onnxruntime")] == [runtime]


@pytest.mark.parametrize("lock", ["serve", "dev"])
@pytest.mark.parametrize(
    ("sys_platform", "platform_machine", "runtime"),
    [
        ("linux", "x86_64", "onnxruntime-gpu"),
        ("linux", "aarch64", "onnxruntime"),
        ("darwin", "arm64", "onnxruntime"),
        ("win32", "AMD64", "onnxruntime"),
    ],
)
def test_one_runtime_on_every_platform(lock: str, sys_platform: str, platform_machine: str, runtime: str) -> None:
    """onnxruntime and onnxruntime-gpu are one import package: both would overwrite each other, none would not serve."""
    here = {"sys_platform": sys_platform, "platform_machine": platform_machine}
    pins = [pin for name, pin in locked(lock).items() if name.startswith("onnxruntime")]
    assert [pin.name for pin in pins if (pin.marker or Marker("python_version > '3'")).evaluate(here)] == [runtime]


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="all tests run in one process")
def test_tests_of_one_group_stay_in_one_process(request: pytest.FixtureRequest) -> None:
    """With a pytest that pytest-xdist does not fit they silently do not, and what is dear is made in each process."""
    marked = [(item, item.get_closest_marker("xdist_group")) for item in request.session.items]
    assert not [item.nodeid for item, group in marked if group and not item.nodeid.endswith(f"@{group.args[0]}")]


# --- documents ------------------------------------------------------------------------------------------------------


def test_version_is_the_newest_in_the_changelog() -> None:
    headings = re.findall(r"^## \[?(\d[^\s\]]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings
    assert headings[0] == PROJECT["version"]


def commands(path: Path, program: str) -> list[str]:
    """Command lines of a program in a document's code blocks and code spans, or in a script; without the program."""
    text = path.read_text(encoding="utf-8")
    code = [text]
    if path.suffix == ".md":
        code = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL) + re.findall(r"`([^`\n]+)`", text)
    return [
        line
        for block in code
        for line in re.findall(rf"^\s*(?:[A-Z_]+=\S+ )*(?:\S*/)?{program} +([^#\n]+)", block, re.MULTILINE)
    ]


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / ".ci" / "run"], ids=lambda path: str(path.relative_to(ROOT)))
def test_documented_make_targets_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {line.split()[0] for line in commands(path, "make")} <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documented_tandem_commands_exist(path: Path) -> None:
    from tandem.deploy import cli

    for line in commands(path, "tandem"):
        name, *arguments = line.split()
        assert name in cli.commands(), line
        command = cli.load_command(name)
        while arguments and (group := getattr(command, "commands", {})):  # `tandem bench decode`, not `tandem bench`
            name, *arguments = arguments
            assert name in group, line
            command = group[name]
        options = {one for parameter in command.params for one in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in arguments if word.startswith("--")} <= options, line


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (path.parent / link).exists()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_code_that_exists(path: Path) -> None:
    """A link such as [`Engine.decode`](…/engine.py) names something that the file defines."""
    for name, link in re.findall(r"\[`([\w.]+)`\]\(([^)]+\.py)\)", path.read_text(encoding="utf-8")):
        source = (path.parent / link).read_text(encoding="utf-8")
        defined = {getattr(node, "name", "") for node in ast.walk(ast.parse(source))}
        assert set(name.split(".")) <= defined, f"{link} defines no {name}"


# --- files ----------------------------------------------------------------------------------------------------------


@cache
def repository_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_file_speaks_of_one_machine() -> None:
    """No home or work folders of somebody's machine, and no package registry spelt out where a user chooses one."""
    private = re.compile(
        r"(?<![\w.~-])/(?:work|root|home|Users)/\w"
        r"|\b(?:pypi|pythonhosted|npmjs|debian|golang|anaconda|download\.pytorch)\.(?:org|com|net)\b"
    )
    faults = []
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8").splitlines(), 1):
            if found := private.search(line):
                faults.append(f"{path.relative_to(ROOT)}:{number}: {found[0]}")
    assert not faults


WEIGHTS = re.compile(r"\.(bin|ckpt|gguf|model|npy|npz|onnx|pt|pth|safetensors)$")


def test_weights_lie_in_bundles_only() -> None:
    """Git keeps every version of a file for ever, also of one that a later commit removes."""
    added = subprocess.run(
        ["git", "log", "--diff-filter=A", "--format=", "--name-only"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = {*added.stdout.splitlines(), *(str(path.relative_to(ROOT)) for path in repository_files())}
    assert not [name for name in names if WEIGHTS.search(name) and not name.startswith("bundles/")]


def test_nothing_outside_bundles_is_large() -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in repository_files()}
    assert not {name: size for name, size in sizes.items() if size > 1024 * 1024 and not name.startswith("bundles/")}


def test_a_shipped_bundle_stays_small_enough_for_git() -> None:
    sizes: dict[str, int] = {}
    for path in repository_files():
        parts = path.relative_to(ROOT).parts
        if parts[0] == "bundles" and len(parts) > 2:
            sizes[parts[1]] = sizes.get(parts[1], 0) + path.stat().st_size
    assert not {name: size for name, size in sizes.items() if size > 64_000_000}
