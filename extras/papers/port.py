"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="papers",
    commands={
        "corpus": (
            "tandem.extras.papers.corpora.fetch:corpus",
            "Prepare a corpus of the papers from files that you fetched",
        ),
        "analyse": ("tandem.extras.papers.analysis.analyse:analyse", "Draw what the papers plot"),
    },
    needs=dict.fromkeys(("corpus", "analyse", "claims"), ("evaluation",)),
    measurements={"claims": ("tandem.extras.papers.claims.options:ClaimsOptions", "tandem.extras.papers.claims.table")},
)
