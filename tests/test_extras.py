"""Each extra can be deleted: the core then answers as before, without what the extra brought, and its tests pass."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from tandem.service.ports import Extra, extras, load
from tests.hiding import link_package
from tests.shipped import ROOT

FOLDERS = sorted(port.parent.name for port in (ROOT / "extras").glob("*/port.py"))
WHOLE = (
    "tests/first_contact",  # measures what the shipped bundles write, with the stages that they ask for
    "tests/test_repository.py",  # what is in the repository is all of it, and so are its pages
    "tests/deploy/test_reference.py",  # the pages list the routes and settings of all extras
    "tests/browser",  # the page offers what all of them bring
    "tests/docker",
    "tests/test_extras.py",
)
"""Tests of the repository with everything in it."""
FOUND = ("pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
PROGRAM = """
import asyncio, contextlib, io, os, sys, traceback
import fastapi, httpx, limits.aio, lxml.etree, numpy, pydantic_settings, sentencepiece, structlog

async def main(folder):
    from tests.service.support import served, tiny_bundle
    async with served({"de-en": tiny_bundle(folder / "bundle")}) as service:
        ask = service.client.get
        assert (await ask("/health")).json() == {"status": "ok"}
        assert (await ask("/readyz")).status_code == 200
        assert (await ask("/openapi.json")).status_code == (await ask("/metrics")).status_code == 200
        assert (await service.translate("guten morgen")).json() == {"translatedText": "guten morgen"}

def commands():
    from tandem.deploy.cli import main
    sys.argv = ["tandem", "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as listed, contextlib.suppress(SystemExit):
        main()
    return listed.getvalue()

for tree in sys.argv[1:]:
    if not os.fork():  # a process for each, which need not import anew what lies in no tree
        from pathlib import Path
        os.chdir(tree)
        sys.path[:0] = [tree]
        try:
            asyncio.run(main(Path(tree)))
            Path(tree, "listed").write_text(commands())
        except BaseException:
            Path(tree, "fault").write_text(traceback.format_exc())
        os._exit(0)
    os.wait()
"""


def linked(folder: Path, *extras: str) -> Path:
    """The repository in a folder, without some extras."""
    folder.mkdir(exist_ok=True)
    for path in ROOT.iterdir():
        if path.name not in ("tandem", "extras", ".git") and not path.name.startswith(".venv"):
            (folder / path.name).symlink_to(path)
    link_package(folder, *extras)
    (folder / "extras").symlink_to(folder / "tandem" / "extras")
    return folder


@pytest.fixture
def tree(extra: str, tmp_path: Path) -> Path:
    """The repository without one extra."""
    return linked(tmp_path, extra)


def run(folder: Path, *arguments: str, known: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    """Python in a folder, which knows the project from a tree at most, and not from an editable install."""
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    start = f"import sys; sys.path[:0] = {[*map(str, known)]!r}; sys.path += {sorted(libraries)!r}; "
    module, *rest = arguments
    start += f"sys.argv[1:] = {rest!r}; "
    start += "import runpy; runpy.run_module('pytest', run_name='__main__')" if module == "pytest" else module
    command = [sys.executable, "-I", "-S", "-c", start]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By the extra that each lacks (of none: all of them); in it, what the program told."""
    root = tmp_path_factory.mktemp("trees")
    trees = {extra: linked(root / extra, extra) for extra in FOLDERS}
    trees[""] = linked(root / "none", *(path.name for path in (ROOT / "extras").iterdir() if path.is_dir()))
    done = run(root, PROGRAM, *map(str, trees.values()))
    assert done.returncode == 0, done.stderr[-3000:]
    return trees


@pytest.mark.parametrize("extra", ["", *FOLDERS])
def test_the_service_answers_and_the_commands_are_listed_without_it(trees: dict[str, Path], extra: str) -> None:
    """Without any, where none is named."""
    fault = trees[extra] / "fault"
    assert not fault.exists(), fault.read_text()
    gone = {name for one in extras() if extra in (one.name, "") for name in one.commands}
    gone |= {name for one in extras() for name, needed in one.needs.items() if extra in needed}
    listed = set(re.findall(r"^\W+([a-z]+) {2,}", (trees[extra] / "listed").read_text(), re.M))
    assert {"prepare", "train", "export", "serve"} <= listed and not listed & gone


def test_the_tests_of_the_core_are_found_without_any(tmp_path: Path) -> None:
    tree = linked(tmp_path, *(path.name for path in (ROOT / "extras").iterdir() if path.is_dir()))
    done = run(tree, *FOUND, *left_out(), "tests", known=[tree])
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.mark.slow  # without any of them is more, and for every day
@pytest.mark.parametrize("extra", FOLDERS)
def test_the_tests_of_the_core_are_found_without_it(tree: Path) -> None:
    done = run(tree, *FOUND, *left_out(), "tests/service", known=[tree])
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("extra", FOLDERS)
def test_the_tests_of_the_core_pass_without_it(tree: Path) -> None:
    done = run(tree, "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *left_out(), "tests", known=[tree])
    assert done.returncode == 0, done.stdout[-3000:]


def left_out() -> list[str]:
    return [f"--ignore={path}" for path in WHOLE]


@pytest.mark.parametrize("extra", extras(), ids=lambda extra: extra.name)
def test_what_a_port_names_is_there(extra: Extra) -> None:
    values = [getattr(extra, field.name) for field in fields(extra) if field.name not in ("name", "needs", "packages")]
    single = [value for value in values if isinstance(value, str)]
    listed = [place for value in values if isinstance(value, tuple) for place in value]
    named = [
        place for value in (extra.stages, extra.readers, extra.searches, extra.sources) for place in value.values()
    ]
    commands = [place for value in (extra.commands, extra.measurements) for place, _ in value.values()]
    places = [*single, *listed, *named, *commands, *extra.http]
    assert all(load(place) is not None for place in places if ":" in place)
