"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(
    name="rewriting",
    commands={"lexicon": ("extras.rewriting.command:lexicon", "Give a bundle a lexicon")},
    stages={"rewriting": "extras.rewriting.stage:Rewriting.of"},
    readers={"rewriting": "extras.rewriting.lexicon:Lexicon.from_bytes"},
)
