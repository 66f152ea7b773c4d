"""The heap of training: what the C library is asked, and where it cannot be."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tandem.training.optimisation.heap import keep_freed_memory


@pytest.mark.parametrize(("answer", "told"), [(1, True), (0, False)])
def test_malloc_is_asked_to_keep_what_is_freed(answer: int, told: bool) -> None:
    asked: dict[int, int] = {}

    def mallopt(parameter: int, value: int) -> int:
        asked[parameter] = value
        return answer

    assert keep_freed_memory(SimpleNamespace(mallopt=mallopt)) is told
    assert asked.items() <= {-1: 2**31 - 1, -2: 2**26, -3: 2**25}.items()  # M_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD
    assert len(asked) == (3 if told else 1)


def test_a_c_library_without_mallopt_is_left_alone() -> None:
    assert not keep_freed_memory(object())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc")
def test_freed_memory_stays() -> None:
    """A piece of 16 MB is not given back: the next one of that size causes no page faults."""
    code = """
import platform, resource
from tandem.training.optimisation.heap import keep_freed_memory
if platform.libc_ver()[0] == "glibc":
    assert keep_freed_memory()
    bytearray(2**24)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        bytearray(2**24)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 2**24 // 4096
"""
    subprocess.run([sys.executable, "-c", code], check=True)
