"""What reaches a terminal: no control sequence of a file, and one line where standard output is closed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Command

ESCAPE = "\x1b]52;c;cm0gLXJm\x07"  # sets the clipboard of many terminals
NAMES = [f"n{i}{ESCAPE}\x9b31m" for i in range(8)]


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    lines = [f"{a},{b},1" for i, a in enumerate(NAMES) for b in NAMES[i + 1 : i + 4]]
    header = f"per{ESCAPE}son,fri{ESCAPE}end,no{ESCAPE}te"
    path = tmp_path / "g.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["anchors", "g.csv", "--anchors", "3"],
        ["anchors", "g.csv", "--source", f"a{ESCAPE}", "--target", "b"],
        ["predict", "g.csv", "--top", "5", "--why"],
        ["predict", "g.csv", "--for", NAMES[0]],
        ["predict", "g.csv", "--for", f"nobody{ESCAPE}"],
        ["explain", "g.csv", NAMES[0], NAMES[7]],
        ["similar", "g.csv", NAMES[0], "-v"],
        ["distances", "g.csv", "--out", f"hops{ESCAPE}.csv", "--anchors", "2"],
        ["evaluate", "g.csv", "--links", "links.csv"],
    ],
)
def test_no_control_sequence_of_a_file_reaches_the_terminal(
    run: Command, graph: Path, arguments: list[str]
) -> None:
    (graph.parent / "links.csv").write_text(f"{NAMES[0]},{NAMES[7]}\nx{ESCAPE},y\n")
    _, out, err = run(*arguments)
    assert out + err
    assert not any(sign in out + err for sign in "\x1b\x07\x9b")


def test_a_closed_standard_output_is_no_traceback(graph: Path) -> None:
    command = f"{sys.executable} -m psgnn anchors g.csv --anchors 2 --quiet >&-"
    done = subprocess.run(command, shell=True, cwd=graph.parent, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
