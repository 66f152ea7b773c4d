"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(
    name="papers",
    commands={
        "corpus": (
            "extras.papers.corpora.command:corpus",
            "Prepare a corpus of the papers from files that you fetched",
        ),
        "analyse": ("extras.papers.analysis.command:analyse", "Draw what the papers plot"),
    },
    measurements={"claims": ("extras.papers.claims.options:ClaimsOptions", "extras.papers.claims.command")},
)
