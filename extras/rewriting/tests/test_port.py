"""How the core finds what is here, and does without."""

from __future__ import annotations

import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path

from extras.rewriting.conventions.dates import LANGUAGES
from extras.rewriting.stage import Rewriting
from service.translation.stages import stage_makers

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, sys
sys.path = [{core!r}, *(path for path in sys.path + {libraries!r} if not os.path.isdir(os.path.join(path, "service")))]
from service.translation.stages import stage_makers
print(*stage_makers())
"""


def test_the_stage_is_found() -> None:
    assert stage_makers() == {"rewriting": Rewriting.of}


def test_where_the_folder_is_missing_there_is_no_stage(tmp_path: Path) -> None:
    for package in ("models", "service"):
        (tmp_path / package).symlink_to(ROOT / package)
    (tmp_path / "extras" / "rewriting").mkdir(parents=True)
    # Isolated, and without any other copy of the project, such as an editable install.
    libraries = list({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    program = PROGRAM.format(core=str(tmp_path), libraries=libraries)
    for folder in ("extras/rewriting", "extras"):
        done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
        (tmp_path / folder).rmdir()


def test_the_image_has_the_locales_that_dates_are_written_in() -> None:
    assert set(runpy.run_path(str(ROOT / "deploy" / "docker" / "slim.py"))["_LOCALES"]) >= LANGUAGES
