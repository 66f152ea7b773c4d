"""That the trials tell a sound service from a broken one."""

from __future__ import annotations

from collections import Counter

import pytest

from tandem.extras.laboratory.abuse.endings import disconnect, kill, lost_requests, terminate
from tandem.extras.laboratory.abuse.overload import judge
from tandem.extras.laboratory.abuse.reliability import as_markdown, measure
from tandem.extras.laboratory.abuse.trials import Setting, TrialFinding, wait_for
from tandem.extras.laboratory.options import ReliabilityOptions
from tandem.extras.laboratory.service.verdicts import Verdict
from tandem.extras.loadtest.client import LoadRun, RequestOutcome
from tandem.models.errors import ConfigError
from tests.command import fails
from tests.shipped import SHIPPED


def overloaded(answered: int, refusal: float = 0.05, retry: int | None = 3, failed: int = 0) -> LoadRun:
    outcomes = [RequestOutcome(1.0, "answered")] * answered + [
        RequestOutcome(refusal, "rejected", retry_after=retry)
    ] * 100
    return LoadRun((*outcomes, *[RequestOutcome(1.0, "failed", fault="500")] * failed), 10.0, answered, 1.0)


@pytest.mark.parametrize(
    ("run", "after", "broken"),
    [
        (overloaded(950), (5.0, 2.0), []),
        (overloaded(800), (5.0, 2.0), [0]),
        (overloaded(950, refusal=2.0), (5.0, 2.0), [1]),
        (overloaded(950, retry=None), (5.0, 2.0), [2]),
        (overloaded(950, failed=1), (5.0, 2.0), [3]),
        (overloaded(950), (500.0, 2.0), [4]),
        (overloaded(950), (5.0, 9.0), [5]),
        (overloaded(950), (5.0, None), [5]),
    ],
)
def test_overload_is_judged_by_each_of_its_promises(
    run: LoadRun, after: tuple[float, float | None], broken: list[int]
) -> None:
    verdicts = judge(run, 100.0, 10.0, after)
    assert [number for number, verdict in enumerate(verdicts) if not verdict.met] == broken


def test_only_what_was_accepted_can_be_lost() -> None:
    endings = Counter({"answered": 90, "refused": 5, "not accepted": 4})
    assert lost_requests(endings) == 0
    assert lost_requests(endings + Counter({"ServerDisconnectedError": 2, "status 500": 1})) == 3


def test_findings_are_written_for_people() -> None:
    good, bad = Verdict("requests lost", 0.0, 0.0), Verdict("seconds", None, 5.0)
    finding = TrialFinding("Is anything lost?", "It is killed.", [good, bad], {"peak_mb": 12.5}, "503 full")
    assert not finding.met
    environment = {
        "processor": "P",
        "features": [],
        "usable_cores": 2,
        "cores": 2,
        "threads": 2,
        "python": "3.11",
        "versions": {"tandem": "1"},
    }
    text = as_markdown(
        {"bundle": "de-en", "environment": environment, "findings": [{**finding.mapping(), "seconds": 3}]}
    )
    for part in (
        "## Is anything lost?",
        "- reached: requests lost: 0",
        "- NOT reached: seconds: no figure",
        "peak mb 12.5",
    ):
        assert part in text
    assert "What came instead: 503 full" in text


def test_a_condition_is_waited_for() -> None:
    assert wait_for(lambda: True, 1.0) is not None
    assert wait_for(lambda: False, 0.01, 0.001) is None


def test_an_unknown_trial_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="nothing"):
        measure(ReliabilityOptions(bundle=SHIPPED, only="nothing"))
    fails("bench", "reliability", "--bundle", SHIPPED, "--only", "nothing")


@pytest.mark.slow
@pytest.mark.parametrize("trial", [disconnect, terminate, kill])
def test_the_service_stands_the_trials(trial: object) -> None:
    finding = trial(Setting(ReliabilityOptions(bundle=SHIPPED, duration=3.0, clients=8)))  # type: ignore[operator]
    assert finding.met, finding.mapping()
