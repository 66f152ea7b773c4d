"""Every architecture as a whole against its NumPy restatement, which has one sentence and one position at a time."""

from __future__ import annotations

import pytest

from tests.models.architectures.comparison import RESTATEMENTS, assert_restated
from tests.models.architectures.examples import CASES, Case


def test_every_architecture_of_a_paper_is_restated() -> None:
    assert {case.architecture for case in CASES} - RESTATEMENTS.keys() == {"ensemble"}  # the mean of its members


@pytest.mark.parametrize("case", [case for case in CASES if case.architecture in RESTATEMENTS], ids=str)
def test_the_whole_model(case: Case) -> None:
    assert_restated(case.architecture, case.build())
