"""One of several processes that train the toy recipe together; it leaves what it saw in a file."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import torch

from tandem.training.loop.trainer import Trainer
from tandem.training.loop.validation import TextValidator
from tandem.training.parallel import joined
from tests.training.toy import Recorder, toy_recipe


def work(
    environment: dict[str, str],
    data: Path,
    folder: Path,
    training: dict[str, Any],
    resume: bool,
    term: tuple[int, int],
    device: str,
) -> None:
    """Train in the environment that a launcher gives; ``term`` is a rank and the update at which SIGTERM hits it."""
    os.environ |= environment
    torch.set_num_threads(1)
    dropout = training.pop("dropout")
    recipe = toy_recipe(model={"dropout": dropout}, **training)
    with joined(device) as processes:
        recorder = Recorder()
        decodes = processes.first and recipe.training.validation_sentences
        validator = TextValidator(recipe, data) if decodes else None
        trainer = Trainer(recipe, data, folder, processes=processes, reporter=recorder, validator=validator)
        if processes.rank == term[0]:
            whole = trainer._after_update

            def signalled() -> None:
                if trainer.progress.update == term[1]:
                    os.kill(os.getpid(), signal.SIGTERM)
                whole()

            trainer._after_update = signalled  # type: ignore[method-assign]
        if resume:
            assert trainer.resume()
        generator = torch.Generator()
        generator.set_state(torch.get_rng_state())
        first = float(torch.rand((), generator=generator))  # this process's next random number, which stays the next
        trainer.train()
        total = sum(float(p.detach().double().abs().sum()) for p in trainer.model.parameters())
        seen = {"updates": recorder.updates, "validations": len(recorder.validations), "total": total, "first": first}
        (folder / f"rank{processes.rank}.json").write_text(json.dumps(seen))
