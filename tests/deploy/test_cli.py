"""The command's edges: help for newcomers, one-line errors, descriptions, and pages written from the code."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from tandem.deploy.cli import commands, load_command, main
from tandem.models.folders import whole_folder
from tests.command import fails, needs, succeeds
from tests.hiding import link_package
from tests.shipped import ROOT, SHIPPED

RECIPE = ROOT / "training" / "recipes" / "tatoeba-de-en" / "dpn.toml"


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    """Its help begins with the line that it has in the list; groups have an example for each of their commands."""
    loaded = load_command(command)
    assert loaded.help.startswith(commands()[command][1])
    for words in [[command, name] for name in getattr(loaded, "commands", ())] or [[command]]:
        assert f"tandem {' '.join(words)}" in succeeds(*words, "--help").partition("Usage")[2].partition("\n")[2]


def test_the_version_is_that_of_the_package() -> None:
    assert succeeds("--version") == f"tandem {metadata.version('tandem')}\n"


def test_the_list_of_commands_needs_no_package_of_an_extra() -> None:
    blocked = ("torch", "onnxruntime", "fastapi", "pydantic", "sacrebleu")
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked})); from tandem.deploy.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f" {name} " in done.stdout for name in commands())


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("train", "torch", "[train]"), ("serve", "pydantic", "[serve]"), ("serve", "uvicorn", "[serve]")],
)
def test_a_missing_package_names_its_extra(
    command: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named '{package}.part'", name=f"{package}.part")

    monkeypatch.setattr("tandem.deploy.cli.load", missing)
    message = f"tandem: this command needs the package '{package}': install tandem with its extra {extra}"
    assert fails(command, "x", status=1).startswith(message)


def test_a_deleted_extra_that_another_one_needs_is_named(tmp_path: Path) -> None:
    link_package(tmp_path, "loadtest")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from tandem.deploy.cli import main; main()"
    asked = [sys.executable, "-I", "-c", code, "bench", "serve", "--bundle", str(SHIPPED)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    told = "tandem: this command needs the extra 'loadtest': its folder, extras/loadtest, is not there; bring it back\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_missing_recipe_is_named() -> None:
    assert "no-such.toml: cannot read the recipe" in fails("prepare", "no-such.toml", status=2)


@needs("verify")
def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    assert "manifest.json" in fails("verify", tmp_path, status=1)


def test_an_unknown_key_lists_the_known_ones(tmp_path: Path) -> None:
    recipe = tmp_path / "typo.toml"
    recipe.write_text(RECIPE.read_text(encoding="utf-8").replace("join_share", "joinshare"), encoding="utf-8")
    message = fails("prepare", recipe, status=2)
    assert "typo.toml data has no key 'joinshare': did you mean 'join_share'?" in message
    assert "max_source_tokens" in message


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Writing, unlike opening, says no file's name."""

    def full() -> None:
        with whole_folder(tmp_path / "new") as folder, (folder / "a").open("w"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tandem.deploy.cli.app", full)
    said = f"tandem: {tmp_path / 'new'}: No space left on device; make room on its disk, and run the command again\n"
    assert fails(status=1) == said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (lambda: torch.empty(10**14), "DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        (lambda: np.empty(10**15), "Unable to allocate"),
    ],
)
def test_too_little_memory_is_one_line(
    monkeypatch: pytest.MonkeyPatch, lacking: Callable[[], object], said: str
) -> None:
    monkeypatch.setattr("tandem.deploy.cli.app", lacking)
    message = fails(status=1)
    assert message.startswith("tandem: the memory does not suffice (") and said in message
    assert message.endswith("take smaller batches or a smaller model, or more memory\n") and message.count("\n") == 1


def test_other_errors_of_a_defect_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def recurse() -> None:
        recurse()

    monkeypatch.setattr("tandem.deploy.cli.app", recurse)
    with pytest.raises(RecursionError):
        main()


def test_missing_corpora_are_named(tmp_path: Path) -> None:
    arguments = ("prepare", RECIPE, "--corpora", tmp_path, "--run", tmp_path / "run")
    assert "tatoeba-de-en" in fails(*arguments, status=1)


def test_training_without_prepared_data_says_so(tmp_path: Path) -> None:
    assert "holds no prepared data" in fails("train", RECIPE, "--run", tmp_path, status=1)


def test_a_setting_out_of_bounds_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_MAX_BEAM_SIZE", "1000")
    assert "max_beam_size" in fails("serve", tmp_path, status=2)
