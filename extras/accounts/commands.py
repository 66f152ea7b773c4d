"""`tandem keys`: who may use a server, and how much."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tandem.extras.accounts.access import KEYS_FILE, make_meter, open_keys
from tandem.extras.accounts.keys import CallerLimits, Key, KeyStore, NewKey
from tandem.extras.accounts.meter import Meter
from tandem.models.command import AsJson, console
from tandem.models.errors import ConfigError
from tandem.service.configuration import DataFolder, data_flag, read_configuration

keys = typer.Typer(
    help="Keys of a server: make, list, limit, rotate and revoke them. A running server follows within seconds.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
_DURATION = re.compile(r"([1-9][0-9]{0,5})([hd])")
_SECONDS = {"h": 3600.0, "d": 86_400.0}

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is; shown in logs and metrics.")]
Expires = Annotated[str, typer.Option(help="When it ends: a date such as 2030-12-31, or 12h, 90d. [never]")]
_MOST = 2**63 - 1  # that the database holds
Rate = Annotated[int | None, typer.Option(min=0, max=_MOST, help="Requests a minute; 0 = without bound.")]
Quota = Annotated[int | None, typer.Option(min=0, max=_MOST, help="Characters a month; 0 = without bound.")]


@keys.command()
def add(
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="May also load, unload and switch models.")] = False,
    rate: Rate = 0,
    quota: Quota = 0,
    expires: Expires = "",
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once.

    Example: tandem keys add mastodon --rate 60 --quota 500000
    """
    with _opened(data, new=True) as (store, _):
        key = store.add(name, CallerLimits(rate or 0, quota or 0), admin=admin, expires=_moment(expires))
        _show_new(key, store, as_json)


@keys.command()
def rotate(
    name: Name,
    overlap: Annotated[str, typer.Option(help="How long the keys that there are stay valid: 0, 12h, 7d.")] = "24h",
    expires: Expires = "",
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a further key with the same name and limits, and let those that there are end soon.

    Example: tandem keys rotate mastodon --overlap 7d
    """
    with _opened(data) as (store, _):
        key = store.rotate(name, 0.0 if overlap == "0" else _seconds(overlap, "--overlap"), _moment(expires))
        _show_new(key, store, as_json)


@keys.command("list")
def list_keys(data: DataFolder = None, as_json: AsJson = False) -> None:
    """List all keys with their limits and this month's use, never the keys themselves.

    Example: tandem keys list --json
    """
    with _opened(data) as (store, meter):
        described = [_described(key, meter) for key in store.all_keys()]
    if as_json:
        typer.echo(json.dumps(described, indent=1))
        return
    table = Table("name", "id", "state", "admin", "requests/minute", "characters/month", "used", "created", "expires")
    for key in described:
        limits = (key[field] or "no bound" for field in ("rate", "quota"))
        cells = (key["name"], key["id"], key["state"], key["admin"], *limits, key["used"], key["created"])
        table.add_row(*map(str, cells), key["expires"] or "never")
    console().print(table)


@keys.command()
def revoke(name: Name, data: DataFolder = None) -> None:
    """End all keys of a name, now.

    Example: tandem keys revoke mastodon
    """
    with _opened(data) as (store, _):
        count = store.revoke(name)
    typer.echo(f"revoked {count} {'key' if count == 1 else 'keys'} of {name}; running servers follow within seconds")


@keys.command()
def quota(
    name: Name,
    rate: Rate = None,
    characters: Annotated[
        int | None, typer.Option("--quota", min=0, max=_MOST, help="Characters a month; 0 = no bound.")
    ] = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show a name's limits and this month's use; change those that are given.

    Example: tandem keys quota mastodon --quota 1000000
    """
    with _opened(data) as (store, meter):
        limits = store.set_limits(name, rate, characters)
        result = {"name": name, "rate": limits.rate, "quota": limits.quota, "used": meter.used(name)}
    if as_json:
        typer.echo(json.dumps(result, indent=1))
        return
    typer.echo(f"{name}: {_bound(limits.rate)} requests a minute, {_bound(limits.quota)} characters a month")
    typer.echo(f"used this month: {result['used']} characters")


@keys.command("import")
def import_keys(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="keys.db in a backup of the other server.", exists=True)],
    data: DataFolder = None,
) -> None:
    """Take over every key of another server, so that both know the same: new ones, limits, and what has ended there.

    Example: tandem keys import backups/2030-12-31/keys.db
    """
    with _opened(data, new=True) as (store, _):
        count = store.take_over(file)
    typer.echo(f"took over {count} {'key' if count == 1 else 'keys'}; running servers follow within seconds")


@contextmanager
def _opened(data: Path | None, *, new: bool = False) -> Iterator[tuple[KeyStore, Meter]]:
    """The keys and counters of the server that the settings describe; ``new`` makes them. Raises ConfigError."""
    settings = read_configuration(data_flag(data)).settings
    if settings.data is None:
        raise ConfigError("keys need the server's data folder: set TANDEM_DATA, or give --data")
    if not new and not (settings.data / KEYS_FILE).exists():
        raise ConfigError(f"{settings.data} holds no {KEYS_FILE}; set TANDEM_DATA, or give --data, the server's folder")
    opened = [open_keys(settings)]
    try:
        yield KeyStore(opened[0]), make_meter(settings, opened)
    finally:
        for database in opened:
            database.close()


def _show_new(key: NewKey, store: KeyStore, as_json: bool) -> None:
    made = next(known for known in store.all_keys() if known.id == key.id)
    if as_json:
        typer.echo(json.dumps({**_described(made, None), "key": key.secret}, indent=1))
        return
    typer.echo(f"The key of {made.caller}; it is shown this once only, and cannot be found again:", err=True)
    typer.echo(key.secret)


def _described(key: Key, meter: Meter | None) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "name": key.caller,
        "id": key.id,
        "state": key.state(time.time()),
        "admin": key.admin,
        "rate": key.limits.rate,
        "quota": key.limits.quota,
        "created": _day(key.created),
        "expires": None if key.expires is None else _day(key.expires),
    }
    return found if meter is None else {**found, "used": meter.used(key.caller)}


def _moment(text: str) -> float | None:
    """A date, or a time from now, in seconds since 1970. Raises ConfigError."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return time.time() + _seconds(text, "--expires")
    found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if found <= time.time():
        raise ConfigError(f"--expires must lie in the future, but is {text}")
    return found


def _seconds(text: str, option: str) -> float:
    match = _DURATION.fullmatch(text)
    if not match:
        date = "a date such as 2030-12-31, or " if option == "--expires" else ""
        raise ConfigError(f"{option}: {text!r} is not understood; give {date}hours or days, such as 12h or 90d")
    return int(match[1]) * _SECONDS[match[2]]


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"


def _bound(value: int) -> str:
    return str(value) if value else "any number of"
