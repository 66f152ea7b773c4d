"""Windows of lines through several processes, and back in order.

A window is sorted by length and cut into tasks of similar lines; while one is being finished, the next is in the queue
already, so that no worker waits for the slowest. Processes, not threads: a fifth and more of decoding is Python, which
threads do one at a time. ``concurrent.futures`` rather than a queue of our own, or joblib and dask, which bring more
than is used here; Ray is for more than one machine.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Protocol, TypeAlias

from deploy.bulk.records import Finding, Line, Record
from deploy.bulk.sources import Row
from models.errors import TandemError

LINES_OF_A_WINDOW = 1024  # for each worker
BYTES_OF_A_WINDOW = 64 << 10  # for each worker: some seconds of work, so that a run that is often ended gets on
LINES_OF_A_TASK = 64
BYTES_OF_A_TASK = 16 << 10
_ALONE = 4  # tasks that are done before further processes have started

Done: TypeAlias = list[tuple[Row, Record]]
Tick: TypeAlias = Callable[[Sequence[Row]], None]


class WorkerDied(TandemError):
    """A process that translates ended by itself, or was ended by somebody."""


class Translates(Protocol):
    """What a worker does; travels to its process."""

    def translate_block(self, lines: Sequence[Line]) -> list[Record]: ...
    def close(self) -> None:
        """Let go of what is open here."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    indices: list[int]
    result: Callable[[], list[Record]]


class Pool(AbstractContextManager["Pool"]):
    """Translates rows with as many processes as it is told; with one, or for a few lines, in this one."""

    def __init__(self, translator: Translates, workers: int) -> None:
        """
        Args:
            translator: one for each process.
            workers: processes.
        """
        self._translator, self._workers = translator, workers
        self._executor: Executor | None = None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def windows(self, rows: Iterable[Row], tick: Tick) -> Iterator[Done]:
        """Rows with what became of them, in order.

        Args:
            rows: read no further ahead than two windows.
            tick: told of rows as soon as they are translated, some of them ahead of others.

        Raises:
            WorkerDied: a process is gone.
        """
        waiting: deque[tuple[list[Row], list[_Task]]] = deque()
        try:
            for window in _windows(rows, self._workers):
                waiting.append((window, list(self._begin(window))))
                if self._executor is None or len(waiting) > 1:
                    yield _finish(*waiting.popleft(), tick)
            while waiting:
                yield _finish(*waiting.popleft(), tick)
        except BrokenProcessPool as error:  # found out by whichever of the two looks first
            message = "a process that translates has ended, perhaps for want of memory: try fewer --workers"
            raise WorkerDied(message) from error

    def _begin(self, window: Sequence[Row]) -> Iterator[_Task]:
        tasks = list(_tasks(window))
        if self._executor is None and self._workers > 1 and len(tasks) > _ALONE:
            # Spawned: a fork would copy the locks of a runtime's threads.
            self._translator.close()  # what is open here would be one more than there are workers
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self._workers, context, _start, (self._translator,))
        for indices in tasks:
            lines = [_line(window[index]) for index in indices]
            if self._executor is None:
                yield _Task(indices, partial(self._translator.translate_block, lines))
            else:
                yield _Task(indices, self._executor.submit(_work, lines).result)


def _finish(window: list[Row], tasks: Sequence[_Task], tick: Tick) -> Done:
    records: dict[int, Record] = {}
    for task in tasks:
        records |= zip(task.indices, task.result(), strict=True)
        tick([window[index] for index in task.indices])
    return [(row, records.get(index) or _unread(row)) for index, row in enumerate(window)]


def _unread(row: Row) -> Record:
    """That of a row which no task has."""
    return Record(b"", (row.fault or Finding("unknown", "was left out"),))


def _windows(rows: Iterable[Row], workers: int) -> Iterator[list[Row]]:
    window: list[Row] = []
    size = 0
    for row in rows:
        window.append(row)
        size += row.size
        if len(window) >= LINES_OF_A_WINDOW * workers or size >= BYTES_OF_A_WINDOW * workers:
            yield window
            window, size = [], 0
    if window:
        yield window


def _tasks(window: Sequence[Row]) -> Iterator[list[int]]:
    """The numbers of rows that can be translated, the longest first, some for each task."""
    sizes = {index: row.size for index, row in enumerate(window) if row.fault is None}
    task: list[int] = []
    size = 0
    for index in sorted(sizes, key=lambda one: -sizes[one]):
        if task and (len(task) >= LINES_OF_A_TASK or size + sizes[index] > BYTES_OF_A_TASK):
            yield task
            task, size = [], 0
        task.append(index)
        size += sizes[index]
    if task:
        yield task


def _line(row: Row) -> Line:
    return row.fields[0] if len(row.cells) == 1 else row.fields


_translator: Translates | None = None  # a worker process' own: it is opened once, and there for every task


def _start(translator: Translates) -> None:
    global _translator
    _translator = translator
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C goes to the whole group; who reads it ends the workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed ends nobody: without this its workers would wait for their next task for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(lines: Sequence[Line]) -> list[Record]:
    if _translator is None:
        raise RuntimeError("a task came before the translator")
    return _translator.translate_block(lines)
