"""What a person sees: tables on stdout; notes and progress on stderr, and only where they are wanted."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, TypeVar

Item = TypeVar("Item")
LONGEST_CELL = 120


def shown(text: str) -> str:
    r"""The text as a terminal may show it: what would move the cursor or change colours stands as ``\x1b``."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    flush_notes()
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def say(text: str) -> None:
    """One line on stdout, as a terminal may show it."""
    sys.stdout.write(shown(text) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on stdout; the first column is left-aligned, the others right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    flush_notes()
    table = Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(Text(shown(column)), justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in rows:
        table.add_row(*(Text(_short(shown(str(cell)))) for cell in row))
    # Not a terminal: as wide as the table needs, so that pipes and files get whole lines.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(Text(shown(title)), soft_wrap=True)  # not as wide as a narrow table
    console.print(table)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 3] + "..."


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


class Bar:
    """A progress bar with a note and the time left on stderr, if that is a terminal."""

    def __init__(self, description: str, total: int, *, show: bool = True) -> None:
        self.description, self.total = description, total
        self._bar: Any = None
        self._show = show and sys.stderr.isatty()

    def __enter__(self) -> Bar:
        if self._show:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            flush_notes()
            note = TextColumn("{task.fields[note]}")
            columns = (
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), note, TimeRemainingColumn()
            )  # fmt: skip
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self.description, total=self.total, note="")
        return self

    def update(self, done: int, note: str = "") -> None:
        """Show how much is done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, note=note)

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class _Formatter(logging.Formatter):
    """Notes as a terminal may show them: names and headers of files are part of them."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(shown, super().format(record).split("\n")))


class Heartbeat:
    """Log what is being done every few seconds, where no terminal shows bars: a person sees that it goes on."""

    def __init__(self, what: str, *, seconds: float = 10.0, show: bool = True) -> None:
        self.what, self.seconds, self.step = what, seconds, "starting"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._show = show and not sys.stderr.isatty()

    def note(self, step: str) -> None:
        """Say what is being done now."""
        self.step = step

    def _beat(self) -> None:
        start = time.monotonic()
        while not self._ended.wait(self.seconds):
            took = time.monotonic() - start
            note = f"{self.what}: {self.step} ({took:.0f} s)"
            logging.getLogger("psgnn").info(note, extra={"at_once": True})

    def __enter__(self) -> Heartbeat:
        if self._show:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._show:
            self._thread.join()


class _WaitingNotes(logging.Handler):
    """Keeps notes until the command has got far enough; a warning or a record marked ``at_once`` does not wait."""

    def __init__(self, stream: logging.Handler) -> None:
        super().__init__()
        self.stream = stream
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "at_once", False):
            self.stream.handle(record)
            return
        self.records.append(record)
        if record.levelno >= logging.WARNING:
            self.pass_on()

    def pass_on(self) -> None:
        while self.records:
            self.stream.handle(self.records.pop(0))


def set_verbosity(*, quiet: bool, verbose: bool) -> None:
    """Send the notes of the package to stderr: at once if verbose, none if quiet.

    Otherwise they wait for `flush_notes`, so that a command that fails leaves its error on stderr, alone.
    """
    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(_Formatter("psgnn: %(message)s"))
    log = logging.getLogger("psgnn")
    log.handlers = [stream if verbose else _WaitingNotes(stream)]
    log.propagate = False
    log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)


def flush_notes() -> None:
    """Print the notes that have been waiting: the command has got far enough."""
    for handler in logging.getLogger("psgnn").handlers:
        if isinstance(handler, _WaitingNotes):
            handler.pass_on()


# Notebooks: small HTML tables in which every text is escaped


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; the first column is left-aligned, the others right.

    >>> html_table("<b>", ["a"], [["&"]]).count("&lt;b&gt;")
    1
    """
    head = _row("th", columns)
    body = "".join(_row("td", row) for row in rows)
    caption = f'<caption style="caption-side:top;text-align:left;font-weight:bold">{escape(title)}</caption>'
    return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"


def html_line(text: str) -> str:
    """A line of text beneath a table."""
    return f"<p>{escape(text)}</p>"


def shortened(names: Sequence[str], most: int = 30) -> str:
    """The first names with commas between them, and how many there are if not all are shown."""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _row(tag: str, cells: Sequence[Any]) -> str:
    aligned = ("left" if i == 0 else "right" for i in range(len(cells)))
    inner = (
        f'<{tag} style="text-align:{side}">{escape(str(cell))}</{tag}>'
        for side, cell in zip(aligned, cells, strict=True)
    )
    return f"<tr>{''.join(inner)}</tr>"
