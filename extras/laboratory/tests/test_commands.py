"""The list of measurements: every command has its module, and both programs are the same."""

from __future__ import annotations

import inspect
import json
from importlib import import_module

import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app
from tandem.extras.laboratory.cli import COMMANDS
from tests.shipped import SHIPPED


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_module_that_measures_and_shows(name: str) -> None:
    options, path = COMMANDS[name]
    module = import_module(path)
    assert next(iter(inspect.signature(module.measure).parameters)) == "options"
    assert callable(module.show)
    assert f"Example: tandem bench {name} " in (options.__doc__ or "")


def test_a_command_prints_json_alone_and_refuses_what_is_missing() -> None:
    bundle = SHIPPED
    done = CliRunner().invoke(app, ["bench", "trace", "--bundle", str(bundle), "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["reply"]["translatedText"]
    assert CliRunner().invoke(app, ["bench", "serve"]).exit_code == 2
