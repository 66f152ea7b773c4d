"""What is shown while lines are translated: a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import io

from rich.console import Console

from tandem.extras.bulk.progress import ProgressMeter


def shown(terminal: bool, size: int | None) -> str:
    """100 of 1,000 bytes were done before; then every half minute 30 lines and 90 bytes."""
    now, file = [0.0], io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100)
    with ProgressMeter(size, 5, 100, console, lambda: now[0]) as meter:
        for _ in range(4):
            now[0] += 30
            meter.advance(30, 90)
    return file.getvalue()


def test_a_log_gets_a_line_a_minute() -> None:
    assert shown(False, 1000).splitlines() == [
        "65 lines, 1/s, 28.0%, 0:04:00 left",
        "125 lines, 1/s, 46.0%, 0:03:00 left",
    ]


def test_without_a_size_nothing_is_promised() -> None:
    assert shown(False, None).splitlines() == ["65 lines, 1/s", "125 lines, 1/s"]


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    text = shown(True, 1000)
    assert "46%" in text and "125 lines, 1/s" in text
    assert text.endswith("\x1b[2K")
