"""The `tandem` command, called in this process as a user calls it."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr

import pytest
from typer.testing import CliRunner

from deploy.cli import app, main


def succeeds(*arguments: object) -> str:
    """What a command prints that ends well."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def fails(*arguments: object, status: int | None = None) -> str:
    """What a command says as it ends with a status: 1 or 2, where none is given."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
        patch.setattr(sys, "argv", ["tandem", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code in ((1, 2) if status is None else (status,))
    return said.getvalue()
