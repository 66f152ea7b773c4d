"""``python -m deploy.checks``: one line for each check, and the words of what failed.

Exit status: 0 where nothing failed, 1 where something did, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from deploy.checks import compose, files, images, kubernetes, nginx, observability, prometheus
from deploy.checks.outcome import Check, outcome_of
from deploy.checks.tools import Toolbox

ROOT = Path(__file__).resolve().parent.parent.parent
GROUPS = {
    "images": images.checks,
    "compose": compose.checks,
    "prometheus": prometheus.checks,
    "observability": observability.checks,
    "kubernetes": kubernetes.checks,
    "nginx": nginx.checks,
    "files": files.checks,
}


def all_checks(root: Path, tools: Toolbox, groups: Sequence[str] = ()) -> Iterator[Check]:
    """Every check of the groups, or of all."""
    for name, checks in GROUPS.items():
        if not groups or name in groups:
            yield from checks(root, tools)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks and print what came of them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m deploy.checks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], help="what to check [everything]")
    parser.add_argument("--strict", action="store_true", help="a missing tool is a failure")
    parser.add_argument("--offline", action="store_true", help="fetch no tool")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder [the one that this file lies in]")
    parser.add_argument("--tools", type=Path, help="where tools are unpacked [.tools in the project's folder]")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    tools = Toolbox(options.tools or root / ".tools", download=not options.offline)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for check in all_checks(root, tools, options.groups):
        outcome = outcome_of(check, strict=options.strict)
        counts[outcome.verdict] += 1
        print(outcome, flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
