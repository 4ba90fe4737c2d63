"""Stand-ins for the training of trials, which searches run in other processes; light to import, as every worker does.

python tests/search_stand_ins.py FOLDER URL     # the search of the experiment `small` of a folder, in a storage
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from psgnn.errors import InputError
from psgnn_lab.plan import Run


def steady(run: Run, root: str | None) -> dict[str, Any]:
    """Gives what its id says."""
    return {"val": int(run.id, 16) / 16**16, "best_epoch": 1, "epochs": 2, "seconds": 0.05}


def slow(run: Run, root: str | None) -> dict[str, Any]:
    """The same, but takes its time."""
    time.sleep(0.1)
    return steady(run, root)


def fragile(run: Run, root: str | None) -> dict[str, Any]:
    """Fails in one way or another where the width is 4, or everywhere on the grid graph."""
    if run.row.name == "grid-link":
        raise InputError("the data is gone")
    if run.method.options["hidden"] == 4:
        match run.method.options["lr"]:
            case 0.01:
                os._exit(9)
            case 0.02:
                return {"val": float("nan"), "best_epoch": 1, "epochs": 2, "seconds": 0.0}
    return steady(run, root)


def main() -> None:
    """Make what is missing."""
    from psgnn_lab.manifest import load_manifest
    from psgnn_lab.search import search_all
    from psgnn_lab.trials import search_cells

    manifest = load_manifest("small", Path(sys.argv[1]))
    search_all(manifest, search_cells(manifest), storage=sys.argv[2], jobs=1, make=slow)


if __name__ == "__main__":
    main()
