"""How the core finds what is here, and does without."""

from __future__ import annotations

import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path

from tandem.extras.rewriting.conventions.dates import LANGUAGES
from tandem.extras.rewriting.stage import Rewriting
from tandem.service.translation.stages import stage_makers
from tests.shipped import ROOT

PROGRAM = """
import os, sys
sys.path = [{core!r}, *(path for path in sys.path + {libraries!r} if not os.path.isdir(os.path.join(path, "tandem")))]
from tandem.service.translation.stages import stage_makers
print(*stage_makers())
"""


def test_the_stage_is_found() -> None:
    assert stage_makers() == {"rewriting": Rewriting.of}


def test_where_the_folder_is_missing_there_is_no_stage(tmp_path: Path) -> None:
    (tmp_path / "tandem" / "extras" / "rewriting").mkdir(parents=True)
    for part in ("__init__.py", "models", "service"):
        (tmp_path / "tandem" / part).symlink_to(ROOT / "tandem" / part)
    # Isolated, and without any other copy of the project, such as an editable install.
    libraries = list({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    program = PROGRAM.format(core=str(tmp_path), libraries=libraries)
    for folder in ("tandem/extras/rewriting", "tandem/extras"):
        done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
        (tmp_path / folder).rmdir()


def test_the_image_has_the_locales_that_dates_are_written_in() -> None:
    assert set(runpy.run_path(str(ROOT / "deploy" / "docker" / "slim.py"))["_LOCALES"]) >= LANGUAGES
