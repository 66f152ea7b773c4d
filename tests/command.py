"""The `tandem` command, called in this process as a user calls it."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app, commands, main


def needs(command: str) -> pytest.MarkDecorator:
    """Of a test of the core that calls an extra's command: it is skipped where that is deleted."""
    return pytest.mark.skipif(command not in commands(), reason=f"no extra brings `tandem {command}`")


def succeeds(*arguments: object) -> str:
    """What a command prints that ends well."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def fails(*arguments: object, status: int | None = None) -> str:
    """What a command says as it ends with a status: 1 or 2, where none is given."""
    ended, _, said = ends(*arguments)
    assert ended in ((1, 2) if status is None else (status,))
    return said


def ends(*arguments: object) -> tuple[int, str, str]:
    """A command's status, output and errors."""
    written, said = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(written), redirect_stderr(said):
        patch.setattr(sys, "argv", ["tandem", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), written.getvalue(), said.getvalue()
