"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="rewriting",
    commands={"lexicon": ("tandem.extras.rewriting.command:lexicon", "Give a bundle a lexicon")},
    stages={"rewriting": "tandem.extras.rewriting.stage:Rewriting.of"},
    readers={"rewriting": "tandem.extras.rewriting.lexicon:Lexicon.from_bytes"},
)
