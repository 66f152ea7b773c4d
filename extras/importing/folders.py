"""From a folder of a public model's files, whatever they are, to a bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.students import import_student, open_student
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.telemetry.cgroups import machine_memory, memory_limit

Report = Callable[[str], None]


def import_folder(
    folder: Path,
    out: Path,
    asked: Asked,
    labels: Labels,
    report: Report,
    calibration: Path | None = None,
) -> Bundle:
    """Write the bundle of a public model; nothing is left behind where that fails.

    Args:
        folder: of the model's files.
        out: the bundle's folder; its name is the bundle's.
        asked: what the user says of the model.
        labels: licence and source.
        report: told what is being done.
        calibration: a file of source sentences; built-in ones where there is none.

    Raises:
        ConfigError, CorpusError: there is nothing to calibrate on in that file, or it cannot be read.
        ForeignModelError: the model cannot be imported; every reason is named.
        BundleError: there is already something at ``out``, or the weights do not fit fp16.
    """
    if (weights := open_student(folder)) is not None:
        report("a student in 8 bits, which is not calibrated anew")
        return import_student(folder, weights, out, asked, labels)
    return _import_larger(folder, out, asked, labels, calibration, report)


def _import_larger(
    folder: Path, out: Path, asked: Asked, labels: Labels, calibration: Path | None, report: Report
) -> Bundle:
    """Those that are calibrated, which takes PyTorch."""
    from tandem.extras.importing.bundle import import_bundle
    from tandem.training.data.corpus import read_lines

    lines = [line for line in read_lines(calibration) if line.strip()] if calibration is not None else []
    if calibration is not None and not lines:
        raise ConfigError(f"{calibration} has no text: give some hundred sentences, or leave --calibration out")
    memory = min((one for one in (machine_memory(), memory_limit()) if one is not None), default=None)
    return import_bundle(folder, out, asked, replace(labels, calibration=lines, memory=memory), report)
