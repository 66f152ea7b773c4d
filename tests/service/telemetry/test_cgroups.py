"""Cores and memory that control groups leave: both versions, from small invented trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.service.telemetry.cgroups import affine_cores, cpu_quota, memory_limit, usable_cores

OURS = "proc/self/cgroup"
V2 = "sys/fs/cgroup/cgroup.controllers"
NO_LIMIT = "9223372036854771712\n"


def tree(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({OURS: "0::/\n", V2: "", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({OURS: "0::/\n", V2: "", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        # The smallest of a group and those around it.
        (
            {
                OURS: "0::/pod/app\n",
                V2: "",
                "sys/fs/cgroup/pod/cpu.max": "200000 100000",
                "sys/fs/cgroup/pod/app/cpu.max": "max 100000",
            },
            2.0,
        ),
        # The path is that of another namespace: what is mounted is ours.
        ({OURS: "0::/../../docker/a1\n", V2: "", "sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),
        ({OURS: "0::/docker/a1\n", V2: "", "sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),
        (
            {
                OURS: "5:cpu,cpuacct:/box\n3:memory:/\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "300000",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000",
            },
            3.0,
        ),
        (
            {
                OURS: "5:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            None,
        ),
        # cpuset is another controller, whatever its name begins with.
        (
            {
                OURS: "3:cpuset:/\n",
                "sys/fs/cgroup/cpuset/cpu.cfs_quota_us": "100000",
                "sys/fs/cgroup/cpuset/cpu.cfs_period_us": "100000",
            },
            None,
        ),
        ({OURS: "0::/\n", V2: "", "sys/fs/cgroup/cpu.max": "100000 0\n"}, None),
        ({OURS: "nonsense", V2: "", "sys/fs/cgroup/cpu.max": "100000 100000"}, None),
    ],
)
def test_quota(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    assert cpu_quota(tree(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({OURS: "0::/\n", V2: "", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20),
        ({OURS: "0::/\n", V2: "", "sys/fs/cgroup/memory.max": "max\n"}, None),
        (
            {
                OURS: "0::/a/b\n",
                V2: "",
                "sys/fs/cgroup/a/memory.max": "1000",
                "sys/fs/cgroup/a/b/memory.max": "2000",
            },
            1000,
        ),
        ({OURS: "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT}, None),
        (
            {
                OURS: "4:memory:/a\n0::/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT,
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096",
            },
            4096,
        ),
        # Both versions at once: the second is mounted below the first.
        ({OURS: "0::/\n", "sys/fs/cgroup/unified/memory.max": "8192"}, 8192),
    ],
)
def test_memory_limit(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    assert memory_limit(tree(tmp_path, files)) == limit


@pytest.mark.parametrize(("quota", "cores"), [("max", 8), ("50000", 1), ("250000", 2), ("6400000", 8)])
def test_usable_cores_are_whole_and_at_least_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    monkeypatch.setattr("tandem.service.telemetry.cgroups.affine_cores", lambda: 8)
    root = tree(tmp_path, {OURS: "0::/\n", V2: "", "sys/fs/cgroup/cpu.max": f"{quota} 100000"})
    assert usable_cores(root) == cores


def test_without_groups_the_process_may_use_the_cores_it_may_run_on(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == affine_cores() >= 1


@given(ours=st.text(max_size=60), quota=st.text(max_size=30), limit=st.text(max_size=30))
def test_whatever_the_files_hold_nothing_is_raised(
    tmp_path_factory: pytest.TempPathFactory, ours: str, quota: str, limit: str
) -> None:
    root = tree(
        tmp_path_factory.mktemp("root"),
        {OURS: f"0::/\n{ours}", V2: "", "sys/fs/cgroup/cpu.max": quota, "sys/fs/cgroup/memory.max": limit},
    )
    found, bytes_allowed = cpu_quota(root), memory_limit(root)
    assert found is None or found > 0
    assert bytes_allowed is None or bytes_allowed >= 0
