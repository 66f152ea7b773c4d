"""The end of a step as one kernel, in Triton's interpreter (tests/conftest.py): it finds what the torch form finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton", minversion="3.9", reason="needs Triton 3.9: the interpreter of 3.6 does not run this")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("there is a GPU: tests/models/test_device_gpu.py runs the kernel there", allow_module_level=True)

from models.device import StaticBatch, StaticStep, tail
from models.device.rules import FREE, ban
from tests.models.device import POOLED, SIZES, assert_same, decoded, mixed, prepared

EOS, ROWS, COUNT = 2, 3, 6
NAN, INF = float("nan"), float("inf")


def in_torch(logits_RV: Any, penalty_BV: Any, early_B: Any, banned_BKL: Any) -> tuple[Any, Any]:
    log_BKV = torch.log_softmax(logits_RV, -1).unflatten(0, (len(early_B), -1))
    allowed_BKV = log_BKV + penalty_BV[:, None, : logits_RV.size(1)]
    allowed_BKV.select(2, EOS).masked_fill_(early_B[:, None], -INF)
    ban(allowed_BKV, banned_BKL)
    return torch.topk(allowed_BKV, COUNT, dim=-1)


@pytest.mark.parametrize("size", [8, 1500])
@pytest.mark.parametrize("bans", [0, 1, 9])
def test_best_are_those_of_torch(size: int, bans: int) -> None:
    draw = torch.Generator().manual_seed(size + bans)
    logits_RV = 4 * torch.randn(2 * ROWS, size, generator=draw)
    logits_RV[0, : size // 2] = -INF
    penalty_BV = torch.zeros(2, size + 1)
    penalty_BV[1, logits_RV[3].topk(2).indices] = -INF
    early_B = torch.tensor([True, False])
    logits_RV[1, EOS] = 9.0
    best_RB = logits_RV.topk(min(bans, size), dim=-1).indices
    banned_BKL = torch.full((2, ROWS, bans), FREE)
    banned_RB = torch.where(torch.rand(best_RB.shape, generator=draw) < 0.5, best_RB, FREE)
    banned_BKL.view(2 * ROWS, bans)[:, : banned_RB.size(1)] = banned_RB
    best_BKX, token_BKX, total_BK = tail.best_by_row(logits_RV, penalty_BV, early_B, banned_BKL, count=COUNT, eos=EOS)
    expected_BKX, tokens_BKX = in_torch(logits_RV, penalty_BV, early_B, banned_BKL)
    torch.testing.assert_close(total_BK.flatten(), logits_RV.logsumexp(-1))
    order_BKX = best_BKX.argsort(dim=-1, descending=True)
    torch.testing.assert_close(best_BKX.gather(2, order_BKX), expected_BKX, atol=1e-5, rtol=0)
    possible_BKX = expected_BKX > -INF
    assert torch.equal(token_BKX.gather(2, order_BKX)[possible_BKX], tokens_BKX[possible_BKX])


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
def test_what_is_not_finite_is_told() -> None:
    logits_RV = torch.zeros(4, 1500)
    logits_RV[0, 1300], logits_RV[1, 3], logits_RV[2] = NAN, INF, -INF
    none_BKL = torch.zeros(4, 1, 0, dtype=torch.int64)
    *_, total_BK = tail.best_by_row(logits_RV, torch.zeros(4, 1501), torch.zeros(4) > 0, none_BKL, count=COUNT, eos=EOS)
    assert total_BK.isfinite().flatten().tolist() == [False, False, False, True]


@pytest.mark.slow
def test_searches_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With rules; sentences that require tokens go the other way."""
    model, beam_size, calls = prepared(POOLED), 2, list[int]()
    kernel = tail.best_by_row

    def counting(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return kernel(*given, **named)

    monkeypatch.setattr(tail, "best_by_row", counting)
    joining = [one for one in mixed(model, beam_size)[:5] if not one.options.required]
    steps = (StaticStep(model, beam_size=beam_size, sizes=SIZES, triton=triton) for triton in (True, False))
    found, expected = (decoded(StaticBatch(step, poll_every=4), joining) for step in steps)
    assert_same(found, expected)
    assert len(calls) > 5
    required = [one for one in mixed(model, beam_size)[:3] if one.options.required]
    calls.clear()
    assert decoded(StaticBatch(StaticStep(model, beam_size=beam_size, sizes=SIZES, triton=True)), required)
    assert not calls


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from models.device.tail import BLOCK, _best

pointers = {"logits": "fp32", "penalty": "fp32", "early": "i1", "banned": "i64"}
pointers |= {"best": "fp32", "token": "i64", "total": "fp32"}
sizes = {"X": 10, "XS": 16, "BANS": 64, "BLOCK": BLOCK}
types = {name: f"*{kind}" for name, kind in pointers.items()}
types |= dict.fromkeys(("size", "rows", "bans", "eos", "penalty_stride"), "i32") | dict.fromkeys(sizes, "constexpr")
made = triton.compile(ASTSource(fn=_best, signature=types, constexprs=sizes), target=GPUTarget("cuda", 90, 32))
assert len(made.asm["cubin"]) > 1000
"""


@pytest.mark.slow
def test_the_kernel_compiles_for_a_gpu(tmp_path: Path) -> None:
    """Down to the machine's code, which needs no GPU; it is not run."""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
