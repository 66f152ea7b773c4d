"""`tandem doctor`: what `tandem serve` would find on this machine, and how fast it would be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from deploy.bench.report import console
from deploy.doctor import report
from deploy.doctor.bundles import examine_all
from deploy.doctor.checks import Facts, SettingsFacts, all_checks, can_serve
from deploy.doctor.port import find_port
from deploy.machine import (
    find_clock,
    find_gpu,
    find_memory,
    find_processor,
    find_versions,
    installed_onnx_runtimes,
)
from service.bundles.loading import wish_of
from service.bundles.probe import THOROUGH
from service.configuration import read_configuration
from service.settings import Settings


def doctor_command(bundles: Sequence[Path] | None, *, measure: bool, as_json: bool) -> int:
    """Print the findings.

    Args:
        bundles: bundle folders, or folders of bundles; none = those of the settings.
        measure: time what can run each bundle.
        as_json: print JSON instead of tables.

    Returns:
        The exit status: 0 where the service can serve, 1 where there is a fault.

    Raises:
        ConfigError: a setting is out of bounds.
    """
    settings = read_configuration({"bundles": tuple(bundles)} if bundles else {}).settings
    facts = find_facts(settings, measure=measure)
    checks = all_checks(facts)
    if as_json:
        print(report.as_json(facts, checks))
    else:
        console().print(report.as_tables(facts, checks))
    return 0 if can_serve(checks) else 1


def find_facts(settings: Settings, *, measure: bool) -> Facts:
    """Look at everything: the machine first, since measuring loads packages and fills memory."""
    processor, memory, port = find_processor(), find_memory(), find_port(settings.host, settings.port)
    gpu = find_gpu()
    examined, path_faults = examine_all(settings.bundles, wish_of(settings), effort=THOROUGH if measure else None)
    return Facts(
        processor=processor,
        memory=memory,
        gpu=gpu,
        clock=find_clock(),
        versions=find_versions(),
        onnx_runtimes=installed_onnx_runtimes(),
        telemetry_off=not gpu.onnxruntime_providers or os.environ.get("ORT_DISABLE_TELEMETRY") == "1",
        settings=SettingsFacts(
            runtime=settings.runtime,
            precision=settings.precision,
            threads=settings.threads,
            workers=settings.decode_workers,
            bundles=tuple(map(str, settings.bundles)),
            host=settings.host,
            port=settings.port,
        ),
        port=port,
        bundles=tuple(examined),
        path_faults=tuple(path_faults),
    )
