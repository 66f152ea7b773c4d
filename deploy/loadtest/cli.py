"""The `tandem loadtest` and `tandem size` commands; options stand in ``options``, the work is imported when it runs."""

from __future__ import annotations

from deploy.loadtest.options import LoadOptions, SizingOptions
from deploy.records import loaded_when_run, record_command

loadtest = record_command("loadtest", LoadOptions, loaded_when_run("deploy.loadtest.command:loadtest_command"))
size = record_command("size", SizingOptions, loaded_when_run("deploy.loadtest.sizing:sizing_command"))
