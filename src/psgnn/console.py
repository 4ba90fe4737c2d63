"""What a person sees: tables on stdout; notes and progress on stderr, and only where they are wanted."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on stdout; the first column is left-aligned, the others right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    # Not a terminal: as wide as the table needs, so that pipes and files get whole lines.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(table)


def progress(items: Sequence[Item], description: str, *, show: bool = True) -> Iterator[Item]:
    """Iterate with a bar and the time left on stderr, if that is a terminal."""
    if not show or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(items, description=description)


def set_verbosity(*, quiet: bool, verbose: bool) -> None:
    """Send the log of the package to stderr: warnings, or nothing but errors, or everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("psgnn: %(message)s"))
    log = logging.getLogger("psgnn")
    log.handlers = [handler]
    log.propagate = False
    log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)
