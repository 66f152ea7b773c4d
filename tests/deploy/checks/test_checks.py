"""The frame of the checks: verdicts, exit status, how tools are found, what needs no tool at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.checks import __main__ as program
from deploy.checks import compose, programs, scaling, tools
from deploy.checks.outcome import Check, MissingTool, outcome_of
from deploy.checks.tools import TOOLS, Tool, Toolbox, fault_of
from models.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]


def missing() -> list[str]:
    raise MissingTool("there is no such tool")


def without_package() -> list[str]:
    raise ConfigError("install it") from ModuleNotFoundError("yaml")


def broken() -> list[str]:
    raise ConfigError("not to be read")


def gone() -> list[str]:
    return [Path("/there/is/no/such/file").read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    ("faults", "verdict", "strictly"),
    [
        (list, "passed", "passed"),
        (lambda: ["wrong"], "failed", "failed"),
        (missing, "skipped", "failed"),
        (without_package, "skipped", "failed"),
        (broken, "failed", "failed"),
        (gone, "failed", "failed"),
    ],
)
def test_verdicts(faults: Callable[[], list[str]], verdict: str, strictly: str) -> None:
    check = Check("something", faults)
    assert outcome_of(check, strict=False).verdict == verdict
    outcome = outcome_of(check, strict=True)
    assert outcome.verdict == strictly
    assert bool(outcome.words) == (strictly != "passed")
    assert str(outcome).splitlines()[0] == f"{strictly:8}something"


@pytest.mark.parametrize(
    ("faults", "arguments", "status"),
    [
        (list, [], 0),
        (missing, [], 0),
        (missing, ["--strict"], 1),
        (lambda: ["wrong:\nin line 3"], [], 1),
    ],
)
def test_exit_status(
    faults: Callable[[], list[str]],
    arguments: list[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def one(root: Path, box: Toolbox) -> Iterator[Check]:
        yield Check("the only one", faults)

    monkeypatch.setattr(program, "GROUPS", {"only": one})
    assert program.main([*arguments, "only"]) == status
    printed = capsys.readouterr().out
    assert "the only one" in printed
    if status and not arguments:
        assert "        in line 3\n" in printed
        assert printed.endswith("0 passed, 1 failed, 0 skipped\n")


def test_an_unknown_group_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["kubernets"])
    assert ended.value.code == 2
    assert "kubernets" in capsys.readouterr().err


def test_what_needs_no_tool_passes_here() -> None:
    pytest.importorskip("promql_parser")
    assert scaling.faults(ROOT / "deploy" / "kubernetes") == []


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("base/autoscaler.yaml", "name: tandem_queue_load", "name: tandem_queue", "does not make tandem_queue,"),
        ("metrics-adapter.yaml", "as: tandem_worker_load", "as: tandem_load", "does not make tandem_worker_load,"),
        ("metrics-adapter.yaml", "(tandem_queue_limit_tokens{", "(tandem_queue_limit{", "tandem_queue_limit, which"),
        ("metrics-adapter.yaml", "'tandem_queue_tokens{name", "'tandem_tokens{name", "by tandem_tokens, which"),
        ("metrics-adapter.yaml", "^tandem_decode_workers$", "^workers$", "must match tandem_decode_workers"),
        ("metrics-adapter.yaml", "<<.GroupBy>>", "pod", "must have <<.GroupBy>>"),
        ("metrics-adapter.yaml", "          pod: {resource: pod}\n", "", "must be of a pod"),
        ("metrics-adapter.yaml", "[2m]))", "[2m])", "is not PromQL"),
    ],
)
def test_metrics_that_nobody_makes_are_named(file: str, old: str, new: str, words: str, tmp_path: Path) -> None:
    pytest.importorskip("promql_parser")
    folder = Path(shutil.copytree(ROOT / "deploy" / "kubernetes", tmp_path / "kubernetes"))
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    assert [fault for fault in scaling.faults(folder) if words in fault]


# --- how tools are found --------------------------------------------------------------------------------------------


def a_program(folder: Path, name: str, says: str, status: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, for programs of the test's own."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    monkeypatch.setattr(tools, "_beside_python", lambda name: None)
    known = {**TOOLS, "thing": THING}
    monkeypatch.setattr(tools, "TOOLS", known)
    return tmp_path / "bin"


THING = Tool(
    commands=(("thing-of-the-test", "check"), ("other-thing",)),
    version=("--version",),
    sign=r"Thing ([\d.]+)",
    least=(2, 10),
    packages=("thing",),
    program="usr/bin/thing",
    remedy="buy one",
)


def test_an_installed_tool_is_taken(place: Path, tmp_path: Path) -> None:
    found = a_program(place, "thing-of-the-test", "Thing 2.10.1")
    box = Toolbox(tmp_path / "tools")
    assert box.command("thing") == (str(found), "check")
    answer = box.run("thing", ["file"], tmp_path)
    assert (answer.status, answer.output) == (0, "Thing 2.10.1\n")
    assert not (tmp_path / "tools").exists()


@pytest.mark.parametrize(
    ("says", "words"),
    [("Thing 2.9", "of version 2.9, older than 2.10"), ("Something else 3", "is no thing-of-the-test of the kind")],
)
def test_another_program_of_that_name_is_not(says: str, words: str, place: Path, tmp_path: Path) -> None:
    path = a_program(place, "thing-of-the-test", says)
    assert words in fault_of(THING, (str(path),))
    found = a_program(place, "other-thing", "Thing 3.0")
    assert Toolbox(tmp_path / "tools").command("thing") == (str(found),)


def test_a_missing_tool_says_what_was_tried_and_what_to_do(place: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingTool) as missing:
        Toolbox(tmp_path / "tools", download=False).command("thing")
    for words in ("thing-of-the-test is not installed", "other-thing is not installed", "was not fetched", "buy one"):
        assert words in str(missing.value)


def test_a_package_is_unpacked_once(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []

    def unpack(packages: tuple[str, ...], suite: str, target: Path, workplace: Path) -> None:
        fetched.append((packages, suite))
        a_program(target / "usr" / "bin", "thing", "Thing 4")

    monkeypatch.setattr(tools, "unpack", unpack)
    for _ in range(2):
        box = Toolbox(tmp_path / "tools")
        assert box.command("thing") == (str(tmp_path / "tools" / "thing-trixie" / "usr" / "bin" / "thing"),)
    assert fetched == [(("thing",), "trixie")]
    assert (tmp_path / "tools" / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_package_that_does_not_run_here_is_missing(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack(packages: tuple[str, ...], suite: str, target: Path, workplace: Path) -> None:
        a_program(target / "usr" / "bin", "thing", "no such library", status=127)

    monkeypatch.setattr(tools, "unpack", unpack)
    with pytest.raises(MissingTool, match="package does not run here"):
        Toolbox(tmp_path / "tools").command("thing")


def test_a_program_that_does_not_end_is_stopped(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_program(place, "slow", "x")
    path.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    monkeypatch.setattr(programs, "SECONDS", 0.05)
    answer = programs.call([str(path)], tmp_path)
    assert answer.status != 0
    assert "took longer than 0.05 s" in answer.words


def test_a_machine_that_is_no_debian_says_so(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.checks.debian.KEYRING", tmp_path / "keys.gpg")
    with pytest.raises(MissingTool, match=r"cannot be had here: .*keys\.gpg is missing.* buy one"):
        Toolbox(tmp_path / "tools").command("thing")
    assert not list((tmp_path / "tools").glob("thing*"))


# --- Compose --------------------------------------------------------------------------------------------------------


def test_documented_combinations_are_found(tmp_path: Path) -> None:
    for name in ("docker-compose.yml", "docker-compose.b.yml", "docker-compose.a.yml"):
        (tmp_path / name).write_text("services: {}\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    text = (
        "```\nA=3 docker compose -f docker-compose.yml -f docker-compose.b.yml \\\n"
        "    -f docker-compose.a.yml up\n```\n"
        "or `docker compose --profile x --file=own.yml up`, and `docker compose up`; `docker compose logs -f tandem`\n"
    )
    (tmp_path / "docs" / "deploy.md").write_text(text, encoding="utf-8")
    assert compose.combinations(tmp_path) == [
        ("docker-compose.yml",),
        ("docker-compose.yml", "docker-compose.a.yml"),
        ("docker-compose.yml", "docker-compose.b.yml"),
        ("docker-compose.yml", "docker-compose.b.yml", "docker-compose.a.yml"),
        ("own.yml",),
    ]


def test_sources_that_are_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    volumes = [
        {"type": "bind", "source": str(tmp_path / "there"), "target": "/a"},
        {"type": "bind", "source": str(tmp_path / "gone"), "target": "/b"},
        {"type": "bind", "source": "/somewhere/else", "target": "/c"},
        {"type": "volume", "source": "state", "target": "/d"},
    ]
    config = {"services": {"one": {"volumes": volumes}}, "configs": {"two": {"file": str(tmp_path / "three")}}}
    assert compose.missing_sources(config, tmp_path) == [
        "gone does not exist, but service one mounts it at /b",
        "three does not exist, but config two",
    ]
