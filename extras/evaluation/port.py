"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="evaluation",
    commands={
        "evaluate": ("tandem.extras.evaluation.evaluation:evaluate", "Decode a test set and score it"),
        "calibrate": (
            "tandem.extras.evaluation.calibration:calibrate",
            "Learn how sure a bundle is of its sentences and words",
        ),
        "describe": (
            "tandem.extras.evaluation.describe:describe",
            "Show architecture, configuration and parameter counts",
        ),
        "curve": ("tandem.extras.evaluation.curve:curve", "Print how a run learnt, as Markdown"),
    },
    needs={"calibrate": ("alignment",)},
)
