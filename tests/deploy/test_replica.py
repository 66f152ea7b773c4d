"""deploy/docker/replica, with stand-ins for what it calls."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from docs.reference import ROOT

SCRIPT = ROOT / "deploy" / "docker" / "replica"
TOOLS = {
    "tandem": 'echo "gpu=${CUDA_VISIBLE_DEVICES-all} workers=${TANDEM_WORKERS-own} data=$TANDEM_DATA"',
    "python": "exit 0",  # no quota of cores
    "nproc": "echo 8",
    "nvidia-smi": 'i=0; while [ $i -lt "$GPUS" ]; do echo "GPU $i"; i=$((i + 1)); done',
    "flock": '[ ! -e "$TAKEN" ] || { rm "$TAKEN"; exit 1; }',
}


def served(folder: Path, settings: Mapping[str, str], taken: bool = False) -> str:
    """What the server was started with; the first folder may be another replica's."""
    tools, others = folder / "tools", folder / "others"
    tools.mkdir()
    others.mkdir()
    for name, text in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    held = folder / "taken"
    if taken:
        held.touch()
    own = {"PATH": f"{tools}:{os.environ['PATH']}", "TAKEN": str(held), "REPLICA_FOLDERS": str(others)}
    own |= {"TANDEM_DATA": str(folder), "REPLICAS": "2", **settings}
    return subprocess.run(["sh", str(SCRIPT), "serve"], env=own, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("settings", "taken", "expected"),
    [
        ({"TANDEM_DEVICE": "cpu", "GPUS": "2"}, False, "gpu=all workers=4"),
        ({"TANDEM_DEVICE": "auto", "GPUS": "0"}, False, "gpu=all workers=4"),
        ({"TANDEM_DEVICE": "auto", "GPUS": "1"}, True, "gpu=all workers=own"),
        ({"TANDEM_DEVICE": "auto", "GPUS": "2"}, False, "gpu=0 workers=own"),
        ({"TANDEM_DEVICE": "auto", "GPUS": "2"}, True, "gpu=1 workers=own"),
        ({"TANDEM_DEVICE": "cuda", "GPUS": "2", "CUDA_VISIBLE_DEVICES": "0,1"}, True, "gpu=0,1 workers=own"),
    ],
)
def test_replicas_share_gpus_and_cores(tmp_path: Path, settings: dict[str, str], taken: bool, expected: str) -> None:
    found = served(tmp_path, settings, taken)
    assert found.startswith(f"{expected} data={tmp_path}")
    assert found.rstrip().endswith("/2") == taken
