"""`tandem keys` and `tandem backup`: what they print, change and refuse."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tandem.deploy.cli import app
from tandem.extras.accounts.access import KeyedAccess, open_keys
from tandem.extras.accounts.keys import CallerLimits, KeyStore
from tandem.models.errors import ConfigError, TandemError
from tandem.service.callers import Caller
from tandem.service.errors import StorageError, StorageFull
from tandem.service.settings import Settings

Run = Callable[..., Result]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TANDEM_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def run(data: Path) -> Run:
    def invoke(*arguments: str, fails: bool = False) -> Result:
        result = CliRunner().invoke(app, list(arguments))
        assert (result.exit_code != 0) == fails, result.output
        return result

    return invoke


def valid(data: Path, secret: str) -> bool:
    with closing(open_keys(Settings(data=data))) as database:
        return KeyStore(database).snapshot().find(secret, time.time()) is not None


@pytest.mark.parametrize("command", ["add", "rotate", "list", "revoke", "quota", "import"])
def test_every_command_explains_itself_with_an_example(run: Run, command: str) -> None:
    assert f"tandem keys {command}" in run("keys", command, "--help").output


def test_a_key_is_printed_alone_once(run: Run, data: Path) -> None:
    result = run("keys", "add", "web")
    assert result.stdout.count("\n") == 1
    assert valid(data, result.stdout.strip())
    assert "this once only" in result.stderr
    assert result.stdout.strip() not in run("keys", "list").output + run("keys", "list", "--json").output


@pytest.mark.parametrize("command", [("list",), ("revoke", "web"), ("rotate", "web"), ("quota", "web")])
def test_a_folder_that_no_server_has_is_named_and_not_made(run: Run, data: Path, command: tuple[str, ...]) -> None:
    """No keys in the wrong folder would look like no keys at all."""
    refused = run("keys", *command, fails=True)
    assert isinstance(refused.exception, ConfigError) and str(refused.exception).startswith(f"{data} holds no keys.db")
    assert not data.exists()


def test_limits_and_the_end_of_a_key_are_listed(run: Run) -> None:
    made = json.loads(
        run("keys", "add", "web", "--admin", "--rate", "60", "--quota", "500", "--expires", "90d", "--json").stdout
    )
    assert made["key"].startswith("tandem_")
    (listed,) = json.loads(run("keys", "list", "--json").stdout)
    assert {**listed, "key": made["key"]} == {**made, "used": 0}
    assert (listed["name"], listed["state"], listed["admin"]) == ("web", "active", True)
    assert (listed["rate"], listed["quota"]) == (60, 500)
    assert listed["expires"].endswith("UTC")
    table = run("keys", "list").output
    assert "web" in table and made["id"] in table and "500" in table


def test_quota_shows_use_and_changes_limits(run: Run, data: Path) -> None:
    run("keys", "add", "web", "--quota", "500")
    access = KeyedAccess(Settings(data=data))  # a server is running
    access.meter.charge("web", access.limits_of("web"), 70)
    assert json.loads(run("keys", "quota", "web", "--json").stdout)["used"] == 70
    shown = run("keys", "quota", "web", "--quota", "0", "--rate", "9").output
    assert "9 requests a minute, any number of characters a month" in shown
    access.refresh()
    assert (access.limits_of("web").rate, access.limits_of("web").quota) == (9, 0)
    asyncio.run(access.close())


def test_rotating_and_revoking(run: Run, data: Path) -> None:
    old = run("keys", "add", "web").stdout.strip()
    new = run("keys", "rotate", "web", "--overlap", "7d").stdout.strip()
    assert valid(data, old) and valid(data, new)
    newest = run("keys", "rotate", "web", "--overlap", "0").stdout.strip()
    assert [valid(data, one) for one in (old, new, newest)] == [False, False, True]
    assert "revoked 3 keys of web" in run("keys", "revoke", "web").output
    assert not valid(data, newest)


def test_another_server_takes_keys_over(run: Run, data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    first, second = (run("keys", "add", name, "--quota", "5").stdout.strip() for name in ("web", "app"))
    own = run("keys", "add", "own", "--data", str(other)).stdout.strip()
    run("backup", str(tmp_path / "one"))
    assert "took over 2 keys" in run("keys", "import", str(tmp_path / "one" / "keys.db"), "--data", str(other)).output
    assert all(valid(other, secret) for secret in (first, second, own))
    run("keys", "revoke", "web")
    run("keys", "quota", "app", "--quota", "7")
    run("backup", str(tmp_path / "two"))
    run("keys", "import", str(tmp_path / "two" / "keys.db"), "--data", str(other))
    assert [valid(other, secret) for secret in (first, second, own)] == [False, True, True]
    with closing(open_keys(Settings(data=other))) as database:
        assert KeyStore(database).snapshot().limits_of("app") == CallerLimits(0, 7)
    (tmp_path / "text").write_text("no key store, but a text that is long enough to look at" * 10)
    assert isinstance(run("keys", "import", str(tmp_path / "text"), fails=True).exception, ConfigError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("keys", "revoke", "nobody"), "no active key of 'nobody'"),
        (("keys", "add", "admin"), "cannot be a key's name"),
        (("keys", "add", "web", "--expires", "soon"), "--expires: 'soon' is not understood; give a date such as"),
        (("keys", "add", "web", "--expires", "2001-01-01"), "must lie in the future"),
        (("keys", "rotate", "web", "--overlap", "1y"), "--overlap: '1y' is not understood"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, arguments: tuple[str, ...], message: str) -> None:
    run("keys", "add", "shop")
    error = run(*arguments, fails=True).exception
    assert isinstance(error, ConfigError)
    assert message in str(error)


def test_without_a_data_folder_there_is_nothing_to_keep_keys_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TANDEM_DATA", raising=False)
    for arguments in (["keys", "list"], ["backup", str(tmp_path / "copy")]):
        error = CliRunner().invoke(app, arguments).exception
        assert isinstance(error, ConfigError)
        assert "set TANDEM_DATA, or give --data" in str(error)


def test_a_backup_of_what_is_no_folder_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for data in (tmp_path / "nosuchdir", tmp_path / "file"):
        error = run("backup", str(tmp_path / "copy"), "--data", str(data), fails=True).exception
        assert isinstance(error, ConfigError)
        assert str(error) == f"{data} is no folder; set TANDEM_DATA, or give --data, the server's data folder"
    assert not (tmp_path / "copy").exists()


def test_a_backup_is_what_a_server_can_start_from(run: Run, data: Path, tmp_path: Path) -> None:
    secret = run("keys", "add", "web", "--quota", "500").stdout.strip()
    (data / "files" / "job").mkdir(parents=True)
    (data / "files" / "job" / "source").write_text("text")
    access = KeyedAccess(Settings(data=data))  # a server is running
    access.meter.charge("web", access.limits_of("web"), 70)
    run("backup", str(tmp_path / "copy"))
    asyncio.run(access.close())
    assert sorted(path.name for path in (tmp_path / "copy").rglob("*")) == [
        "files",
        "job",
        "keys.db",
        "limits.db",
        "source",
    ]
    restored = KeyedAccess(Settings(data=tmp_path / "copy"))
    assert restored.caller(secret) == Caller("web")
    assert restored.meter.used("web") == 70
    asyncio.run(restored.close())


def test_a_backup_overwrites_nothing_and_is_checked(run: Run, data: Path, tmp_path: Path) -> None:
    run("keys", "add", "web")
    for target in (data / "copy", tmp_path):
        assert isinstance(run("backup", str(target), fails=True).exception, ConfigError)
    (data / "broken.db").write_text("this is no database, but a long enough text " * 20)
    error = run("backup", str(tmp_path / "copy"), fails=True).exception
    assert isinstance(error, StorageError) and isinstance(error, TandemError)
    assert "broken.db cannot be backed up" in str(error)


def test_a_job_that_is_deleted_meanwhile_is_not_missed(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = {name: data / "files" / name for name in ("one", "two")}
    for folder in jobs.values():
        folder.mkdir(parents=True)
        (folder / "source").write_text("text")
    copy = shutil.copy2

    def and_delete_the_other(source: str, target: str, **options: bool) -> None:
        shutil.rmtree(jobs["two" if Path(source).parent.name == "one" else "one"], ignore_errors=True)
        copy(source, target, **options)

    monkeypatch.setattr("tandem.extras.accounts.backup.shutil.copy2", and_delete_the_other)
    run("backup", str(tmp_path / "copy"))
    assert [path.read_text() for path in (tmp_path / "copy").rglob("source")] == ["text"]


def test_half_a_backup_is_none(run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a full disk cuts short must not be taken for a backup, nor be in the way of the next one."""
    run("keys", "add", "web")
    (data / "files" / "job").mkdir(parents=True)
    (data / "files" / "job" / "source").write_text("text")

    def full(source: str, target: str, **_: bool) -> None:
        Path(target).write_text("te")
        raise OSError(errno.ENOSPC, "No space left on device", source)

    with monkeypatch.context() as patched:
        patched.setattr("tandem.extras.accounts.backup.shutil.copy2", full)
        error = run("backup", str(tmp_path / "copy"), fails=True).exception
    assert isinstance(error, StorageFull) and "source cannot be backed up" in str(error)
    assert list((tmp_path / "copy").iterdir()) == []
    run("backup", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "files" / "job" / "source").read_text() == "text"


@pytest.mark.parametrize("option", ["--rate", "--quota"])
def test_bounds_that_the_database_does_not_hold_are_refused(option: str, run: Run) -> None:
    assert "9223372036854775807" in run("keys", "add", "web", option, str(2**63), fails=True).output
    run("keys", "add", "web", option, str(2**63 - 1))
