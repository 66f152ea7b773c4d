"""The end of a step as one kernel, in Triton's interpreter (tests/conftest.py): it finds what the torch form finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton", minversion="3.7", reason="needs Triton 3.7: the interpreter of 3.6 does not run this")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("there is a GPU: tests/models/device/test_device_gpu.py runs the kernel there", allow_module_level=True)

from models.device import StaticBatch, StaticStep, tail
from models.steps.continuations import best_per_row
from tests.models.device.support import POOLED, SIZES, assert_same, decoded, mixed, prepared

ROWS, COUNT = 6, 6
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("size", [8, 1500])
@pytest.mark.parametrize("bans", [0, 1, 9])
def test_best_are_those_of_torch(size: int, bans: int) -> None:
    draw = torch.Generator().manual_seed(size + bans)
    logits_RV = 4 * torch.randn(ROWS, size, generator=draw)
    logits_RV[0, : size // 2] = -INF
    best_RB = logits_RV.topk(min(bans, size), dim=-1).indices
    banned_RJ = torch.full((ROWS, bans), size)
    banned_RJ[:, : best_RB.size(1)] = torch.where(torch.rand(best_RB.shape, generator=draw) < 0.5, best_RB, size)
    forced_R = torch.tensor([-1, -1, 5, -1, -1, -1])
    best_RX, token_RX, total_R = tail.best_per_row(logits_RV, banned_RJ, forced_R, COUNT)
    expected_RX, tokens_RX, _ = best_per_row(logits_RV, banned_RJ, forced_R, COUNT)
    torch.testing.assert_close(total_R, logits_RV.logsumexp(-1))
    order_RX = best_RX.argsort(dim=-1, descending=True)
    torch.testing.assert_close(best_RX.gather(1, order_RX), expected_RX, atol=1e-5, rtol=0)
    possible_RX = expected_RX > -INF
    assert torch.equal(token_RX.gather(1, order_RX)[possible_RX], tokens_RX[possible_RX])


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
def test_what_is_not_finite_is_told() -> None:
    logits_RV = torch.zeros(4, 1500)
    logits_RV[0, 1300], logits_RV[1, 3], logits_RV[2] = NAN, INF, -INF
    none_RJ = torch.zeros(4, 0, dtype=torch.int64)
    *_, total_R = tail.best_per_row(logits_RV, none_RJ, torch.full((4,), -1), COUNT)
    assert total_R.isfinite().tolist() == [False, False, False, True]


def test_searches_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model, beam_size, calls = prepared(POOLED), 2, list[int]()
    kernel = tail.best_per_row

    def counting(*given: Any) -> Any:
        calls.append(1)
        return kernel(*given)

    monkeypatch.setattr(tail, "best_per_row", counting)
    joining = mixed(model, beam_size)[:5]  # with rules of all kinds
    steps = (StaticStep(model, beam_size=beam_size, sizes=SIZES, triton=triton) for triton in (True, False))
    found, expected = (decoded(StaticBatch(step, poll_every=4), joining) for step in steps)
    assert_same(found, expected)
    assert len(calls) > 5


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from models.device.tail import BLOCK, _best

pointers = {"logits": "fp32", "banned": "i64", "best": "fp32", "token": "i64", "total": "fp32"}
sizes = {"X": 10, "XS": 16, "BANS": 64, "BLOCK": BLOCK}
types = {name: f"*{kind}" for name, kind in pointers.items()}
types |= dict.fromkeys(("size", "bans"), "i32") | dict.fromkeys(sizes, "constexpr")
made = triton.compile(ASTSource(fn=_best, signature=types, constexprs=sizes), target=GPUTarget("cuda", 90, 32))
assert len(made.asm["cubin"]) > 1000
"""


def test_the_kernel_compiles_for_a_gpu(tmp_path: Path) -> None:
    """Down to the machine's code, which needs no GPU; it is not run."""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
