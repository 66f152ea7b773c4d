"""A paper's table beside ours, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tandem.extras.papers.claims.agreement import Agreement

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Column:
    """Of the table.

    Attributes:
        heading: above it.
        cell: of a row.
        needs: keys; the column is there where some row has a value for each of them.
    """

    heading: str
    cell: Callable[[Row], str]
    needs: tuple[str, ...] = ()


def _number(key: str, form: str) -> Callable[[Row], str]:
    return lambda row: "–" if row[key] is None else format(row[key], form)


def _around(key: str, deviation: str) -> Callable[[Row], str]:
    return lambda row: _number(key, ".2f")(row) + ("" if row[deviation] is None else f" ± {row[deviation]:.2f}")


_COLUMNS = (
    _Column("paper's BLEU", _around("paper", "paper_interval")),
    _Column("ours", _around("ours", "deviation")),
    _Column("interval", lambda row: "–" if row["interval"] is None else f"± {row['interval']:.2f}", ("interval",)),
    _Column("paper's perplexity", _number("paper_perplexity", ".2f"), ("paper_perplexity", "perplexity")),
    _Column("perplexity", _number("perplexity", ".2f"), ("perplexity",)),
    _Column("training tokens/s", _number("tokens_per_second", ",.0f"), ("tokens_per_second",)),
    _Column("runs", lambda row: str(len(row["values"]))),
    _Column("parameters", _number("parameters", ",")),
)


def markdown(name: str, family: Mapping[str, Any]) -> Sequence[str]:
    """The lines of a table, and a line about it."""
    rows = family["rows"]
    columns = [column for column in _COLUMNS if all(any(row[key] is not None for row in rows) for key in column.needs)]
    headings = [name, "published in", *(column.heading for column in columns)]
    cells = [[row["name"], row["table"], *(column.cell(row) for column in columns)] for row in rows]
    head, *lines = ["| " + " | ".join(line) + " |" for line in (headings, *cells)]
    notes = " ".join(_notes(family))
    return [head, "|---|---|" + "--:|" * len(columns), *lines, *(["", notes] if notes else [])]


def _notes(family: Mapping[str, Any]) -> Iterator[str]:
    rows, order, of_perplexity = family["rows"], Agreement(**family["order"]), Agreement(**family["perplexity_order"])
    if order.pairs:
        yield f"{order.shown}."
    if of_perplexity.pairs:
        yield f"Perplexity: {of_perplexity.shown}."
    if any(row["deviation"] is not None for row in rows):
        yield "±: standard deviation over the runs, one for each seed."
    if any(row["paper_interval"] is not None for row in rows):
        yield "The paper's ±: its confidence interval."
    if any(row["interval"] is not None for row in rows):
        yield "Interval: half of the 95% bootstrap interval of a run's BLEU, of 1,000 draws, mean over the runs."
    if any(row["perplexity"] is not None for row in rows):
        yield "Perplexity: of the validation set, for a symbol of ours and a word or symbol of the paper's."
