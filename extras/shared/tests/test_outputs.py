"""Paths that cannot be written are refused before the work, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.deploy import cli
from tandem.extras.shared.outputs import check_file, check_folder
from tandem.models.errors import ConfigError
from tests.command import fails


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    check_file(tmp_path / "a" / "b" / "out.txt", "--out")
    check_folder(tmp_path / "c", "--out")
    check_file(None, "--out")
    check_file(Path("-"), "--markdown")
    check_folder(None, "--hypotheses")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]
    assert not (tmp_path / "a" / "b" / "out.txt").exists()


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match=r"--out must be a file, but .* is a folder"):
        check_file(tmp_path, "--out")
    with pytest.raises(ConfigError, match=r"--hypotheses: cannot make the folder .*file: File exists"):
        check_folder(file, "--hypotheses")
    with pytest.raises(ConfigError, match=r"--markdown: cannot make the folder .*file"):
        check_file(file / "table.md", "--markdown")


def test_a_path_that_fails_later_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail() -> None:
        (tmp_path / "none" / "file").write_text("")

    monkeypatch.setattr(cli, "app", fail)
    assert fails(status=1) == f"tandem: {tmp_path}/none/file: No such file or directory\n"
