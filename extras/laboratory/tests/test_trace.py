"""The way of one request: what is counted, and that a shipped bundle's is found."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tandem.extras.laboratory.options import TraceOptions
from tandem.extras.laboratory.trace import CallRecorder, measure, show
from tandem.models.errors import ConfigError
from tandem.models.text import normalise
from tests.shipped import SHIPPED


def test_our_calls_are_counted_in_every_thread_that_starts_later() -> None:
    recorder = CallRecorder()
    threading.setprofile(recorder)
    try:
        thread = threading.Thread(target=lambda: [normalise("a") for _ in range(2)], name="other_7")
        normalise("not in a thread of its own")
        recorder.active = True
        thread.start()
        thread.join()
    finally:
        threading.setprofile(None)
    found = recorder.figures()
    assert (found["calls"], found["functions"], found["files"]) == (2, 1, 1)
    assert found["rows"] == [{"file": "models/text.py", "functions": 1}]
    assert (found["thread_changes"], found["stays"]) == (0, {"other": 1})


def test_a_request_is_traced_from_the_edge_to_the_graphs_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    result = measure(TraceOptions(bundle=SHIPPED))
    files = {row["file"] for row in result["rows"]}
    assert files >= {"service/http/middleware.py", "service/engine/worker.py", "models/search/beam.py"}
    assert result["reply"]["translatedText"].startswith("Where")
    assert result["functions"] == sum(row["functions"] for row in result["rows"]) <= result["calls"]
    assert result["thread_changes"] == 2  # into a worker and back
    assert result["thread_changes"] + 1 == sum(result["stays"].values())
    show(result)
    assert f"{result['functions']} functions in {result['files']} files" in capsys.readouterr().out


def test_a_refused_request_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must answer 200, but answered 4"):
        measure(TraceOptions(bundle=SHIPPED, text="x " * 100_000))
