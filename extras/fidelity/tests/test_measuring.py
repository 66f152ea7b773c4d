"""`tandem bench fidelity` counts what it says that it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.extras.fidelity.measuring import markdown, measure
from tandem.extras.fidelity.options import FidelityOptions
from tandem.models.errors import ConfigError
from tests.shipped import SHIPPED


def test_the_same_lines_with_and_without(tmp_path: Path) -> None:
    text, references = tmp_path / "text", tmp_path / "references"
    text.write_text("Das Haus\nWer kommt\nDas Auto\n", "utf-8")
    references.write_text("The house\nWho is coming\nThe car\n", "utf-8")
    options = FidelityOptions(bundle=SHIPPED, pair="de-en", text=text, references=references, lines=2)
    result = measure(options)
    assert result["lines"] == 2 and set(result["ways"]) == {"without", "with"}
    for row in result["ways"].values():
        assert row["faults"] == 0 and min(row["milliseconds"], row["steps"]) > 0 and 0 < row["chrF"] <= 100
    (head, _, without, checked, *_) = markdown(result)
    assert head.startswith("| de-en, 2 lines") and without.startswith("| without | 0") and "| with | 0" in checked


@pytest.mark.parametrize(("pair", "lines"), [("de", 1), ("de-en", 0), ("de-en", 2)])
def test_what_does_not_fit_is_refused(tmp_path: Path, pair: str, lines: int) -> None:
    text, references = tmp_path / "text", tmp_path / "references"
    text.write_text("Das Haus\n" * lines, "utf-8")
    references.write_text("The house\n", "utf-8")
    with pytest.raises(ConfigError, match="--pair must be like de-en"):
        measure(FidelityOptions(bundle=SHIPPED, pair=pair, text=text, references=references))
