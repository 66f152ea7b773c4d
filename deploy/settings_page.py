"""``docs/configuration.md``: every setting, models in several versions, exit status, systemd and traces."""

from __future__ import annotations

from service.configuration import flag_of, is_secret, variable_of
from service.flags import plain_default
from service.settings import Settings

_BEFORE = """\
# Settings of the service

`tandem serve` takes each setting from the first of these that has it: a flag (`--max-texts 50`), an environment
variable (`TANDEM_MAX_TEXTS=50`), a TOML file (`max_texts = 50`) that `--config` or `TANDEM_CONFIG` names, the default.
A variable that is set but empty counts as not set.
Unknown names and values out of bounds are refused at start, all of them in one line; unknown names come with those that
are near. Secrets have no flag: every user of a machine can read command lines. This page is written by
`python -m deploy.reference`.

`tandem config` prints the settings as `tandem serve` would have them with the same flags, and where each comes from,
secrets masked; `--json` does so for programs, and `--toml` writes a file for `--config`:

```
.venv/bin/tandem config --port 8080 --max-texts 50 --toml > tandem.toml
.venv/bin/tandem serve --config tandem.toml
```

Lists are separated by commas in flags and variables, bundles by the path separator (`:`); in the file they are arrays.
Relative paths start from the folder that the service runs in.

| setting, key of the file | variable | flag | default | meaning |
|---|---|---|---|---|
"""
_AFTER = """
## Models in several versions

Below a folder of `bundles` each bundle has a folder. Versions of one model lie side by side, named after it, `@` and
the version; a folder without `@` is a model without versions.

```
bundles/de-en@1    bundles/de-en@2    bundles/arxiv-title
```

Requests name an alias (`"model": "de-en"`), which stands for one version, or a version (`"model": "de-en@1"`). At start
the version of `versions` is loaded, else the newest; numbers in versions count as numbers, so `10` is newer than `9`.
While serving, an admin key may change that:

```
curl -X POST   localhost:8000/models/de-en@2         -H "Authorization: Bearer $KEY"   # load it and switch to it
curl -X POST   localhost:8000/models/de-en/rollback  -H "Authorization: Bearer $KEY"   # back to the version before
curl -X DELETE localhost:8000/models/de-en@1         -H "Authorization: Bearer $KEY"   # free its memory
```

`POST /models/de-en` takes the newest version; `?switch=false` loads one that answers to its own name only. A bundle is
checked, opened and must decode a sentence before anything is switched; where that fails, the reply and `GET /models`
say why, and the old version goes on. Requests end with the version they began with, and the version before stays loaded
for a rollback until the next switch. With `data` a switch outlives a restart, in `models.json` there, until `versions`
names another one. Give new content a new version rather than changing a folder that is served.

## Exit status

| status | meaning |
|---|---|
| 0 | done; of `tandem serve`: ended by SIGTERM or SIGINT after running work was finished, or its time was up |
| 1 | failed: a bundle is broken, another program has the port or the data folder, a disk is full, a second signal |
| 2 | called or configured wrongly, so that doing the same again is of no use: an unknown flag, a value out of bounds |
| 130 | interrupted (Ctrl-C) before it served |

Each comes with one line on the standard error output that begins with `tandem:` and says what to do, and no traceback.

## As a systemd service

```
[Service]
ExecStart=/opt/tandem/.venv-serve/bin/tandem serve --config /etc/tandem.toml
EnvironmentFile=-/etc/tandem.secrets
StateDirectory=tandem
Environment=TANDEM_DATA=%S/tandem
DynamicUser=yes
Restart=on-failure
RestartPreventExitStatus=2
TimeoutStopSec=45
```

SIGTERM makes `/readyz` answer 503 at once. Requests that have begun end, for at most `shutdown_timeout` seconds, so let
`TimeoutStopSec` be some seconds more; others are refused with 503 and `Retry-After`. File jobs go on after the restart.

## Traces

With `traces_endpoint`, or OpenTelemetry's own `OTEL_EXPORTER_OTLP_ENDPOINT`, each request becomes a trace: the server
span, and within it `split`, `engine` with `queue`, `encode` and `decode`, and `detokenise`, with counts of sentences
and tokens. A `traceparent` header is continued, and log lines carry the `trace_id`. Texts, paths, queries and addresses
of clients are never exported. It needs the extra `telemetry`; the other `OTEL_*` variables of the SDK hold.
"""


def configuration_page() -> str:
    """Every setting of the service as a table."""
    rows = []
    for name, field in Settings.model_fields.items():
        flag = "" if is_secret(name) else f"`{flag_of(name)}`"
        default = plain_default(field.default) or "none"
        meaning = (field.description or "").replace("|", "\\|")
        rows.append(f"| `{name}` | `{variable_of(name)}` | {flag} | `{default}` | {meaning} |\n")
    return _BEFORE + "".join(rows) + _AFTER
