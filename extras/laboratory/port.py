"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="laboratory",
    commands={"bench": ("tandem.extras.laboratory.cli:bench", "Measure speed, beside other programs in the same run")},
    packages={"[bench]": ("accelerate", "ctranslate2", "httpx", "schemathesis", "transformers")},
)
