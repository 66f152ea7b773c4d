"""`tandem config`: values, origins, and what it masks."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app
from tandem.extras.inspection.command import shown
from tandem.service.configuration import flag_of, is_secret, read_configuration
from tandem.service.settings import Settings
from tests.service.test_configuration import SECRET, Run, _clean, run, written

__all__ = ["_clean", "run"]


def test_it_has_the_flags_of_a_server_and_takes_retired_settings(tmp_path: Path, run: Run) -> None:
    flags = {flag_of(name) for name in Settings.model_fields if not is_secret(name)}
    shown_help = CliRunner().invoke(app, ["config", "--help"], env={"COLUMNS": "200"}).output
    assert all(flag in shown_help for flag in flags)
    assert run("config")[0] == run("config", "--config", written(tmp_path, "gpu_triton = true\n"))[0] == 0


def test_a_secret_that_is_refused_is_not_quoted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_ADMIN_KEY", "short-secret")
    status, _, err = run("config")
    assert status == 2
    assert "admin_key (TANDEM_ADMIN_KEY)" in err and "short-secret" not in err


def test_config_shows_values_and_origins(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_ADMIN_KEY", SECRET)
    monkeypatch.setenv("TANDEM_MAX_TEXTS", "7")
    status, out, _ = run("config", "--json", "--no-shortlist", "--cors-origins", "https://a.org,https://b.org", "here")
    found = json.loads(out)
    assert status == 0
    assert found["max_texts"] == {"value": 7, "origin": "TANDEM_MAX_TEXTS"}
    assert found["shortlist"] == {"value": False, "origin": "--shortlist"}
    assert found["bundles"] == {"value": ["here"], "origin": "--bundles"}
    assert found["cors_origins"]["value"] == ["https://a.org", "https://b.org"]
    assert found["admin_key"] == {"value": "***", "origin": "TANDEM_ADMIN_KEY"}
    assert list(found) == list(Settings.model_fields)
    for form in ((), ("--json",), ("--toml",)):
        assert SECRET not in run("config", *form)[1]
    table = run("config")[1]
    assert "TANDEM_MAX_TEXTS" in table and "***" in table


def test_config_writes_a_file_that_can_be_fed_back(tmp_path: Path, run: Run) -> None:
    text = 'host = "0.0.0.0"\nmax_characters = 5000\nshortlist = false\nversions = ["de-en@1"]\nbulk_handicap = 2.5\n'
    first = read_configuration({"config": written(tmp_path, text), "log_format": "text"}).settings
    out = run("config", "--toml", "--log-format", "text", "--config", str(tmp_path / "tandem.toml"))[1]
    assert tomllib.loads(out)["log_format"] == "text"
    assert "# port = 8000" in out.splitlines()
    (tmp_path / "again.toml").write_text(out, encoding="utf-8")
    again = read_configuration({"config": str(tmp_path / "again.toml")}).settings
    assert again.model_dump(exclude={"config"}) == first.model_dump(exclude={"config"})
    everything = "\n".join(line.removeprefix("# ") for line in out.splitlines())
    (tmp_path / "all.toml").write_text(everything, encoding="utf-8")
    read_configuration({"config": str(tmp_path / "all.toml")})


def test_passwords_in_addresses_are_masked() -> None:
    assert shown("host", "https://me:word@host:4318/x") == "https://me:***@host:4318/x"
    assert shown("host", "http://host:4318") == "http://host:4318"
