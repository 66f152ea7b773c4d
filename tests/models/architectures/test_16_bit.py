"""16-bit weights: state and memory are as narrow, logits are float32 and near those of the wide model."""

from __future__ import annotations

import pytest
import torch

from tests.models.architectures.examples import CASES, FIRST_CASES, Case, batch, sentences, targets


@pytest.mark.parametrize(
    ("case", "dtype"),
    [(case, torch.float16) for case in CASES] + [(case, torch.bfloat16) for case in FIRST_CASES],
    ids=str,
)
def test_narrow_models_step_score_and_align(case: Case, dtype: torch.dtype) -> None:
    model = case.build(torch.float32)
    model.prepare_for_inference()
    sources, target_RT = batch(sentences(model, (5, 3))), targets(4, 3)
    with torch.inference_mode():
        wide = model.score(target_RT[::2], model.encode(sources))
        model.to(dtype)
        memory = model.encode(sources)
        state = model.init_state(memory, 2)
        logits = []
        for token_R in target_RT.unbind(1):
            logits_RV, state = model.step(token_R, state, memory)
            assert logits_RV.dtype == torch.float32
            logits.append(logits_RV)
        for _, item, tensor in state.tensors():
            assert tensor.dtype == dtype or item.metadata["kind"] not in ("rows", "pool")
        assert all(x.isfinite().all() for x in model.alignment(target_RT, memory))
        found = model.score(target_RT[::2], memory)
    assert found.dtype == torch.float32
    stepped = torch.stack(logits, dim=1)[::2]
    for narrow in (found, stepped):
        assert (narrow - wide).abs().max() < (0.03 if dtype == torch.float16 else 0.25)
