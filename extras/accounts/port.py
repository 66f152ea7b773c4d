"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="accounts",
    commands={
        "keys": ("tandem.extras.accounts.commands:keys", "Keys of a server: make, list, limit, rotate and revoke them"),
        "backup": ("tandem.extras.accounts.backup:backup", "Copy what a server keeps"),
    },
    settings="tandem.extras.accounts.settings:AccountSettings",
    accounts="tandem.extras.accounts.running:opened",
    http={"tandem.extras.accounts.running:HTTP": ()},
)
