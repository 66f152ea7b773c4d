"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="bulk",
    commands={
        "translate": (
            "tandem.extras.bulk.command:translate",
            "Translate (or summarize) files of any size line by line, without a server",
        ),
        "distil": ("tandem.extras.bulk.synthesis:distil", "Have a teacher translate the training text"),
        "backtranslate": (
            "tandem.extras.bulk.synthesis:backtranslate",
            "Make sources for text of which only the target side exists",
        ),
        "robustness": ("tandem.extras.bulk.robustness:robustness", "Show what a bundle makes of untidy text"),
    },
    needs={"robustness": ("augmentation",)},
    packages={"[ray]": ("ray",)},
)
