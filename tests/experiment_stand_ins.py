"""Stand-ins for methods that experiments run in other processes; light to import, because every worker does.

python tests/experiment_stand_ins.py FOLDER     # the experiment `small` of a folder, with the method `steady`
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from psgnn.cli.failures import run_app
from psgnn.errors import InputError
from psgnn_lab.manifest import load_manifest
from psgnn_lab.plan import Run, plan
from psgnn_lab.records import find_record
from psgnn_lab.runner import execute_all


def steady(run: Run, root: str | None) -> dict[str, Any]:
    """Takes its time, and gives what its id says."""
    time.sleep(0.02)
    return {"test": {"auc": int(run.id, 16) / 16**16}, "seconds": 0.02}


def fragile(run: Run, root: str | None) -> dict[str, Any]:
    """Fails in one way or another, by the seed."""
    if run.seed == 100:
        raise InputError("this graph is too small")
    if run.seed == 101:
        os._exit(9)
    if run.seed == 102:
        return {"test": {"auc": float("nan")}, "seconds": 1.0}
    if run.seed == 103:
        return {"test": {"ap": 0.5}, "seconds": 1.0}
    if run.seed == 104:
        raise RuntimeError("two\nlines")
    return {"test": {"auc": 0.5}, "seconds": 1.0}


def main(**_: object) -> int:
    """Make what is missing."""
    manifest = load_manifest("small", Path(sys.argv[1]))
    missing = [run for run in plan(manifest) if find_record(manifest.records, run) is None]
    execute_all(missing, manifest.records, jobs=2, make=steady)
    return 0


if __name__ == "__main__":
    run_app(main)
