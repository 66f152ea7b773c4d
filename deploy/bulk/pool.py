"""Blocks of lines through several processes, and back in order.

Processes, not threads: a fifth and more of decoding is Python, which threads do one at a time. ``concurrent.futures``
rather than ``multiprocessing.Pool``, which waits for ever for a worker that was killed; Ray is for several machines.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import TypeAlias

from deploy.bulk.records import Line, LineResult
from deploy.bulk.sources import InputRow
from deploy.bulk.translator import BulkTranslator
from models.errors import TandemError

LINES_OF_A_BLOCK = 256
BYTES_OF_A_BLOCK = 64 << 10  # some seconds of work: what a sudden end may cost for each block that is being translated
_AHEAD = 2  # blocks for each worker: nobody waits while the oldest one is being finished

Done: TypeAlias = tuple[list[InputRow], list[LineResult]]


class WorkerDied(TandemError):
    """A process that translates ended by itself, or was ended by somebody."""


def translate_rows(translator: BulkTranslator, rows: Iterable[InputRow], workers: int) -> Generator[Done, None, None]:
    """Blocks of rows with what became of them, in order; with one worker, or for one block, in this process.

    Args:
        translator: one for each process.
        rows: read no further ahead than two blocks a worker.
        workers: processes.

    Raises:
        WorkerDied: a process is gone.
    """
    blocks = _blocks(rows)
    first = list(islice(blocks, min(workers, 2)))
    if len(first) < 2:
        for block in chain(first, blocks):
            yield block, _all_records(block, translator.translate_block(_lines(block)))
        return
    translator.close()  # what is open here would be one more than there are workers
    # Spawned: a fork would copy the locks of a runtime's threads.
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (translator,))
    waiting: deque[tuple[list[InputRow], Future[list[LineResult]]]] = deque()
    try:
        for block in chain(first, blocks):
            waiting.append((block, executor.submit(_work, _lines(block))))
            if len(waiting) > _AHEAD * workers:
                yield _finish(waiting)
        while waiting:
            yield _finish(waiting)
    except BrokenProcessPool as error:  # found out by whichever looks first, who submits or who waits
        message = "a process that translates has ended, perhaps for want of memory: try fewer --workers"
        raise WorkerDied(message) from error
    finally:
        executor.shutdown(cancel_futures=True)


def _finish(waiting: deque[tuple[list[InputRow], Future[list[LineResult]]]]) -> Done:
    block, records = waiting.popleft()
    return block, _all_records(block, records.result())


def _blocks(rows: Iterable[InputRow]) -> Iterator[list[InputRow]]:
    block: list[InputRow] = []
    size = 0
    for row in rows:
        block.append(row)
        size += row.size
        if len(block) >= LINES_OF_A_BLOCK or size >= BYTES_OF_A_BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _lines(block: Sequence[InputRow]) -> list[Line]:
    """What can be translated of a block."""
    return [row.fields[0] if len(row.cells) == 1 else row.fields for row in block if row.fault is None]


def _all_records(block: Sequence[InputRow], translated: Sequence[LineResult]) -> list[LineResult]:
    """One for each row; those that were not translated have their fault."""
    left = iter(translated)
    return [next(left) if row.fault is None else LineResult(b"", (row.fault,)) for row in block]


_translator: BulkTranslator | None = None  # a worker process' own: it is opened once, and there for every block


def _start(translator: BulkTranslator) -> None:
    global _translator
    _translator = translator
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C goes to the whole group; who reads it ends the workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed ends nobody: without this its workers would wait for their next block for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(lines: Sequence[Line]) -> list[LineResult]:
    if _translator is None:
        raise RuntimeError("a block came before the translator")
    return _translator.translate_block(lines)
