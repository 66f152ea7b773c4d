"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(
    name="accounts",
    commands={
        "keys": ("extras.accounts.commands:keys", "Keys of a server: make, list, limit, rotate and revoke them"),
        "backup": ("extras.accounts.backup:backup", "Copy what a server keeps"),
    },
    settings="extras.accounts.settings:AccountSettings",
    accounts="extras.accounts.running:opened",
    http={"extras.accounts.running:HTTP": ()},
)
