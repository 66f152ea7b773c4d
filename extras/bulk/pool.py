"""Blocks of lines through several processes, and back in order.

Processes, not threads: a fifth and more of decoding is Python, which threads do one at a time. ``concurrent.futures``
rather than ``multiprocessing.Pool``, which waits for ever for a worker that was killed; Ray is for several machines.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import TypeAlias, TypeVar

from tandem.extras.bulk.lines import Line, LineResult
from tandem.extras.bulk.sources import InputRow
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.shared.workers import serve_parent
from tandem.models.errors import TandemError

LINES_OF_A_BLOCK = 256
BYTES_OF_A_BLOCK = 64 << 10  # some seconds of work: what a sudden end may cost for each block that is being translated
_ON_A_GPU = 16  # times as many: it does so much more in these seconds, and idles at the end of each block
AHEAD = 2  # blocks for each worker: nobody waits while the oldest one is being finished

T = TypeVar("T")
Done: TypeAlias = tuple[list[InputRow], list[LineResult]]


class WorkerDied(TandemError):
    """A process that translates ended by itself, or was ended by somebody."""


RowTranslator: TypeAlias = Callable[[BulkTranslator, Iterable[InputRow], int], Generator[Done, None, None]]
"""Translates rows in order, as :func:`translate_rows` does."""


def translate_rows(translator: BulkTranslator, rows: Iterable[InputRow], workers: int) -> Generator[Done, None, None]:
    """Blocks of rows with what became of them, in order; with one worker, or for one block, in this process.

    Args:
        translator: one for each process.
        rows: read no further ahead than two blocks a worker.
        workers: processes.

    Raises:
        WorkerDied: a process is gone.
    """
    blocks = cut(rows, translator.options.device)
    first = list(islice(blocks, min(workers, 2)))
    blocks = chain(first, blocks)
    if len(first) < 2:
        yield from in_order(blocks, translator.translate_block, lambda results: results, ahead=0)
        return
    translator.close()  # what is open here would be one more than there are workers
    # Spawned: a fork would copy the locks of a runtime's threads.
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (translator,))
    try:
        yield from in_order(blocks, lambda lines: executor.submit(_work, lines), Future.result, AHEAD * workers)
    except BrokenProcessPool as error:  # found out by whichever looks first, who submits or who waits
        message = "a process that translates has ended, perhaps for want of memory: try fewer --workers"
        raise WorkerDied(message) from error
    finally:
        executor.shutdown(cancel_futures=True)


def in_order(
    blocks: Iterable[list[InputRow]],
    submit: Callable[[list[Line]], T],
    result: Callable[[T], list[LineResult]],
    ahead: int,
) -> Iterator[Done]:
    """Each block with what became of it.

    Args:
        blocks: of rows.
        submit: begins to translate the lines of a block.
        result: waits for what was begun.
        ahead: how many blocks are begun before the oldest is waited for.
    """
    waiting: deque[tuple[list[InputRow], T]] = deque()
    for block in blocks:
        waiting.append((block, submit([row.fields for row in block])))
        if len(waiting) > ahead:
            oldest, begun = waiting.popleft()
            yield oldest, result(begun)
    for oldest, begun in waiting:
        yield oldest, result(begun)


def cut(rows: Iterable[InputRow], device: str = "cpu") -> Iterator[list[InputRow]]:
    """Rows in blocks of so many lines and bytes as take a device some seconds."""
    times = 1 if device == "cpu" else _ON_A_GPU
    block: list[InputRow] = []
    size = 0
    for row in rows:
        block.append(row)
        size += row.size
        if len(block) >= times * LINES_OF_A_BLOCK or size >= times * BYTES_OF_A_BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


_translator: BulkTranslator | None = None  # a worker process' own: it is opened once, and there for every block


def _start(translator: BulkTranslator) -> None:
    global _translator
    _translator = translator
    serve_parent()


def _work(lines: Sequence[Line]) -> list[LineResult]:
    if _translator is None:
        raise RuntimeError("a block came before the translator")
    return _translator.translate_block(lines)
