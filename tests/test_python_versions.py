"""The package runs on every Python version that it says it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLDEST = "3.10"
VERMIN = "import vermin; vermin.main()"  # it has no `python -m vermin`


def test_the_package_uses_nothing_newer_than_the_oldest_python() -> None:
    assert f'requires-python = ">={OLDEST},' in (ROOT / "pyproject.toml").read_text()
    # Vermin reads past imports behind `if sys.version_info >= ...`, which choose tomllib or tomli.
    done = subprocess.run(
        [sys.executable, "-c", VERMIN, f"-t={OLDEST}-", "--no-tips", "--violations", str(ROOT / "src")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
