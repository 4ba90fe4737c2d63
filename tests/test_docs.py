"""The documentation is true: its examples run, its tables are those of the results."""

from __future__ import annotations

import ast
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import psgnn
from psgnn import cli
from psgnn.anchors import RULES
from psgnn.anchors._diagnostics import describe_anchors
from psgnn_lab import commands

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = ("python", "bash")
ILLUSTRATION = ("text",)
ERROR = "psgnn: error: "
# Parts of pages about real datasets, which are left out where there are none.
OF_DATA = re.compile(r"<!-- needs PSGNN_DATA -->.*?<!-- needs PSGNN_DATA ends -->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the error that stands below it where it is to fail."""

    language: str
    content: str
    error: str | None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    found = BLOCK.findall(text if os.environ.get("PSGNN_DATA") else OF_DATA.sub("", text))
    return [
        Block(language, content, told if told.startswith(ERROR) else None)
        for (language, content), (_, told) in zip(found, [*found[1:], ("", "")], strict=False)
    ]


def commands_of(block: Block) -> list[str]:
    return [line for line in block.content.replace("\\\n", " ").splitlines() if line.strip()]


def run_psgnn(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit code and stderr of a command, without a process of its own: importing torch takes seconds."""
    monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exit_info:
        (commands if sys.argv[0] == "psgnn-lab" else cli).main()
    return int(exit_info.value.code or 0), err.getvalue()


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.language in RUN for block in blocks_of(page))],
    ids=lambda page: page.stem,
)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one folder, as a reader would; blocks of Python share their names."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks_of(page):
        if block.language == "python":
            exec(compile(block.content, page.name, "exec"), names)
        elif block.language == "bash":
            run_commands(block, tmp_path, monkeypatch)


def test_recipes_print_what_the_page_says(tmp_path: Path, shared_data: Path) -> None:
    """Of the recipes about real datasets; three dots on the page stand for lines that are left out."""
    page = (ROOT / "docs" / "recipes.md").read_text()
    names: dict[str, Any] = {}
    checked, out = 0, ""
    environment = {**os.environ, "PSGNN_DATA": str(shared_data)}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        for part in OF_DATA.findall(page):
            for language, content in BLOCK.findall(part):
                if language == "python":
                    with redirect_stdout(io.StringIO()) as printed:
                        exec(compile(content, "recipes.md", "exec"), names)
                    out = printed.getvalue()
                elif language == "bash":
                    script = content.replace("psgnn ", f"{sys.executable} -m psgnn ")
                    done = subprocess.run(
                        ["bash", "-ec", script], env=environment, capture_output=True, text=True, check=True
                    )
                    out = done.stdout
                else:
                    shown = [re.escape(line) for line in _lines(content)]
                    pattern = "\n".join(shown).replace(re.escape("..."), "(?:.*\n)*.*")
                    assert re.fullmatch(pattern, "\n".join(_lines(out))), out
                    checked += 1
    assert checked > 0


def test_the_first_screen_is_what_its_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (ROOT / "README.md").read_text()
    found = re.search(r"^    (psgnn predict [^\n]*)\n\n```text\n(.*?)```", readme, re.MULTILINE | re.DOTALL)
    assert found is not None
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", shlex.split(found[1]))
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()), pytest.raises(SystemExit):
        cli.main()
    printed, said = (
        re.split(r"(\d\.\d{4})", text)
        for text in ("\n".join(_lines(out.getvalue())[1:]), "\n".join(_lines(found[2])))
    )
    assert printed[::2] == said[::2]  # without the title
    # Processors round differently in the last digit.
    assert [*map(float, printed[1::2])] == pytest.approx([*map(float, said[1::2])], abs=5e-4)


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def run_commands(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command succeeds; but the last of a block that is to fail says what the page says it does."""
    commands = commands_of(block)
    for command in commands:
        if not command.startswith(("psgnn ", "psgnn-lab ")):
            subprocess.run(["bash", "-c", command], check=True)
            continue
        code, err = run_psgnn(command, monkeypatch)
        if block.error is None or command is not commands[-1]:
            assert code == 0, f"{command}: {err}"
            continue
        assert code == 2, command
        assert same_error(err.replace(f"{folder}/", ""), block.error), err


def same_error(found: str, told: str) -> bool:
    """Whether an error is the one on the page, which may leave out its end as three dots."""
    told = told.strip()
    return found.startswith(told.removesuffix("...")) if told.endswith("...") else found.strip() == told


def test_an_error_that_differs_is_noticed() -> None:
    assert same_error("psgnn: error: a b\n", "psgnn: error: a ...\n")
    assert not same_error("psgnn: error: a b\n", "psgnn: error: a\n")
    assert not same_error("psgnn: error: a b\n", "psgnn: error: b ...\n")


def test_blocks_run_or_are_marked_as_illustrations() -> None:
    for page in PAGES:
        for block in blocks_of(page):
            assert block.language in RUN + ILLUSTRATION, f"{page.name} has a block of '{block.language}'"
            told = block.content.startswith(ERROR)
            assert block.language != "text" or told or "psgnn train" not in block.content, (
                f"{page.name} hides a command"
            )


def test_commands_in_sentences_exist() -> None:
    """A command that stands in a sentence is one of psgnn's, and its options are those of its help."""
    known = {
        f"{program} {name}"
        for program, app in (("psgnn", cli.app), ("psgnn-lab", commands.app))
        for name in get_command(app).commands
    }
    for page in PAGES:
        for command in re.findall(r"`(psgnn(?:-lab)? [a-z]+)", page.read_text()):
            assert command in known, f"{page.name} names {command}"


def test_the_table_of_anchor_rules_is_what_the_command_prints() -> None:
    page = (ROOT / "docs" / "anchors.md").read_text().split("<!-- anchors of grid -->\n")[1].split("\n\n")[0]
    (data,) = psgnn.load_dataset("grid")
    made = describe_anchors([data], list(RULES), "log")
    rows = [f"| {' | '.join([row[0], *row[2:6]])} |" for row in made.rows()]
    assert page.splitlines()[2:] == rows


def test_tables_are_those_of_the_results() -> None:
    command = [sys.executable, "docs/build.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_site_has_every_page() -> None:
    import yaml

    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    shown = [name for entry in site["nav"] for name in entry.values()]
    assert sorted(shown) == sorted(page.name for page in PAGES if page.parent.name == "docs")


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed")
def test_the_site_can_be_built(tmp_path: Path) -> None:
    """Strictly: a dead link or a docstring that is not there ends it."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "site" / "api.html").read_text()
    for name in set(psgnn.__all__) - {"__version__"}:
        assert re.search(rf'id="psgnn\.[a-z.]*\.{name}"', reference), f"docs/api.md lacks {name}"
    start = (tmp_path / "site" / "index.html").read_text()
    loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", start)
    assert not loaded, "the pages open offline"


def test_public_names_are_those_of_the_contract() -> None:
    rooms = ("models", "positions", "report", "scoring", "spark", "training")
    for package in (psgnn, *(import_module(f"psgnn.{room}") for room in rooms)):
        for name in package.__all__:
            assert getattr(package, name) is not None
        assert dir(package) == sorted(package.__all__)
    contract = {
        "load_dataset", "read_graph", "shortest_distances", "select_anchors", "anchor_diagnostics",
        "LinkPrediction", "PairClassification", "build_model", "fit", "load",
    }  # fmt: skip
    assert contract <= set(psgnn.__all__)
    assert psgnn.__version__ == version("psgnn")


def test_fixed_numbers_are_those_of_the_code() -> None:
    rows = re.findall(
        r"^\| `(psgnn\.[\w.]+)\.([A-Z_]+)` \| ([^|]+) \|",
        (ROOT / "docs/architecture.md").read_text(),
        re.MULTILINE,
    )
    assert len(rows) > 20
    for module, name, value in rows:
        assert getattr(import_module(module), name) == ast.literal_eval(value.strip()), f"{module}.{name}"


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z ]+):", makefile, re.MULTILINE))
    known = {word for target in targets for word in target.split()}
    assert set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text())) <= known
